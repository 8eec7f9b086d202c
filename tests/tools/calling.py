"""A call of one tool as a run makes it, and what its failure would prove false."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool

from agent.core.classification import classify
from agent.core.contract import EffectClass
from agent.core.failure import ErrorFacts, Failure, Scope, Trigger
from agent.core.value import JsonValue
from agent.tools.calling import Caller
from agent.tools.registry import Registry


class Hands:
    """Calls tools through the runtime's own caller, so that errors are what a run would see."""

    def __init__(self, tools: Sequence[BaseTool]) -> None:
        self.registry = Registry(tools)
        self._caller = Caller(self.registry, seconds=60)

    async def acall(self, tool: str, **args: Any) -> JsonValue | ErrorFacts:
        return await self._caller.call(tool, args)

    def call(self, tool: str, **args: Any) -> Any:
        """What the tool answers; an error fails the test."""
        answer = asyncio.run(self.acall(tool, **args))
        assert not isinstance(answer, ErrorFacts), answer
        return answer

    def refused(self, tool: str, **args: Any) -> ErrorFacts:
        """The error of a call; an answer fails the test."""
        answer = asyncio.run(self.acall(tool, **args))
        assert isinstance(answer, ErrorFacts), answer
        return answer

    def scope(self, tool: str, **args: Any) -> Scope | None:
        """What the error of a call proves false."""
        return self.scope_of(tool, self.refused(tool, **args))

    def scope_of(self, tool: str, error: ErrorFacts) -> Scope | None:
        failure = Failure(trigger=Trigger.TASK_FAILURE, tool=tool, error=error)
        mutating = self.registry.contracts[tool].effect is EffectClass.MUTATING
        known = classify(failure, mutating=mutating, view={})
        return known.scope if known else None

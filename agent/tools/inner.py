"""What is the inner loop to the runner? Something that works on one step with the tools it is handed."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue
from agent.ports import Diary, Result, Task

ToolCall = Callable[[str, dict[str, JsonValue]], Awaitable[JsonValue | ErrorFacts]]
HeldCall = Callable[[str, dict[str, JsonValue]], bool]


class ReactLoop(Protocol):
    """The inner loop: a model works on one step with the step's tools only."""

    async def run(
        self, task: Task, call: ToolCall, held: HeldCall, seconds: float | None, diary: Diary | None
    ) -> Result:
        """Work on the step.

        Args:
            task: the step and what it reads.
            call: how tools are called; it journals what mutates.
            held: whether a call needs a person's word first; the attempt then ends before it, and says so.
            seconds: how long all of it may take; what it had cost until then is in the result. None: no bound.
            diary: where its turns are kept, and those of a process that did not live to its end; None: nowhere.
        """
        ...

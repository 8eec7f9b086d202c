"""One attempt of a step: a read, a write, or turns of the inner loop."""

from copy import copy

from agent.core.consent import Consent
from agent.core.contract import EffectClass
from agent.core.effect import EffectJournal
from agent.core.failure import ErrorFacts
from agent.core.repair import call_digest
from agent.core.value import JsonValue
from agent.plain import noted
from agent.ports import Observation, Result, Task, Turns
from agent.tools.calling import Caller, sent
from agent.tools.checking import agree, digest_of, judged, shows, tool_of
from agent.tools.inner import ReactLoop
from agent.tools.inquiring import inquiring, waiting
from agent.tools.registry import Registry
from agent.tools.tracing import Tracer
from agent.tools.writes import Writes


class ToolRunner:
    """Carries out attempts: direct calls itself, instructions through the inner loop."""

    def __init__(
        self,
        registry: Registry,
        caller: Caller,
        journal: EffectJournal,
        react: ReactLoop | None,
        consent: Consent = Consent(),  # noqa: B008 - frozen
        turns: Turns | None = None,
    ) -> None:
        """Work with these.

        Args:
            registry: the tools.
            caller: how to call them.
            journal: where effects are written down.
            react: the inner loop, if a model is there.
            consent: which calls of the inner loop wait for a person; direct calls were asked about before.
            turns: where the turns of the inner loop are kept for a resume; None: nowhere.
        """
        self._consent = consent
        self._registry = registry
        self._caller = caller
        self._writes = Writes(registry, caller, journal)
        self._react = react
        self._diaries = turns

    def under(self, react: ReactLoop | None, consent: Consent) -> "ToolRunner":
        """One with another inner loop and policy; each knows of the writes that the other has in flight."""
        other = copy(self)
        other._react, other._consent = react, consent
        return other

    async def run(self, task: Task) -> Result:
        """Try the step once. Never throws; a failure is in `Result.error`."""
        with noted() as notes, sent() as calls, inquiring(task) as asked:
            result = waiting(await self._tried(task), asked)
        contracts = self._registry.contracts
        money = sum(contracts[each].price for each in calls if each in contracts)
        more = {"notes": tuple(dict.fromkeys(notes)), "money": money}
        return result.model_copy(update=more) if notes or money else result

    async def _tried(self, task: Task) -> Result:
        if task.step.call is None:
            return await self._turns(task)
        if task.step.effect is EffectClass.READ_ONLY:
            return await self._read(task)
        return await self._writes.of_step(task)

    async def _turns(self, task: Task) -> Result:
        if self._react is None:
            return _failed(ErrorFacts(kind="need", message="the step is an instruction, and no model is configured"))

        diary = await self._diaries.of(task) if self._diaries and task.start else None
        tracer = Tracer(self._registry, self._consent.untraced, task)
        if diary and diary.begun and diary.begun.told:
            tracer.told()

        async def call(tool: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
            if tool not in task.step.tools:
                return ErrorFacts(kind="refused", type="NotThisStep", message=f"this step may not call {tool}")
            refusal = tracer.refusal(tool, args)
            if refusal is not None:
                return refusal
            args = {**args, **task.allowed.get(call_digest(tool, args), {})}
            try:
                return await self._made(task, tool, args)
            finally:
                tracer.told()

        def held(tool: str, args: dict[str, JsonValue]) -> bool:
            asked = tracer.asks(tool, args)
            return asked or (self._consent.needed(tool) and call_digest(tool, args) not in task.allowed)

        result = await self._react.run(task, call, held, self._caller.time_for(*task.step.tools), diary)
        if tracer.withheld:
            result = result.model_copy(update={"withheld": tuple(tracer.withheld)})
        return result if result.error else judged(task, result.value, result.value, result, ("result",))

    async def _made(self, task: Task, tool: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        contract = self._registry.contracts.get(tool)
        if contract is None or contract.effect is EffectClass.READ_ONLY:
            return await self._caller.call(tool, args)
        return await self._writes.of_loop(task, contract, args)

    async def _read(self, task: Task) -> Result:
        # looked at before it is read: a change between the two then shows as stale, never as fresh
        seen = await self._look(task)
        returned = await self._caller.call(tool_of(task), task.args)
        if isinstance(returned, ErrorFacts):
            return _failed(returned)
        after = seen if shows(seen, returned) else await self._look(task)
        base = Result(tool_calls=1, seen=digest_of(seen), moved=not agree(seen, after))
        return judged(task, returned, returned, base, ("result",))

    async def _look(self, task: Task) -> Observation | None:
        return await self._caller.look(tool_of(task), task.args)


def _failed(error: ErrorFacts) -> Result:
    return Result(error=error, tool_calls=1)

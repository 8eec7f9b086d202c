"""One attempt of a step, which changes nothing twice (invariant 2).

Every mutating call is bracketed by the effect journal. An outcome that is not known is reconciled by looking at
the world, never by blindly repeating the call.
"""

import asyncio
from weakref import WeakValueDictionary

from agent.core.consent import Consent
from agent.core.contract import EffectClass
from agent.core.effect import Begun, Done, EffectIdentity, EffectJournal, Fresh, Open
from agent.core.failure import Effect, ErrorFacts
from agent.core.repair import call_digest
from agent.core.value import JsonValue
from agent.plain import noted
from agent.ports import Observation, Result, Task
from agent.tools.calling import Caller
from agent.tools.checking import agree, checked, digest_of, judged, sees_nothing, shows, standing, tool_of
from agent.tools.inner import ReactLoop
from agent.tools.outcomes import effect_after, identity, is_harmless_anew, looked_after, lost
from agent.tools.registry import Registry


class ToolRunner:
    """Carries out attempts: direct calls itself, instructions through the inner loop."""

    def __init__(
        self,
        registry: Registry,
        caller: Caller,
        journal: EffectJournal,
        react: ReactLoop | None,
        consent: Consent = Consent(),  # noqa: B008 - frozen
    ) -> None:
        """Work with these.

        Args:
            registry: the tools.
            caller: how to call them.
            journal: where effects are written down.
            react: the inner loop, if a model is there.
            consent: which calls of the inner loop wait for a person; direct calls were asked about before.
        """
        self._consent = consent
        self._registry = registry
        self._caller = caller
        self._journal = journal
        self._react = react
        self._slow: dict[tuple[str, str], tuple[str, dict[str, JsonValue]]] = {}
        """Thread and product -> the last call for it that ran out of time."""
        self._locks: WeakValueDictionary[EffectIdentity, asyncio.Lock] = WeakValueDictionary()

    async def run(self, task: Task) -> Result:
        """Try the step once. Never throws; a failure is in `Result.error`."""
        with noted() as notes:
            result = await self._tried(task)
        return result.model_copy(update={"notes": tuple(dict.fromkeys(notes))}) if notes else result

    async def _tried(self, task: Task) -> Result:
        if task.step.call is None:
            return await self._turns(task)
        if task.step.effect is EffectClass.READ_ONLY:
            return await self._read(task)
        return await self._mutate(task)

    async def _turns(self, task: Task) -> Result:
        if self._react is None:
            return _failed(ErrorFacts(kind="need", message="the step is an instruction, and no model is configured"))

        async def call(tool: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
            args = {**args, **task.allowed.get(call_digest(tool, args), {})}
            contract = self._registry.contracts.get(tool)
            if contract is None or contract.effect is EffectClass.READ_ONLY:
                return await self._caller.call(tool, args)
            return await self._once(task, tool, args, contract.idempotent)

        def held(tool: str, args: dict[str, JsonValue]) -> bool:
            return self._consent.needed(tool) and call_digest(tool, args) not in task.allowed

        result = await self._react.run(task, call, held)
        return result if result.error else judged(task, result.value, result.value, result, ("result",))

    async def _once(
        self, task: Task, tool: str, args: dict[str, JsonValue], idempotent: bool
    ) -> JsonValue | ErrorFacts:
        """A mutating call of the inner loop: its effects are the step's, so only the journal stands guard."""
        async with self._alone(task, tool, args):
            return await self._once_alone(task, tool, args, idempotent)

    async def _once_alone(
        self, task: Task, tool: str, args: dict[str, JsonValue], idempotent: bool
    ) -> JsonValue | ErrorFacts:
        effect = identity(task, tool, args)
        begun = await self._journal.begin(effect, task.step.id, task.fence)
        if isinstance(begun, Done):
            return begun.result
        if isinstance(begun, Open) and not idempotent:
            return lost(tool, begun, None)
        returned = await self._caller.call(tool, args)
        if not isinstance(returned, ErrorFacts):
            await self._journal.done(effect, returned)
        elif effect_after(returned, task, tool) is Effect.ABSENT:
            await self._journal.absent(effect, begun.attempts)
        return returned

    async def _read(self, task: Task) -> Result:
        # looked at before it is read: a change between the two then shows as stale, never as fresh
        seen = await self._look(task)
        returned = await self._caller.call(tool_of(task), task.args)
        if isinstance(returned, ErrorFacts):
            return _failed(returned)
        after = seen if shows(seen, returned) else await self._look(task)
        base = Result(tool_calls=1, seen=digest_of(seen), moved=not agree(seen, after))
        return judged(task, returned, returned, base, ("result",))

    def _alone(self, task: Task, tool: str, args: dict[str, JsonValue]) -> asyncio.Lock:
        """Equal calls in flight together go one after the other: the second finds the outcome of the first."""
        effect = identity(task, tool, args)
        return self._locks.setdefault(effect, asyncio.Lock())

    async def _mutate(self, task: Task) -> Result:
        async with self._alone(task, tool_of(task), task.args):
            return await self._mutate_alone(task)

    async def _mutate_alone(self, task: Task) -> Result:
        if (slow := await self._still_at_work(task)) is not None:
            return _failed(slow)
        if is_harmless_anew(task):
            return await self._repeated(task)
        if task.look_first and (adopted := await self._standing(task)) is not None:
            await self._begin(task)
            return await self._adopt(task, adopted)
        return await self._bracketed(task)

    async def _repeated(self, task: Task) -> Result:
        """Do harmless work again: what stands was made from other inputs, and its promise may not show it."""
        begun = await self._begin(task)
        return await self._call(task, 0 if isinstance(begun, Done) else begun.attempts)

    async def _bracketed(self, task: Task) -> Result:
        """Call a mutating tool at most once for its identity."""
        begun = await self._begin(task)
        if isinstance(begun, Fresh):
            return await self._call(task, begun.attempts)
        if isinstance(begun, Done):
            return await self._recorded(task, begun)
        return await self._reconcile(task, begun)

    async def _recorded(self, task: Task, begun: Done) -> Result:
        """The journal has the outcome; it counts unless the world is seen to have lost the effect."""
        seen = await self._look(task)
        if sees_nothing(seen):
            again = task.step.model_copy(update={"repetition": task.step.repetition + 1})
            return await self._bracketed(task.model_copy(update={"step": again}))
        return checked(task, begun.result, seen, "recorded")

    async def _reconcile(self, task: Task, begun: Open) -> Result:
        """An intent without an outcome: look for the effect; absent means the call may be made.

        A look proves nothing while the call itself is still at work in its thread: that is waited for first.
        """
        late = await self._caller.overdue(tool_of(task), task.args)
        if isinstance(late, ErrorFacts) and late.kind == "lost":
            return _failed(late)
        if late is not None and not isinstance(late, ErrorFacts):
            await self._journal.done(identity(task, tool_of(task), task.args), late)
            return await self._recorded(task, Done(late))
        seen = await self._look(task)
        if task.alone and sees_nothing(seen):
            await self._journal.absent(identity(task, tool_of(task), task.args), begun.attempts)
            return await self._bracketed(task)
        if (adopted := standing(task, seen)) is not None:
            return await self._adopt(task, adopted)
        if task.step.idempotent:
            return await self._call(task, begun.attempts)
        return _failed(lost(tool_of(task), begun, seen))

    async def _begin(self, task: Task) -> Begun:
        return await self._journal.begin(identity(task, tool_of(task), task.args), task.step.id, task.fence)

    async def _call(self, task: Task, attempts: int) -> Result:
        effect = identity(task, tool_of(task), task.args)
        returned = await self._caller.call(tool_of(task), task.args)
        if isinstance(returned, ErrorFacts):
            return await self._failed_call(task, returned, attempts)
        await self._journal.done(effect, returned)
        result = checked(task, returned, await self._look(task), "called")
        if result.error and result.error.kind == "verdict" and task.step.idempotent:
            # it did something, but not what was promised; harmless to do again, so it may be
            await self._journal.absent(effect, attempts)
        return result

    async def _still_at_work(self, task: Task) -> ErrorFacts | None:
        """Whether another call for the same product ran out of time and may act any moment; it is waited for."""
        key, this = (task.thread, task.step.key), (tool_of(task), task.args)
        before = self._slow.get(key, this)
        late = await self._caller.overdue(*before) if before != this else None
        if isinstance(late, ErrorFacts) and late.kind == "lost":
            return late
        self._slow.pop(key, None)
        return None

    async def _failed_call(self, task: Task, error: ErrorFacts, attempts: int) -> Result:
        if error.kind == "timeout":
            self._slow[task.thread, task.step.key] = (tool_of(task), task.args)
        if effect_after(error, task, tool_of(task)) is not Effect.ABSENT and not is_harmless_anew(task):
            # the answer was lost, or said "already done"; the effect may be there for all to see
            seen = await self._look(task)
            if (adopted := standing(task, seen)) is not None:
                return await self._adopt(task, adopted)
            error = looked_after(error, seen, task, tool_of(task))
        if effect_after(error, task, tool_of(task)) is Effect.ABSENT:
            await self._journal.absent(identity(task, tool_of(task), task.args), attempts)
        return _failed(error)

    async def _adopt(self, task: Task, adopted: Result) -> Result:
        await self._journal.adopted(identity(task, tool_of(task), task.args), adopted.value)
        return adopted

    async def _standing(self, task: Task) -> Result | None:
        return standing(task, await self._look(task)) if task.step.effects else None

    async def _look(self, task: Task) -> Observation | None:
        return await self._caller.look(tool_of(task), task.args)


def _failed(error: ErrorFacts) -> Result:
    return Result(error=error, tool_calls=1)

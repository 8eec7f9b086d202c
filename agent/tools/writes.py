"""A mutating call, which is made at most once (invariant 2): a step's own, or one that its inner loop makes.

It is bracketed by the effect journal. An outcome that is not known is found out by looking at the world; what
nobody can find out is `lost`, and goes to a person. It is never blindly repeated.
"""

import asyncio
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from agent.core.chaining import as_step, fill
from agent.core.contract import ToolContract
from agent.core.effect import Begun, Done, EffectIdentity, EffectJournal, Fresh, Open, idempotency_key
from agent.core.failure import Effect, ErrorFacts
from agent.core.plan import Step
from agent.core.value import JsonValue, abridged
from agent.ports import Observation, Result, Task
from agent.tools.calling import Caller
from agent.tools.checking import checked, sees_nothing, standing, tool_of
from agent.tools.inquiring import ASKS
from agent.tools.outcomes import (
    effect_after,
    identity,
    is_harmless_anew,
    looked_after,
    lost,
    made_otherwise,
    overtaken,
    undecided,
)
from agent.tools.registry import Registry


@dataclass(frozen=True)
class Write:
    """One mutating call, as the journal and the tool know it."""

    task: Task
    """Its step makes the call directly; for the inner loop's it is one that would."""
    effect: EffectIdentity
    sent: dict[str, JsonValue]
    """Arguments as the tool takes them, with its idempotency key."""
    inner: bool = False
    """Made by the inner loop: the model reads what it gave, and the effects of the whole step are judged later."""

    @property
    def tool(self) -> str:
        """The tool that is called."""
        return tool_of(self.task)

    @property
    def product(self) -> tuple[str, str]:
        """What it is for, and on which thread."""
        return self.task.thread, self.task.step.key


class Writes:
    """Makes mutating calls."""

    def __init__(self, registry: Registry, caller: Caller, journal: EffectJournal) -> None:
        """Args: the tools; how to call them; where effects are written down."""
        self._registry = registry
        self._caller = caller
        self._journal = journal
        self._schemas: dict[str, dict[str, JsonValue]] = {}
        self._doubtful: dict[tuple[str, str], Write] = {}
        """Thread and product -> the last write for it that may act any moment, or has acted unseen."""
        self._locks: WeakValueDictionary[EffectIdentity, asyncio.Lock] = WeakValueDictionary()

    async def of_step(self, task: Task) -> Result:
        """A step's own call."""
        write = self._write(task)
        async with self._alone(write):
            if (late := await self._in_doubt(write)) is not None:
                return late
            if is_harmless_anew(task):
                return await self._repeated(write)
            if task.look_first and (adopted := await self._standing(write)) is not None:
                await self._begin(write)
                return await self._adopt(write, adopted)
            return await self._bracketed(write)

    async def of_loop(self, task: Task, contract: ToolContract, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        """A call of the inner loop of a step: what it gave, or why not; `lost` when nobody can find out."""
        write = self._inner(task, contract, args)
        async with self._alone(write):
            result = await self._in_doubt(write)
            if result is None and (doubt := await self._undecided(write, task.step)) is not None:
                result = _failed(doubt)
            result = result or await self._bracketed(write)
        return _named(result.error, write) if result.error else result.value

    def _inner(self, task: Task, contract: ToolContract, args: dict[str, JsonValue]) -> Write:
        """The write as the inner loop makes it: where a person lets it be made anew, it is another one from now on."""
        as_asked = _as_task(task, contract, args)
        write = self._write(as_asked)
        anew = self._settled(write.effect, task.step)
        if anew:
            step = as_asked.step.model_copy(update={"repetition": as_asked.step.repetition + anew})
            write = self._write(as_asked.model_copy(update={"step": step}))
        return replace(write, inner=True)

    def _write(self, task: Task) -> Write:
        tool = tool_of(task)
        effect = identity(task, tool, task.args, self._schema(tool))
        keyed = self._registry.key_of(tool)
        sent = {**task.args, keyed: idempotency_key(effect)} if keyed else task.args
        return Write(task, effect, sent)

    def _schema(self, tool: str) -> dict[str, JsonValue]:
        if tool not in self._schemas:  # to make one takes longer than all else here together
            self._schemas[tool] = self._registry.schema(tool) if tool in self._registry.names() else {}
        return self._schemas[tool]

    def _alone(self, write: Write) -> asyncio.Lock:
        """Equal calls in flight together go one after the other: the second finds the outcome of the first."""
        return self._locks.setdefault(write.effect, asyncio.Lock())

    async def _begin(self, write: Write) -> Begun:
        return await self._journal.begin(write.effect, write.task.step.id, write.task.fence)

    async def _repeated(self, write: Write) -> Result:
        """Do harmless work again: what stands was made from other inputs, and its promise may not show it."""
        begun = await self._begin(write)
        return await self._call(write, 0 if isinstance(begun, Done) else begun.attempts)

    async def _bracketed(self, write: Write) -> Result:
        """Call at most once for its identity."""
        begun = await self._begin(write)
        if isinstance(begun, Fresh):
            if not await self._is_second(write):
                return await self._call(write, begun.attempts)
            await self._journal.absent(write.effect, begun.attempts)
            return _failed(made_otherwise(write.tool))
        if isinstance(begun, Done):
            return await self._recorded(write, begun)
        return await self._reconcile(write, begun)

    async def _recorded(self, write: Write, begun: Done) -> Result:
        """The journal has the outcome; it counts unless the world is seen to have lost the effect."""
        if write.inner:
            return Result(how="recorded", value=begun.result)
        seen = await self._look(write)
        if sees_nothing(seen):
            step = write.task.step
            again = step.model_copy(update={"repetition": step.repetition + 1})
            return await self._bracketed(self._write(write.task.model_copy(update={"step": again})))
        result = checked(write.task, begun.result, seen, "recorded")
        if result.error and result.error.kind == "verdict" and write.task.step.idempotent:
            return await self._repeated(write)  # it was done, and others have changed what it left
        return result

    async def _reconcile(self, write: Write, begun: Open, error: ErrorFacts | None = None) -> Result:
        """An intent without an outcome: look for the effect; absent means the call may be made.

        A look proves nothing while the call itself is still at work in its thread: that is waited for first.

        Args:
            write: the call.
            begun: what the journal says of it.
            error: what to tell where it may be made; None: make it.
        """
        late = await self._caller.overdue(write.tool, write.sent)
        if isinstance(late, ErrorFacts) and late.kind == "lost":
            return _failed(late)
        if late is not None and not isinstance(late, ErrorFacts):
            await self._journal.done(write.effect, late)
            return await self._recorded(write, Done(late))
        seen = await self._look(write)
        if write.task.alone and sees_nothing(seen):
            await self._journal.absent(write.effect, begun.attempts)
            return await self._bracketed(write) if error is None else _failed(error)
        if (adopted := standing(write.task, seen)) is not None:
            return await self._adopt(write, adopted)
        if write.task.step.idempotent:
            return await self._call(write, begun.attempts) if error is None else _failed(error)
        return _failed(lost(write.tool, begun, seen))

    async def _call(self, write: Write, attempts: int) -> Result:
        returned = await self._caller.call(write.tool, write.sent)
        if isinstance(returned, ErrorFacts):
            return await self._failed_call(write, returned, attempts)
        await self._journal.done(write.effect, returned)
        if write.inner:
            return Result(value=returned)
        result = checked(write.task, returned, await self._look(write), "called")
        if result.error and result.error.kind == "verdict" and write.task.step.idempotent:
            # it did something, but not what was promised; harmless to do again, so it may be
            await self._journal.absent(write.effect, attempts)
        return result

    async def _failed_call(self, write: Write, error: ErrorFacts, attempts: int) -> Result:
        task = write.task
        if error.kind == ASKS:
            return await self._asks(write, error, attempts)
        if error.kind == "timeout":
            self._doubtful[write.product] = write
        if effect_after(error, task, write.tool) is not Effect.ABSENT and not is_harmless_anew(task):
            # the answer was lost, or said "already done"; the effect may be there for all to see
            seen = await self._look(write)
            if (adopted := standing(task, seen)) is not None:
                return await self._adopt(write, adopted)
            error = looked_after(error, seen, task, write.tool)
        if effect_after(error, task, write.tool) is Effect.ABSENT:
            await self._journal.absent(write.effect, attempts)
        elif write.inner:
            # the ladder decides about a step; a model would go on, and try it otherwise
            return await self._reconcile(write, Open(task.step.id, attempts), error)
        return _failed(error)

    async def _asks(self, write: Write, error: ErrorFacts, attempts: int) -> Result:
        """A tool that asks has not acted yet, as it is run again from its top; one that is seen to have is lost."""
        seen = await self._look(write)
        if seen is None or sees_nothing(seen) or write.task.look_first or write.task.step.idempotent:
            await self._journal.absent(write.effect, attempts)
            return _failed(error)
        return _failed(lost(write.tool, Open(write.task.step.id, attempts), seen))

    async def _in_doubt(self, write: Write) -> Result | None:
        """Whether another call for the same product ran out of time and may act any moment; it is waited for.

        Where it was this very call, which a person has allowed to be made once more meanwhile, its late success is
        the one that was wanted. Where they have edited it meanwhile, they did not know yet what is known now.
        """
        before = self._doubtful.get(write.product)
        if before is None or before.effect == write.effect:
            return None  # of this very call the journal tells; it stays in doubt for others until it has ended
        late = await self._caller.overdue(before.tool, before.sent)
        if isinstance(late, ErrorFacts) and late.kind == "lost":
            return _failed(_named(late, before) if write.inner else late)
        self._doubtful.pop(write.product, None)
        if late is None or isinstance(late, ErrorFacts):
            return None
        await self._journal.done(before.effect, late)
        same = replace(before.effect, repetition=write.effect.repetition) == write.effect
        if same and before.task.again == write.task.again:
            # what they have allowed is used up by it: nothing is left that might be made once more some day
            await self._begin(write)
            await self._journal.adopted(write.effect, late)
            return await self._recorded(write, Done(late))
        if write.inner or write.task.step.idempotent or before.task.again != write.task.again:
            return None
        await self._begin(write)  # as one whose outcome is unknown: no run makes it now without a person's word
        return _failed(overtaken(write.tool, before.tool))

    async def _is_second(self, write: Write) -> bool:
        """Whether another call made the same from the same inputs, and nothing shows that it is gone.

        Only a person can say then that it is to be made: that is another repetition of it.
        """
        task = write.task
        made = task.made_before and not (write.inner or task.step.idempotent or task.step.repetition)
        return made and not sees_nothing(await self._look(write))

    async def _undecided(self, write: Write, step: Step) -> ErrorFacts | None:
        """Whether another write to the same end may have happened: under other arguments this could be the second.

        It may be one of this step, or of a step of an earlier plan; not one of which a person, who was asked about
        it, has said to go on.
        """
        if write.task.step.idempotent:
            return None
        unknown = await self._journal.undecided(write.task.thread, {step.id, *write.task.kin})
        # a tool that was taken away since is not known to be harmless
        harmless = {name for name, each in self._registry.contracts.items() if each.idempotent}
        doubtful = [
            each
            for each in unknown
            if each != write.effect
            and each.tool not in harmless
            and self._settled(each, step) <= each.repetition - step.repetition
        ]
        return undecided(write.tool, doubtful) if doubtful else None

    def _settled(self, effect: EffectIdentity, step: Step) -> int:
        """How often a person has let it be made anew. Where a probe can look, the world is asked again instead."""
        contract = self._registry.contracts.get(effect.tool)
        return 0 if contract and contract.observable else step.settled.count(effect.call)

    async def _adopt(self, write: Write, adopted: Result) -> Result:
        await self._journal.adopted(write.effect, adopted.value)
        return adopted

    async def _standing(self, write: Write) -> Result | None:
        return standing(write.task, await self._look(write)) if write.task.step.effects else None

    async def _look(self, write: Write) -> Observation | None:
        return await self._caller.look(write.tool, write.sent)


def _as_task(task: Task, contract: ToolContract, args: dict[str, JsonValue]) -> Task:
    """A call of the inner loop as the step that it would be in a plan."""
    maker = fill(contract, {name: args[name] for name in contract.each if name in args})
    step = as_step(maker._replace(args=args), ()).model_copy(
        update={"id": task.step.id, "repetition": task.step.repetition}
    )
    return task.model_copy(update={"step": step, "args": args, "look_first": False, "anew": False})


def _named(error: ErrorFacts, write: Write) -> ErrorFacts:
    """An error of the inner loop that says which write is lost, so that a person can decide about that one."""
    if error.kind != "lost" or error.lost:
        return error
    message = f"{error.message} (called with {abridged(write.task.args)})"
    return error.model_copy(update={"lost": (write.effect.call,), "message": message})


def _failed(error: ErrorFacts) -> Result:
    return Result(error=error, tool_calls=1)

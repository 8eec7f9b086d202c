"""Executor: starts whatever is marked running and not in flight, returns as soon as one attempt has finished."""

import time
from collections.abc import Iterator
from functools import partial
from types import MappingProxyType

from langchain_core.runnables import RunnableConfig

from agent.core.contract import EffectClass
from agent.core.cooldown import resting
from agent.core.failure import ErrorFacts
from agent.core.goal import Goal, occasion
from agent.core.move import Start
from agent.core.phase import Phase
from agent.core.plan import Plan, Step, StepId, StepStatus
from agent.core.provenance import Sources, sources
from agent.core.record import AttemptEnded, Committed, StepStarted, TraceRecord, Withheld, nudged
from agent.core.reference import UnresolvedReference
from agent.core.spending import Prices, charged, cost
from agent.core.value import ArtifactName, Digest, JsonValue, digest
from agent.core.world import World
from agent.nodes.bodies import Bodies
from agent.nodes.scope import RunScope, scope_of, thread_of
from agent.nodes.span import spanned
from agent.nodes.state import RunState, RunUpdate
from agent.ports import Attempt, Clock, Result, StepRunner, Task, Turns
from agent.store.hold import Hold
from agent.trace.langsmith.naming import of_attempt

_DOING = {"intent", "instruction", "hint", "tools", "produces", "repetition"}
"""What the inner loop does by."""

Allowed = dict[str, dict[str, JsonValue]]


class Executor:
    """Runs steps side by side and harvests the first that finishes."""

    def __init__(
        self,
        runner: StepRunner,
        bodies: Bodies,
        clock: Clock,
        jitter: float,
        prices: Prices = MappingProxyType({}),
        turns: Turns | None = None,
    ) -> None:
        """Carry out attempts.

        Args:
            runner: what carries out one.
            bodies: artifact bodies.
            clock: the time.
            jitter: random share added to a delay.
            prices: money by model.
            turns: what was said in attempts that are under way.
        """
        self._turns = turns
        self._runner = runner
        self._bodies = bodies
        self._clock = clock
        self._jitter = jitter
        self._prices = prices

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Launch, harvest, return. A step marked running that is not in flight was lost with its process."""
        scope, move = scope_of(config), state["move"]
        scope.rest(state["ledger"])
        plan, started = state["plan"], move.steps if isinstance(move, Start) else ()
        await self._swept(thread_of(config), scope, plan)
        for step in plan.with_status(StepStatus.RUNNING):
            if not scope.holds(step.id):
                doubtful = step.id not in started or _tried_before(step, plan)
                allowed = state.get("allowed") or {}
                done_as = _on_occasion(step, state["goal"])
                work = partial(self._attempt, thread_of(config), scope, done_as, state, doubtful, allowed)
                label = partial(of_attempt, step, state["trace"])
                known = {"step": step.id, "attempt": step.attempts, "key": step.key, "tool": tool_of(step)}
                attempt = spanned(work, config, label, known)
                scope.launch(step.id, attempt, mutating=step.effect is EffectClass.MUTATING)
        # what is broken is dealt with before anything is harvested: not sometimes before, sometimes after
        finished = () if isinstance(move, Start) and not move.wait else await scope.harvest()
        made, paid = (sum(getattr(each.result, name) for each in finished) for name in ("tool_calls", "money"))
        ledger = state["ledger"].add(tool_calls=made, money=paid)
        for each in finished:
            ledger = charged(ledger, "executor", each.result.usage, self._prices)
        ended = tuple(each for each in finished if not (each.result.asks or each.result.inquiries))
        return {
            "plan": _asking(plan, finished),
            "attempts": ended,
            "ledger": ledger,
            "phase": Phase.VERIFIER if ended else Phase.DISPATCHER,
            "trace": [record for each in finished for record in self._records(each, ledger.run)],
        }

    async def _swept(self, thread: str, scope: RunScope, plan: Plan) -> None:
        """Drop what was said in attempts that have ended, before a model says more: their end is in the checkpoint."""
        talking = [each for each in plan.with_status(StepStatus.RUNNING) if each.call is None]
        if self._turns and not all(scope.holds(each.id) for each in talking):
            await self._turns.sweep(thread, [each.id for each in talking], scope.hold.token if scope.hold else None)

    async def _attempt(
        self, thread: str, scope: RunScope, step: Step, state: RunState, doubtful: bool, allowed: Allowed
    ) -> Attempt:
        """One try, as a task of its own: wait out the backoff, resolve the references, run, park the value.

        A doubtful one may have acted before, under other arguments, which the journal cannot tell: it looks first.
        """
        await self._waited(step, scope)
        goal, world = state["goal"], state["world"]
        begun = time.monotonic()
        inputs = await self._bodies.view(world, step.reads())
        kin = _kin(step, state["plan"])
        before = _made_before(step, state)
        start = _start(step, state) if scope.hold and step.call is None else ""
        result = await self._result(
            thread, scope.hold, step, goal, world, inputs, kin, doubtful, before, allowed, start
        )
        stored = await self._bodies.parked(result.value)
        if stored is not None:
            result = result.model_copy(update={"value": None, "stored": stored})
        return Attempt(
            step=step.id,
            number=step.attempts,
            args=step.call.args if step.call else {},
            # of marked ones too: a step that a dead process lost then shows as outdated, not as badly called
            inputs=_inputs(step, world),
            tick=world.tick,
            result=result,
            seconds=time.monotonic() - begun,
        )

    async def _waited(self, step: Step, scope: RunScope) -> None:
        """Wait out the backoff, and as long as the step's endpoint rests: another step may make it longer meanwhile."""
        await self._sleep(step.delay)
        tool = tool_of(step)
        while (left := resting(scope.ledger, tool) - self._clock.now()) > 0:
            await self._sleep(left)

    async def _sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds * (1 + self._jitter * self._clock.jitter()))

    async def _result(
        self,
        thread: str,
        hold: Hold | None,
        step: Step,
        goal: Goal,
        world: World,
        inputs: dict[str, JsonValue],
        kin: tuple[StepId, ...],
        doubtful: bool,
        before: bool,
        allowed: Allowed,
        start: str,
    ) -> Result:
        try:
            args = step.call.sent(inputs) if step.call else {}
        except UnresolvedReference as error:
            return Result(error=ErrorFacts(kind="refused", type="UnresolvedReference", message=str(error)))
        return await self._runner.run(
            Task(
                thread=thread,
                step=step,
                args=args,
                inputs=inputs,
                facts=world.fact_values(),
                sources=Sources() if step.call else sources(goal, step, inputs),
                informed=not goal.given.keys() >= inputs.keys(),
                allowed=allowed,
                look_first=doubtful or any(name in world.artifacts for name in step.produces),
                kin=kin,
                made_before=before,
                anew=_from_other_inputs(step, world),
                start=start,
                fence=hold.token if hold else None,
                alone=hold is None or hold.is_alone(),
            )
        )

    def _records(self, attempt: Attempt, run: int) -> list[TraceRecord]:
        """What the model was told on the way, and how the attempt ended."""
        error, at = attempt.result.error, self._clock.now()
        ended = AttemptEnded(
            at=at,
            run=run,
            step=attempt.step,
            attempt=attempt.number,
            ok=error is None,
            how=attempt.result.how,
            seconds=round(attempt.seconds, 6),
            money=attempt.result.money,
            cost=cost(attempt.result.usage, self._prices),
            error=error.message if error else "",
            notes=attempt.result.notes,
        )
        told = nudged(attempt.result.nudges, at, run, attempt.step)
        withheld = (Withheld(at=at, run=run, step=attempt.step, what=each) for each in attempt.result.withheld)
        return [*told, *withheld, ended]


def tool_of(step: Step) -> str:
    """The tool that it calls; empty for an instruction."""
    return step.call.tool if step.call else ""


def _on_occasion(step: Step, goal: Goal) -> Step:
    """The step as it is done under this goal: what is wanted anew is another effect than the one before."""
    since = occasion(goal, step.produces)
    return step.model_copy(update={"repetition": step.repetition + since}) if since else step


def _asking(plan: Plan, finished: tuple[Attempt, ...]) -> Plan:
    """The plan in which steps that need a person's word in the middle wait for it; they have not failed."""
    waiting = (each for each in finished if each.result.asks or each.result.inquiries)
    return plan.with_steps(
        *(
            plan.step(each.step).as_(StepStatus.PENDING).model_copy(update=_open_questions(each.result))
            for each in waiting
            if plan.step(each.step).status is StepStatus.RUNNING
        )
    )


def _open_questions(result: Result) -> dict[str, object]:
    return {"asks": result.asks, "inquiries": result.inquiries, "delay": 0.0}


def _inputs(step: Step, world: World) -> dict[ArtifactName, Digest]:
    return {name: world.artifacts[name].digest for name in sorted(step.reads()) if name in world.artifacts}


def _from_other_inputs(step: Step, world: World) -> bool:
    """Whether what the step makes is there, made from something else than it reads now."""
    made = [world.artifacts[name] for name in step.produces if name in world.artifacts]
    return any(each.inputs != _inputs(step, world) for each in made)


def _made_before(step: Step, state: RunState) -> bool:
    """Whether the same was made from these very inputs once, whatever was made from others since."""
    world = state["world"]
    if step.idempotent or not any(name in world.artifacts for name in step.produces):
        return False
    inputs = _inputs(step, world)
    made = (each for each in state["trace"] if isinstance(each, Committed))
    return any(each.name in step.produces and each.inputs == inputs for each in made)


def _start(step: Step, state: RunState) -> str:
    """Identity of this start: by when it was, under which goal and from which inputs; a resume is the same start."""
    starts = (each for each in reversed(state["trace"]) if isinstance(each, StepStarted) and each.step == step.id)
    start = next(starts, None)
    given = state["goal"].model_dump(mode="json", exclude={"given"})
    doing = step.model_dump(mode="json", include=_DOING)
    began = start.model_dump(mode="json") if start else None
    return digest([began, given, doing, {**_inputs(step, state["world"])}])


def _kin(step: Step, plan: Plan) -> tuple[StepId, ...]:
    """This step, and those whose place it took: all that were to make the same."""
    return tuple(each.id for each in _alike(step, plan)) if step.produces else (step.id,)


def _tried_before(step: Step, plan: Plan) -> bool:
    """Whether anything was started for the same products, by this step or by one it took the place of."""
    return any(each.attempts > (each.id == step.id) for each in _alike(step, plan))


def _alike(step: Step, plan: Plan) -> Iterator[Step]:
    makers = plan.makers(step.produces[0]) if step.produces else plan.steps
    return (each for each in makers if each.key == step.key)

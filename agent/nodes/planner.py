"""Planner: goal and world in, plan out. Called only on the dispatcher's order, and charged before it runs."""

from types import MappingProxyType

from langchain_core.runnables import RunnableConfig

from agent.boundary import masked
from agent.core.acceptance import astray, same_inputs, stuck
from agent.core.answer import hints
from agent.core.chaining import Unreachable
from agent.core.contract import ToolContract
from agent.core.control import Recovery
from agent.core.failure import Classified, Origin, Scope, Trigger
from agent.core.family import expand
from agent.core.goal import Goal, completed, wanted
from agent.core.grant import granted
from agent.core.invalidation import follow, invalidate
from agent.core.ladder import Refusal, Rung, RungChoice
from agent.core.limits import Ledger, Limits
from agent.core.merge import replan, reused
from agent.core.move import Draw, Finish, PlanOrder
from agent.core.outcome import OutcomeStatus
from agent.core.phase import Phase
from agent.core.plan import Plan, StepStatus
from agent.core.record import IntentChanged, Invalidated, Planned, PlanRejected, TraceRecord, nudged
from agent.core.regrading import outgrown, regraded
from agent.core.spending import Prices, charged, cost
from agent.core.triage import Strategy, Triage
from agent.core.value import canonical
from agent.core.ways import learned
from agent.core.world import made
from agent.nodes.bodies import Bodies
from agent.nodes.state import RunState, RunUpdate
from agent.ports import Clock, NoProgress, PlanDraft, Planner, PlanningFailed, PlanRequest, Usage

ANEW = "the goal wants it made anew"
OUTGROWN = "it was made from a family that has other members now"

PREVIEW = 300
"""Characters of an artifact that a planner sees."""


class PlannerNode:
    """Draws the plan for the whole goal."""

    def __init__(
        self,
        planner: Planner,
        contracts: dict[str, ToolContract],
        bodies: Bodies,
        clock: Clock,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        prices: Prices = MappingProxyType({}),
    ) -> None:
        """Args: the planner port; what the tools promise; artifact bodies; the time; limits; money by model."""
        self._planner = planner
        self._contracts = contracts
        self._bodies = bodies
        self._clock = clock
        self._limits = limits
        self._prices = prices

    async def __call__(self, state: RunState, _config: RunnableConfig) -> RunUpdate:
        """Draw, lay the draft over the old plan, and go back to the top of the loop."""
        move = state["move"]
        assert isinstance(move, Draw)
        # a goal may have been stated anywhere; whichever way it came, its given values come in here
        goal, plan = state["goal"], state["plan"]
        world = await self._bodies.with_given(goal, state["world"])
        marked: list[TraceRecord] = []
        if plan.goal_revision != goal.revision:
            anew = made(expand(goal.again, world.artifacts), world)
            for names, cause in ((anew, ANEW), (outgrown(goal, world, plan, self._contracts), OUTGROWN)):
                world, plan, what = invalidate(world, plan, names, cause)
                marked += [Invalidated(at=self._clock.now(), run=state["ledger"].run, what=what)] if names else []
        plan = follow(world, plan)
        update = await self._draw({**state, "world": world, "plan": plan}, move.order)
        return {"world": world, "plan": plan, **update, "trace": [*marked, *update["trace"]]}

    async def _draw(self, state: RunState, order: PlanOrder) -> RunUpdate:
        request = await self._request(state, order)
        try:
            draft = await self._planner.draw(request)
            steps = learned(draft.steps, self._contracts, state["ledger"], state["plan"].steps)
            _refuse(draft.model_copy(update={"steps": steps}), request, state)
        except NoProgress as error:
            return self._thrash(state, order, error)
        except (Unreachable, PlanningFailed, ValueError) as error:
            return self._rejected(state, order, error)
        return await self._drawn(state, order, draft.model_copy(update={"steps": steps}))

    async def _request(self, state: RunState, order: PlanOrder) -> PlanRequest:
        goal, world, plan = state["goal"], state["world"], state["plan"]
        view = await self._bodies.view(world, world.artifacts)
        return PlanRequest(
            goal=goal,
            order=order,
            contracts=self._contracts,
            present={name: canonical(body)[:PREVIEW] for name, body in view.items()},
            done=tuple(f"{e.intent} -> {', '.join(e.produces)}" for e in plan.with_status(StepStatus.DONE)),
            hints=hints(plan.live()),
            wants=wanted(goal),
            alone=_alone(state.get("triage"), goal, order),
            depth=granted(self._limits, state.get("granted") or {}).depth,
            before=plan.live() if same_inputs(order.failure, world) else (),
        )

    async def _drawn(self, state: RunState, order: PlanOrder, draft: PlanDraft) -> RunUpdate:
        goal = completed(state["goal"], draft.wants, draft.criteria)
        world = state["world"]
        old = state["plan"] if state["plan"].steps else None
        plan, delta = replan(old, draft.steps, world, wanted(goal), goal.revision, draft.planner)
        at, trace = self._clock.now(), await self._regraded(goal, plan, state, order)
        trace += nudged(draft.nudges, at, state["ledger"].run)
        trace.append(
            Planned(
                at=at,
                run=state["ledger"].run,
                trigger=order.trigger,
                planner=draft.planner,
                revision=plan.revision,
                delta=delta,
                reused=reused(plan, delta, world),
                cause=order.cause,
                cost=cost(draft.usage, self._prices),
            )
        )
        return {
            "goal": goal,
            "plan": plan,
            "order": None,
            "unresolved": (),
            "ledger": _charged(state["ledger"], draft, self._prices),
            "phase": Phase.DISPATCHER,
            "trace": trace,
        }

    async def _regraded(self, goal: Goal, plan: Plan, state: RunState, order: PlanOrder) -> list[TraceRecord]:
        """What finished work counts for, when the goal is another than it was made for."""
        if order.trigger is not Trigger.INTENT_CHANGE:
            return []
        world, run = state["world"], state["ledger"].run
        found = regraded(goal, world, plan, await self._bodies.view(world, wanted(goal)))
        return [
            IntentChanged(
                at=self._clock.now(),
                run=run,
                goal_revision=goal.revision,
                still_serving=found.serving,
                set_aside=found.set_aside,
                grades=found.grades,
            )
        ]

    def _rejected(self, state: RunState, order: PlanOrder, error: ValueError) -> RunUpdate:
        """A planner that throws is paid for as well; without a plan the run ends, with what it has."""
        reason = masked(str(error))
        proof = tuple(str(each) for each in error.needs) if isinstance(error, Unreachable) else ()
        return {
            "order": None,
            "move": Finish(status=OutcomeStatus.UNREACHABLE, reason=reason, proof=proof),
            "ledger": _charged(state["ledger"], error, self._prices),
            "phase": Phase.FINISHER,
            "trace": self._refusal(state, order, error),
        }

    def _refusal(self, state: RunState, order: PlanOrder, error: ValueError) -> list[TraceRecord]:
        """That there is no plan, and what the planner was told before."""
        at, run = self._clock.now(), state["ledger"].run
        told = nudged(error.nudges if isinstance(error, PlanningFailed) else (), at, run)
        rejected = PlanRejected(
            at=at,
            run=run,
            trigger=order.trigger,
            reason=masked(str(error)),
            cause=order.cause,
            cost=cost(_usage(error), self._prices),
        )
        return [*told, rejected]

    def _thrash(self, state: RunState, order: PlanOrder, error: NoProgress) -> RunUpdate:
        """Another plan of the same shape cannot help: what was learned goes to a person (seed 4)."""
        if order.failure is None:
            return self._rejected(state, order, error)
        classified = Classified(failure=order.failure, scope=Scope.GOAL, origin=Origin.AGENT, rule="thrash")
        passed = (Refusal(rung=Rung.REPLAN, reason=str(error)),)
        choice = RungChoice(rung=Rung.ESCALATE, start=Rung.REPLAN, passed=passed)
        return {
            "order": None,
            "unresolved": (*state["unresolved"], Recovery(classified=classified, choice=choice)),
            "ledger": _charged(state["ledger"], error, self._prices).add(escalate=1),
            "phase": Phase.DISPATCHER,
            "trace": self._refusal(state, order, error),
        }


def _alone(chosen: Triage | None, goal: Goal, order: PlanOrder) -> bool:
    """Whether one step is to do all of it; what broke is planned after all."""
    single = chosen is not None and chosen.strategy is Strategy.SINGLE and chosen.goal_revision == goal.revision
    return single and order.failure is None and not wanted(goal)


def _charged(ledger: Ledger, drawn: PlanDraft | ValueError, prices: Prices) -> Ledger:
    """A draw without a model counts as one call: planning again and again is thrash. No plan costs nothing."""
    usage = drawn.usage if isinstance(drawn, PlanDraft) else _usage(drawn)
    free = isinstance(drawn, PlanDraft) and drawn.planner == Strategy.SINGLE
    return charged(ledger, "planner", usage, prices).add(planner_calls=0 if usage.calls or free else 1)


def _usage(error: ValueError) -> Usage:
    return error.usage if isinstance(error, PlanningFailed) else Usage()


def _refuse(draft: PlanDraft, request: PlanRequest, state: RunState) -> None:
    """Whoever drew it: a plan may not leave the goal, nor bring back what failed already.

    Raises:
        PlanningFailed: the goal is worded anew, or something of it is served by nothing.
        NoProgress: a call that was proven wrong, or the step that failed, on the same inputs.
    """
    running = (name for each in state["plan"].with_status(StepStatus.RUNNING) for name in each.produces)
    gone = astray(request.goal, draft.steps, draft.wants, draft.criteria, (*request.present, *running))
    if gone:
        raise PlanningFailed("; ".join(gone), draft.usage, draft.nudges)
    same = stuck(draft.steps, state["ledger"], request.order.failure, request.before, request.present)
    if same:
        raise NoProgress(same, draft.usage, draft.nudges)

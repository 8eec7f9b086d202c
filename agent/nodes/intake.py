"""Intake: a new run, the same goal once more, a changed goal, or a chat message. Nothing finished is forgotten."""

from dataclasses import dataclass, field

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from agent.core.contract import Contracts
from agent.core.goal import Goal, to_ask_again, unjudgeable
from agent.core.invalidation import follow, settle
from agent.core.limits import Ledger
from agent.core.outcome import OutcomeStatus, conclude
from agent.core.phase import Phase
from agent.core.plan import Plan, StepStatus
from agent.core.record import RunStarted, TraceRecord, Triaged
from agent.core.triage import Strategy, Triage, signs_of, triage
from agent.core.world import World, with_facts
from agent.nodes.state import RunState, RunUpdate, take_goal
from agent.ports import Clock

STRATEGY = "strategy"
"""Where a caller demands one for a call in `config["configurable"]`; a context is settings of one call."""


_NO_JUDGE = (
    "criterion {0.id}, {0.text!r}, has no predicate, so that only a model can judge it, and none is there: set "
    "KINTSUGI_MODEL or KINTSUGI_MODELS__JUDGE__MODEL, give it a predicate, or state the fact judged:{0.id}"
)


@dataclass(frozen=True)
class Sight:
    """What triage sees besides the goal."""

    contracts: Contracts = field(default_factory=dict)
    plannable: Contracts = field(default_factory=dict)
    """Those that somebody wrote."""
    loop: bool = False
    """There is a model to carry out a step."""
    judging: bool = False
    """There is a judge."""
    strategy: Strategy | None = None
    """Demanded for every call that does not say otherwise."""


class Intake:
    """Takes in what the caller states and opens a run on it."""

    def __init__(self, clock: Clock, sight: Sight = Sight(), goal: Goal = Goal()) -> None:  # noqa: B008 - frozen
        """Args: the time; what triage sees besides the goal; the goal of a thread on which none is stated."""
        self._clock = clock
        self._sight = sight
        self._goal = goal

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Open a run. The ledger starts afresh; world and plan are kept."""
        stated = _stated(state)
        goal = self._goal if stated.same_intent(Goal()) else stated
        # a person may have marked an artifact between two runs: what was made from it follows
        world = settle(to_ask_again(with_facts(state.get("world") or World(), state.get("facts") or {})))
        plan = follow(world, state.get("plan") or Plan())
        ledger = _next_ledger(state)
        started = RunStarted(
            at=self._clock.now(),
            run=ledger.run,
            goal=goal.text or ", ".join(goal.wants),
            goal_revision=goal.revision,
            resumed=bool(world.artifacts.keys() - goal.given.keys()),
        )
        chosen = self._triage(state, goal, plan, world, config)
        told = Triaged(at=started.at, run=ledger.run, chosen=chosen)
        update: RunUpdate = {**_opened(goal, world, _woken(plan), ledger, [started, told]), "triage": chosen}
        if update["phase"] is Phase.DISPATCHER and not self._sight.judging and (open_ := unjudgeable(goal, world)):
            outcome = conclude(OutcomeStatus.UNREACHABLE, _NO_JUDGE.format(open_), goal, plan, world, {})
            return {**update, "phase": Phase.FINISHER, "outcome": outcome}
        come_in = tuple(each for each in state.get("attempts") or () if each.step in plan.index.places)
        if come_in and update["phase"] is Phase.DISPATCHER:
            # what an earlier run brought in and could not verify any more is not done again for that
            return {**update, "attempts": come_in, "phase": Phase.VERIFIER}
        return update

    def _triage(self, state: RunState, goal: Goal, plan: Plan, world: World, config: RunnableConfig) -> Triage:
        """How much machinery the goal gets; a plan that stands goes on as it was drawn."""
        before, sight = state.get("triage"), self._sight
        asked = _demanded(config) or sight.strategy
        if before is not None and before.asked == asked and plan.revision and plan.goal_revision == goal.revision:
            return triage(before.signs, asked, goal.revision)
        present = [name for name in world.artifacts if world.holds(name)]
        return triage(signs_of(goal, sight.contracts, sight.plannable, present, sight.loop), asked, goal.revision)


def _demanded(config: RunnableConfig) -> Strategy | None:
    """The strategy that the caller of this call demands.

    Raises:
        ValueError: there is no such strategy.
    """
    said = config.get("configurable", {}).get(STRATEGY)
    if said in (None, "", "auto"):
        return None
    if said not in set(Strategy):
        raise ValueError(f"there is no strategy {said!r}; it is one of: auto, {', '.join(Strategy)}")
    return Strategy(said)


def _opened(goal: Goal, world: World, plan: Plan, ledger: Ledger, trace: list[TraceRecord]) -> RunUpdate:
    update: RunUpdate = {
        "goal": goal,
        "world": world.ticked(),  # nobody knows how long ago the last look was
        "plan": plan,
        "ledger": ledger,
        "phase": Phase.DISPATCHER,
        "move": None,
        "order": None,
        "attempts": (),
        "failures": (),
        "recoveries": (),
        "unresolved": (),
        "outcome": None,
        "trace": trace,
    }
    if goal.same_intent(Goal()):
        update["phase"] = Phase.FINISHER
        reason = "no goal was given: state wants and criteria, or, with a model, a text"
        update["outcome"] = conclude(OutcomeStatus.UNREACHABLE, reason, goal, plan, world, {})
    return update


def _stated(state: RunState) -> Goal:
    """The goal as given, or the last human message where the goal is empty or older than the message."""
    goal = state.get("goal") or Goal()
    text = _last_human(state.get("messages") or [])
    if text is None or text == goal.text:
        return goal
    return take_goal(goal, Goal(text=text))


def _last_human(messages: list[AnyMessage]) -> str | None:
    """Text of the last message, when a person wrote it; the runtime's own reports follow what they answer."""
    last = messages[-1] if messages else None
    return str(last.text).strip() or None if isinstance(last, HumanMessage) else None


def _next_ledger(state: RunState) -> Ledger:
    old = state.get("ledger")
    return Ledger(run=old.run + 1) if old is not None and state.get("trace") else Ledger()


def _woken(plan: Plan) -> Plan:
    """Steps that were given up on are tried again in a new run; `running` ones are started by the executor."""
    return plan.with_steps(*(each.as_(StepStatus.PENDING) for each in plan.with_status(StepStatus.FAILED)))

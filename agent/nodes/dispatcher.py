"""Dispatcher: the top of the loop. Asks the core for the next move, and marks steps running before they start."""

from langchain_core.runnables import RunnableConfig

from agent.core.consent import Consent, Words, as_allowed, held_calls, shown
from agent.core.contract import EffectClass
from agent.core.dispatch import View, next_move, readers
from agent.core.goal import Goal
from agent.core.grant import granted
from agent.core.invalidation import up_to_date
from agent.core.limits import Limits
from agent.core.move import LEADS_TO, Broken, Move, Pause, Start
from agent.core.outcome import Outcome, OutcomeStatus, conclude
from agent.core.plan import Plan, StepId, StepStatus
from agent.core.question import still_open
from agent.core.record import Paused, StepStarted, TraceRecord
from agent.core.world import World
from agent.nodes.bodies import Bodies
from agent.nodes.scope import scope_of, thread_of
from agent.nodes.state import RunState, RunUpdate, take_goal
from agent.ports import Clock, Inbox


class Dispatcher:
    """Decides what happens next."""

    def __init__(
        self, limits: Limits, consent: Consent, bodies: Bodies, inbox: Inbox, clock: Clock, judging: bool = False
    ) -> None:
        """Args: what a run may use; calls that wait for a person; bodies; changed goals; the time; is there a judge."""
        self._limits = limits
        self._consent = consent
        self._bodies = bodies
        self._inbox = inbox
        self._clock = clock
        self._judging = judging

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Take one decision and write down what it means for the plan."""
        letter = await self._inbox.newer(thread_of(config), state.get("heard") or 0)
        goal = take_goal(state["goal"], letter.goal) if letter else state["goal"]
        plan, world = state["plan"], state["world"]
        if world.news is None:  # it comes out of a checkpoint, where a person may have edited it
            world, plan = up_to_date(world, plan)
        scope = scope_of(config)
        ledger = state["ledger"].add(moves=1)
        ledger = ledger.model_copy(update={"seconds": scope.seconds(ledger.seconds)})
        limits, words = granted(self._limits, state.get("granted") or {}), state.get("allowed") or {}
        view = await self._bodies.view(world, readers(plan, goal, world) | shown(plan, world, self._consent))
        unresolved = bool(still_open(state["unresolved"], plan))
        held = frozenset(each.step for each in held_calls(plan, world, view, self._consent, words))
        move = next_move(
            goal, world, plan, view, limits, ledger, state["order"], unresolved, held, scope.halt, self._judging
        )
        scope.allow(limits.seconds - ledger.seconds)
        if isinstance(move, Pause):
            scope.pause(move.reason)
            plan = _laid_down(plan)
        started = move.steps if isinstance(move, Start) else ()
        return {
            "goal": goal,
            "world": world,
            "heard": letter.number if letter else state.get("heard") or 0,
            "plan": _running(self._as_allowed(plan, started, view, words), started),
            "ledger": ledger.add(steps=len(started)),
            "move": move,
            "phase": LEADS_TO[move.move],
            "failures": move.failures if isinstance(move, Broken) else (),
            "outcome": _so_far(move, goal, plan, world, view),
            "trace": self._records(plan, move, ledger.run),
        }

    def _as_allowed(self, plan: Plan, started: tuple[StepId, ...], view: View, words: Words) -> Plan:
        """The plan in which the steps that start make the calls that a person has allowed."""
        if not words:
            return plan
        starting = (plan.step(each) for each in started)
        return plan.with_steps(*(as_allowed(each, view, self._consent, words) for each in starting))

    def _records(self, plan: Plan, move: Move, run: int) -> list[TraceRecord]:
        at = self._clock.now()
        if isinstance(move, Pause):
            return [Paused(at=at, run=run, reason=move.reason)]
        if not isinstance(move, Start):
            return []
        steps = [plan.step(each) for each in move.steps]
        return [
            StepStarted(at=at, run=run, step=each.id, intent=each.intent, attempt=each.attempts + 1, delay=each.delay)
            for each in steps
        ]


def _so_far(move: Move, goal: Goal, plan: Plan, world: World, view: View) -> Outcome | None:
    """What a run has achieved that is stopped here; None while it goes on."""
    if not isinstance(move, Pause):
        return None
    return conclude(OutcomeStatus.CANCELLED, move.reason, goal, plan, world, view)


def _laid_down(plan: Plan) -> Plan:
    """The plan in which what only reads is to do again: another goal may come before the run goes on."""
    reading = (each for each in plan.with_status(StepStatus.RUNNING) if each.effect is EffectClass.READ_ONLY)
    return plan.with_steps(*(each.as_(StepStatus.PENDING) for each in reading))


def _running(plan: Plan, started: tuple[StepId, ...]) -> Plan:
    starting = (plan.step(each) for each in started)
    return plan.with_steps(
        *(
            each.model_copy(
                update={
                    "status": StepStatus.RUNNING,
                    "reason": "",
                    "attempts": each.attempts + 1,
                    "asks": (),
                    "inquiries": (),
                }
            )
            for each in starting
        )
    )

"""Dispatcher: the top of the loop. Asks the core for the next move, and marks steps running before they start."""

from langchain_core.runnables import RunnableConfig

from agent.core.answer import still_open
from agent.core.dispatch import next_move, readers
from agent.core.limits import Limits
from agent.core.move import LEADS_TO, Broken, Move, Start
from agent.core.plan import Plan, StepStatus
from agent.core.record import StepStarted, TraceRecord
from agent.nodes.bodies import Bodies
from agent.nodes.scope import scope_of, thread_of
from agent.nodes.state import RunState, RunUpdate, take_goal
from agent.ports import Clock, Inbox


class Dispatcher:
    """Decides what happens next."""

    def __init__(self, limits: Limits, bodies: Bodies, inbox: Inbox, clock: Clock) -> None:
        """Args: what a run may use; artifact bodies for predicates; changed goals; the time."""
        self._limits = limits
        self._bodies = bodies
        self._inbox = inbox
        self._clock = clock

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Take one decision and write down what it means for the plan."""
        letter = await self._inbox.newer(thread_of(config), state.get("heard") or 0)
        goal = take_goal(state["goal"], letter.goal) if letter else state["goal"]
        plan, world = state["plan"], state["world"]
        ledger = state["ledger"].add(moves=1, seconds=scope_of(config).elapsed())
        view = await self._bodies.view(world, readers(plan, goal, world))
        unresolved = bool(still_open(state["unresolved"], plan))
        move = next_move(goal, world, plan, view, self._limits, ledger, state["order"], unresolved)
        started = move.steps if isinstance(move, Start) else ()
        return {
            "goal": goal,
            "heard": letter.number if letter else state.get("heard") or 0,
            "plan": _running(plan, started),
            "ledger": ledger.add(steps=len(started)),
            "move": move,
            "phase": LEADS_TO[move.move],
            "failures": move.failures if isinstance(move, Broken) else (),
            "trace": self._records(plan, move, ledger.run),
        }

    def _records(self, plan: Plan, move: Move, run: int) -> list[TraceRecord]:
        if not isinstance(move, Start):
            return []
        steps = [plan.step(each) for each in move.steps]
        at = self._clock.now()
        return [
            StepStarted(at=at, run=run, step=each.id, intent=each.intent, attempt=each.attempts + 1, delay=each.delay)
            for each in steps
        ]


def _running(plan: Plan, started: tuple[str, ...]) -> Plan:
    return plan.with_steps(
        *(
            each.as_(StepStatus.RUNNING).model_copy(update={"attempts": each.attempts + 1})
            for each in plan.steps
            if each.id in started
        )
    )

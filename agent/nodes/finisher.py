"""Finisher: every run ends here, judged against plan and goal, with whatever was achieved."""

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from agent.core.move import Finish
from agent.core.outcome import Outcome, borne_out, completion, conclude, untold
from agent.core.phase import Phase
from agent.core.plan import Plan, StepStatus
from agent.core.predicate import reads
from agent.core.record import Ended
from agent.nodes.bodies import Bodies
from agent.nodes.scope import scope_of
from agent.nodes.state import RunState, RunUpdate
from agent.ports import Clock, Turns


class Finisher:
    """Writes the outcome."""

    def __init__(self, bodies: Bodies, clock: Clock, turns: Turns | None = None) -> None:
        """Args: artifact bodies for the last grading; the time; what was said in attempts, for it ends with the run."""
        self._turns = turns
        self._bodies = bodies
        self._clock = clock

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Conclude. A claim of success that the grades do not bear out is not made."""
        hold = scope_of(config).hold
        if self._turns and hold:
            await self._turns.sweep(hold.thread, (), hold.token)
        outcome = state["outcome"] or await self._conclude(state)
        ledger, move = state["ledger"], state["move"]
        ended = Ended(
            at=self._clock.now(),
            run=ledger.run,
            status=outcome.status,
            reason=outcome.reason,
            verified=ledger.verified,
            claimed=move.status if isinstance(move, Finish) else None,
            missing=outcome.missing,
            stop=move.stop if isinstance(move, Finish) else None,
            spent=ledger,
        )
        # what only reads and is still in flight ends with the run; it is to do again, not running
        idle = state["plan"].with_steps(
            *(each.as_(StepStatus.PENDING) for each in state["plan"].with_status(StepStatus.RUNNING))
        )
        return {
            "outcome": outcome,
            "plan": idle,
            "phase": Phase.END,
            "trace": [ended],
            "messages": [AIMessage(content=_report(outcome, state["plan"]))],
        }

    async def _conclude(self, state: RunState) -> Outcome:
        move, goal, plan, world = state["move"], state["goal"], state["plan"], state["world"]
        assert isinstance(move, Finish)
        named = {name for each in goal.criteria if each.predicate for name in reads(each.predicate)}
        view = await self._bodies.view(world, named)
        missing = completion(goal, plan, world, view).missing
        status = borne_out(move.status, missing)
        reason = move.reason if status is move.status else "; ".join(missing)
        outcome = conclude(status, reason, goal, plan, world, view, move.proof)
        return outcome.model_copy(update={"limit": move.stop.limit if move.stop else ""})


def _report(outcome: Outcome, plan: Plan) -> str:
    """The summary, and what was done and is not in it."""
    said = summary(outcome)
    return "\n".join((said, *(f"- missing: {each}" for each in untold(plan, outcome, said))))


def summary(outcome: Outcome) -> str:
    """The outcome in a few lines, for chat mode: only verified artifacts are shown, and what is missing is said.

    Of reasons only the first line: what follows is evidence, in which a model may claim anything.
    """
    lines = [f"{outcome.status}: {_headline(outcome.reason)}"]
    lines += [f"- {each.name} (version {each.version})" for each in outcome.artifacts.values() if each.valid]
    lines += [f"- not done: {step}: {_headline(why)}" for step, why in outcome.unfinished.items()]
    lines += [f"- left out: {step}: {_headline(why)}" for step, why in outcome.skipped.items()]
    lines += [f"- missing: {each}" for each in outcome.missing if "does not hold" in each]
    return "\n".join(lines)


def _headline(text: str) -> str:
    return next(iter(text.splitlines()), "")

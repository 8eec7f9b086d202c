"""What does each answer of a person do to the run? Carried out one after the other; what is unanswered stays open."""

from collections.abc import Mapping

from agent.core.answer import (
    advised,
    calls_wrongly,
    edited,
    forgiven,
    hinted,
    may_repeat,
    reopened,
    skipped,
    tried_again,
)
from agent.core.consent import Held, allowed_as_it_is, given_word
from agent.core.contract import Contracts
from agent.core.control import Answer, Choice, Recovery
from agent.core.invalidation import up_to_date
from agent.core.ladder import Rung, RungChoice
from agent.core.limits import Ledger
from agent.core.move import Finish
from agent.core.outcome import OutcomeStatus
from agent.core.phase import Phase
from agent.core.plan import StepId, StepStatus
from agent.core.value import JsonValue
from agent.core.verification import products_of
from agent.core.ways import remember
from agent.core.world import Verification, commit
from agent.nodes.bodies import Bodies
from agent.nodes.state import RunState, RunUpdate, take_goal

PERSON = "person"

Asked = Mapping[str, Recovery | Held]
"""What each open question is about, by its id."""


class Replies:
    """Carries out what a person said."""

    def __init__(self, contracts: Contracts, bodies: Bodies) -> None:
        """Args: what the tools promise; artifact bodies."""
        self._contracts = contracts
        self._bodies = bodies

    async def carry_out(self, state: RunState, asked: Asked, answers: Mapping[str, Answer]) -> RunUpdate:
        """The run after the answers."""
        update: RunUpdate = {
            "goal": state["goal"],
            "world": state["world"].ticked(),  # nobody knows how long the question was open
            "plan": state["plan"],
            "ledger": state["ledger"],
            "granted": state.get("granted") or {},
            "allowed": state.get("allowed") or {},
            "recoveries": (),
            "phase": Phase.DISPATCHER,
        }
        for id_, answer in answers.items():
            await self._take(asked[id_], answer, update)
        update["unresolved"] = tuple(
            each for id_, each in asked.items() if id_ not in answers and isinstance(each, Recovery)
        )
        if update["recoveries"] and update["phase"] is Phase.DISPATCHER:
            update["phase"] = Phase.REPAIRER
        return update

    async def _take(self, about: Recovery | Held, answer: Answer, update: RunUpdate) -> None:
        step = about.step if isinstance(about, Held) else about.classified.failure.step
        match answer.choice:
            case Choice.SKIP:
                assert step is not None
                update["plan"] = skipped(update["plan"], step, answer.reason)
            case Choice.GOAL:
                update["goal"] = take_goal(update["goal"], answer.goal)
            case Choice.ABORT:
                reason = answer.reason or "a person ended the run"
                update["move"] = Finish(status=OutcomeStatus.CANCELLED, reason=reason)
                update["phase"] = Phase.FINISHER
            case _ if isinstance(about, Held):
                await self._allow(about, answer, update)
            case _:
                await self._mend(about, answer, update)

    async def _allow(self, held: Held, answer: Answer, update: RunUpdate) -> None:
        """A person's word for a call that has not been made, or has asked for it."""
        match answer.choice:
            case Choice.ANSWER:
                update["allowed"] = {**update["allowed"], held.identity: {"said": answer.value}}
            case Choice.HINT:
                update["plan"] = hinted(update["plan"], held.step, answer.hint)
            case Choice.APPROVE | Choice.EDIT:
                view = await self._view(held.step, update)
                update["allowed"] = {**update["allowed"], **given_word(held, answer.args, view)}

    async def _mend(self, recovery: Recovery, answer: Answer, update: RunUpdate) -> None:
        """What a person does about a failure."""
        step, repeat = recovery.classified.failure.step, may_repeat(recovery, self._contracts)
        match answer.choice:
            case Choice.ANSWER:
                await self._provided(recovery, answer.value, update)
                return
            case Choice.RAISE:
                update["granted"] = {**update["granted"], **answer.limits}
                update["ledger"] = reopened(update["ledger"], recovery)
                update["plan"] = tried_again(update["plan"], step)
                return
            case Choice.EDIT:
                assert step is not None
                before = update["plan"].step(step).call
                update["plan"] = edited(update["plan"], step, answer.args)
                # another call is another effect by itself: as a repetition no later plan would find that it was made
                repeat = repeat and update["plan"].step(step).call == before
                word = allowed_as_it_is(update["plan"].step(step), await self._view(step, update))
                update["allowed"] = {**update["allowed"], **word}
            case Choice.HINT:
                self._hint(recovery, answer.hint, update)
        update["ledger"] = self._forgiven(recovery, update)
        lost = recovery.classified.failure.error.lost
        update["plan"] = tried_again(update["plan"], step, repeat, lost)

    def _forgiven(self, recovery: Recovery, update: RunUpdate) -> Ledger:
        """Fresh budgets; a call that goes to be mended is still known to be wrong."""
        ledger, step = forgiven(update["ledger"], recovery), recovery.classified.failure.step
        mending = any(each.classified == recovery.classified for each in update["recoveries"])
        return remember(ledger, update["plan"].step(step)) if mending and step else ledger

    def _hint(self, recovery: Recovery, hint: str, update: RunUpdate) -> None:
        """Keep the hint where the next one to work on it looks; a wrong call goes straight to whoever can mend it."""
        step = recovery.classified.failure.step
        update["plan"] = hinted(update["plan"], step, hint)
        if step is None:
            update["order"] = advised(recovery, hint)
        elif calls_wrongly(update["plan"].step(step), update["ledger"]):
            patch = RungChoice(rung=Rung.PATCH, start=Rung.PATCH)
            mended = recovery.model_copy(update={"choice": patch})
            update["recoveries"] = (*update["recoveries"], mended)

    async def _provided(self, recovery: Recovery, value: JsonValue, update: RunUpdate) -> None:
        """A person supplies the artifact itself; it is marked as theirs."""
        assert recovery.classified.failure.step is not None
        step = update["plan"].step(recovery.classified.failure.step)
        products = products_of(step, value)
        assert products is not None, "an answer that does not fit was taken"
        inputs = update["world"].digests(step.reads())
        for name, body in products.items():
            made = await self._bodies.artifact(name, body, step.id, Verification(by=(PERSON,)), inputs)
            update["world"] = commit(update["world"], made)
        done = update["plan"].with_steps(step.as_(StepStatus.DONE))
        update["world"], update["plan"] = up_to_date(update["world"], done)

    async def _view(self, step: StepId, update: RunUpdate) -> dict[str, JsonValue]:
        return await self._bodies.view(update["world"], update["plan"].step(step).reads())

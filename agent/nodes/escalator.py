"""Escalator: one interrupt, with the ladder's history and the choices; nothing before it has an effect."""

from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from agent.core.answer import (
    fitting_answers,
    forgiven,
    may_repeat,
    question_about,
    skipped,
    still_open,
    tried_again,
)
from agent.core.contract import ToolContract
from agent.core.control import Answer, Choice, Question, Questions, Recovery
from agent.core.invalidation import follow, settle
from agent.core.limits import Limits
from agent.core.move import Finish
from agent.core.outcome import OutcomeStatus
from agent.core.phase import Phase
from agent.core.plan import Plan, StepStatus
from agent.core.record import Answered, Escalated
from agent.core.value import JsonValue
from agent.core.verification import products_of
from agent.core.world import Verification, commit
from agent.nodes.bodies import Bodies
from agent.nodes.scope import scope_of
from agent.nodes.state import RunState, RunUpdate, take_goal
from agent.ports import Clock

PERSON = "person"


class Escalator:
    """Asks a person about everything that could not be recovered, all at once."""

    def __init__(
        self, asks: bool, contracts: dict[str, ToolContract], limits: Limits, bodies: Bodies, clock: Clock
    ) -> None:
        """Args: whether a person may be asked at all; contracts; how often; artifact bodies; the time."""
        self._asks = asks
        self._contracts = contracts
        self._limits = limits
        self._bodies = bodies
        self._clock = clock

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Ask, or hand over when nobody can be asked."""
        unresolved = still_open(state["unresolved"], state["plan"])
        asked = (question_about(each, state["plan"], state["ledger"]) for each in unresolved)
        questions = {each.id: each for each in asked}
        durable = config.get("configurable", {}).get("__pregel_checkpointer") is not None
        if not self._asks or not durable or state["ledger"].escalate > self._limits.escalate:
            return self._handed_over(state, questions)
        answers = _ask(questions, state["plan"])
        scope_of(config).elapsed()  # the time a person took is not the run's
        by_id = dict(zip(questions, unresolved, strict=True))
        return await self._apply(state, questions, by_id, answers)

    async def _apply(
        self, state: RunState, questions: dict[str, Question], by_id: dict[str, Recovery], answers: dict[str, Answer]
    ) -> RunUpdate:
        update: RunUpdate = {
            "goal": state["goal"],
            "world": state["world"],
            "plan": state["plan"],
            "ledger": state["ledger"],
            "phase": Phase.DISPATCHER,
            "trace": [*self._asked(state, questions), *self._answered(state, answers)],
        }
        for id_, answer in answers.items():
            await self._take(by_id[id_], answer, update)
        update["unresolved"] = tuple(each for id_, each in by_id.items() if id_ not in answers)
        return update

    async def _take(self, recovery: Recovery, answer: Answer, update: RunUpdate) -> None:
        step = recovery.classified.failure.step
        match answer.choice:
            case Choice.RETRY:
                update["ledger"] = forgiven(update["ledger"], recovery)
                update["plan"] = tried_again(update["plan"], step, may_repeat(recovery, self._contracts))
            case Choice.SKIP:
                assert step is not None
                update["plan"] = skipped(update["plan"], step, answer.reason)
            case Choice.ANSWER:
                await self._provided(recovery, answer.value, update)
            case Choice.GOAL:
                update["goal"] = take_goal(update["goal"], answer.goal)
            case Choice.ABORT:
                update["move"] = Finish(
                    status=OutcomeStatus.CANCELLED, reason=answer.reason or "a person ended the run"
                )
                update["phase"] = Phase.FINISHER

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
        update["world"] = settle(update["world"])
        update["plan"] = follow(update["world"], update["plan"].with_steps(step.as_(StepStatus.DONE)))

    def _handed_over(self, state: RunState, questions: dict[str, Question]) -> RunUpdate:
        reason = "; ".join(each.summary for each in questions.values())
        return {
            "move": Finish(status=OutcomeStatus.HANDED_OVER, reason=reason),
            "phase": Phase.FINISHER,
            "trace": self._asked(state, questions),
        }

    def _asked(self, state: RunState, questions: dict[str, Question]) -> list[Escalated]:
        at, run = self._clock.now(), state["ledger"].run
        return [Escalated(at=at, run=run, id=id_, question=each.question) for id_, each in questions.items()]

    def _answered(self, state: RunState, answers: dict[str, Answer]) -> list[Answered]:
        at, run = self._clock.now(), state["ledger"].run
        return [
            Answered(at=at, run=run, id=id_, answer=each.model_dump(mode="json", exclude={"goal"}))
            for id_, each in answers.items()
        ]


def _ask(questions: dict[str, Question], plan: Plan) -> dict[str, Answer]:
    """Ask until an answer fits. One that does not is refused with its reason, and nothing else happens.

    An exception would not do: the bad answer would be given again at every resume.
    """
    payload = Questions(questions=questions)
    while True:
        given: JsonValue = interrupt(payload.model_dump(mode="json"))
        try:
            return fitting_answers(given, questions, plan)
        except ValueError as error:
            payload = Questions(questions=questions, refused=str(error))

"""Escalator: one interrupt, with the ladder's history and the choices; nothing before it has an effect."""

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from agent.core.answer import fitting_answers
from agent.core.consent import Consent, Held, held_calls, shown
from agent.core.control import Answer, Question, Questions, Recovery
from agent.core.grant import granted
from agent.core.limits import Limits
from agent.core.move import Finish
from agent.core.outcome import OutcomeStatus
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.question import Asking, Schemas, question_about, question_before, still_open
from agent.core.record import Answered, Committed, Escalated, TraceRecord
from agent.core.value import JsonValue
from agent.nodes.bodies import Bodies
from agent.nodes.replies import PERSON, Asked, Replies
from agent.nodes.scope import thread_of
from agent.nodes.state import RunState, RunUpdate, take_goal
from agent.ports import Clock, Inbox, Letter


class Escalator:
    """Asks a person about everything that could not be recovered or waits for their word, all at once."""

    def __init__(
        self,
        asks: bool,
        readers: bool,
        consent: Consent,
        limits: Limits,
        schemas: Schemas,
        bodies: Bodies,
        inbox: Inbox,
        clock: Clock,
    ) -> None:
        """Ask under these conditions.

        Args:
            asks: whether a person may be asked at all.
            readers: whether a model is there to read a hint.
            consent: which calls wait for a word.
            limits: how often a person may be asked, and what they may raise.
            schemas: arguments of the tools, for whoever edits a call.
            bodies: artifact bodies, to show the arguments as they would be sent.
            inbox: goals that were changed while the question was open.
            clock: the time.
        """
        self._asks = asks
        self._readers = readers
        self._consent = consent
        self._limits = limits
        self._schemas = dict(schemas)
        self._bodies = bodies
        self._inbox = inbox
        self._clock = clock
        self._replies = Replies(consent.contracts, bodies)

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Ask, or hand over when nobody can be asked."""
        asked, questions = await self._open(state)
        if not questions or state["goal"].revision != state["plan"].goal_revision:
            return {"phase": Phase.DISPATCHER}  # an edit of the state has settled it, or made it a thing of the past
        if not self._may_ask(state, config):
            return self._handed_over(state, questions)
        said = await self._said(questions, state, config)
        if isinstance(said, Letter):
            goal = take_goal(state["goal"], said.goal)
            return {"goal": goal, "heard": said.number, "phase": Phase.DISPATCHER}
        update = await self._replies.carry_out(state, asked, said)
        trace: list[TraceRecord] = [
            *self._asked(state, questions),
            *self._answered(state, said),
            *self._given(state, update),
        ]
        return {**update, "trace": trace}

    async def _open(self, state: RunState) -> tuple[Asked, dict[str, Question]]:
        """Everything there is to ask, with what it is about, by id."""
        plan, world = state["plan"], state["world"]
        asking = Asking(
            plan=plan,
            ledger=state["ledger"],
            limits=self._granted(state),
            schemas=self._schemas,
            readers=self._readers,
            answered=_answered_before(state),
        )
        view = await self._bodies.view(world, shown(plan, world, self._consent))
        held = held_calls(plan, world, view, self._consent, state.get("allowed") or {})
        unresolved = still_open(state["unresolved"], plan)
        about: list[tuple[Question, Recovery | Held]] = [(question_about(each, asking), each) for each in unresolved]
        about += [(question_before(each, asking), each) for each in held]
        return {each.id: one for each, one in about}, {each.id: each for each, _ in about}

    def _may_ask(self, state: RunState, config: RunnableConfig) -> bool:
        durable = config.get("configurable", {}).get("__pregel_checkpointer") is not None
        return self._asks and durable and state["ledger"].escalate <= self._granted(state).escalate

    def _granted(self, state: RunState) -> Limits:
        return granted(self._limits, state.get("granted") or {})

    async def _said(
        self, questions: dict[str, Question], state: RunState, config: RunnableConfig
    ) -> dict[str, Answer] | Letter:
        """What a person answered, or the goal they have changed instead of answering."""
        try:
            return _ask(questions, state["plan"], _answered_before(state))
        except GraphInterrupt:
            letter = await self._inbox.newer(thread_of(config), state.get("heard") or 0)
            if letter is None:
                raise
            return letter

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

    def _given(self, state: RunState, update: RunUpdate) -> list[Committed]:
        """What a person has made themselves."""
        at, run = self._clock.now(), state["ledger"].run
        known = state["world"].artifacts
        made = (each for each in update["world"].artifacts.values() if each.verification.by == (PERSON,))
        return [
            Committed(
                at=at,
                run=run,
                step=None,
                name=each.name,
                version=each.version,
                digest=each.digest,
                unchanged=each.name in known and known[each.name].digest == each.digest,
                inputs=each.inputs,
            )
            for each in made
            if each.name not in known or known[each.name].verification != each.verification
        ]

    def _answered(self, state: RunState, answers: dict[str, Answer]) -> list[Answered]:
        at, run = self._clock.now(), state["ledger"].run
        return [
            Answered(at=at, run=run, id=id_, answer=each.model_dump(mode="json", exclude={"goal"}))
            for id_, each in answers.items()
        ]


def _answered_before(state: RunState) -> frozenset[str]:
    return frozenset(each.id for each in state["trace"] if isinstance(each, Answered))


def _ask(questions: dict[str, Question], plan: Plan, answered: frozenset[str]) -> dict[str, Answer]:
    """Ask until an answer fits. One that does not is refused with its reason, and nothing else happens.

    An exception would not do: the bad answer would be given again at every resume.
    """
    payload = Questions(questions=questions)
    while True:
        given: JsonValue = interrupt(payload.model_dump(mode="json"))
        try:
            return fitting_answers(given, questions, plan, answered)
        except ValueError as error:
            payload = Questions(questions=questions, refused=str(error))

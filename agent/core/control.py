"""Values that pass between phase nodes within one round: failures being recovered, questions being asked."""

from enum import StrEnum

from pydantic import Field, model_validator

from agent.core.failure import Classified, Origin, Scope, Trigger
from agent.core.goal import Goal
from agent.core.ladder import Rung, RungChoice
from agent.core.plan import Call, StepId
from agent.core.value import ArtifactName, JsonValue, Value


class Cause(Value):
    """A recovery in short, as what is done about it names it."""

    number: int
    """Of the recovery on its thread, from 1."""
    trigger: Trigger
    scope: Scope
    origin: Origin
    rung: Rung
    invalidated: tuple[ArtifactName, ...] = ()
    """Finished work that the failure took down."""


class Recovery(Value):
    """A classified failure and the rung chosen for it; what the repairer carries out."""

    classified: Classified
    choice: RungChoice
    cause: Cause | None = None
    """The same in short, by the number of its record."""


class Choice(StrEnum):
    """What a person can answer."""

    APPROVE = "approve"
    RETRY = "retry"
    HINT = "hint"
    ANSWER = "answer"
    EDIT = "edit"
    RAISE = "raise"
    SKIP = "skip"
    GOAL = "goal"
    ABORT = "abort"


class Question(Value):
    """What a person is asked: what to do about a failure, or whether a call may start."""

    id: str
    step: StepId | None = None
    question: str
    tried: tuple[str, ...] = ()
    """The ladder's history for this failure, one sentence a rung."""
    learned: tuple[str, ...] = ()
    """What is known by now: what the failure proves false, and what is certain about the effect."""
    choices: tuple[Choice, ...] = tuple(Choice)
    error: str = ""
    summary: str = ""
    """The same as one sentence for a report: what failed, how, and what was tried."""
    call: Call | None = None
    """The call in question; `edit` changes its arguments."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON schema of the call's arguments."""
    references: tuple[str, ...] = ()
    """Artifacts that an edited argument may refer to."""
    limits: dict[str, float] = Field(default_factory=dict)
    """What is allowed now; `raise` allows more."""
    asks: JsonValue = None
    """What a tool asks by itself, in its own form; the `value` of an `answer` is what it gets."""


class Answer(Value):
    """What a person said.

    `approve`: the call is made as it stands. `retry`: the step is tried again with fresh budgets. `hint`: it is
    tried again, and whoever plans, patches or carries it out sees the text. `answer`: `value` is the step's
    artifact, or what a tool gets that asked. `edit`: the call is made with `args` in place of its arguments of
    these names. `raise`: `limits` names limits and what they are to be; what was spent stays spent. `skip`: the
    step is left out, for a `reason`. `goal`: `goal` replaces the goal. `abort`: the run ends.
    """

    choice: Choice
    reason: str = ""
    hint: str = ""
    value: JsonValue = None
    args: dict[str, JsonValue] = Field(default_factory=dict)
    limits: dict[str, float] = Field(default_factory=dict)
    goal: Goal | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, data: object) -> object:
        return {"choice": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _complete(self) -> "Answer":
        needed: dict[Choice, tuple[str, object]] = {
            Choice.HINT: ("a hint", self.hint.strip()),
            Choice.EDIT: ("args: the arguments to change, by name", self.args),
            Choice.RAISE: ("limits: what they are to be, by name", self.limits),
            Choice.SKIP: ("a reason", self.reason.strip()),
            Choice.GOAL: ("a goal", self.goal),
        }
        what, given = needed.get(self.choice, ("", True))
        if not given:
            raise ValueError(f"the answer {self.choice.value!r} needs {what}")
        if self.choice is Choice.ANSWER and self.value is None:
            raise ValueError("the answer 'answer' needs a value")
        return self


class Questions(Value):
    """The payload of an interrupt: questions by id."""

    questions: dict[str, Question] = Field(default_factory=dict)
    refused: str = ""
    """Why the last answer was not taken; the questions are as open as before."""

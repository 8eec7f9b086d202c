"""Values that pass between phase nodes within one round: failures being recovered, questions being asked."""

from enum import StrEnum

from pydantic import Field, model_validator

from agent.core.failure import Classified
from agent.core.goal import Goal
from agent.core.ladder import RungChoice
from agent.core.plan import StepId
from agent.core.value import JsonValue, Value


class Recovery(Value):
    """A classified failure and the rung chosen for it; what the repairer carries out."""

    classified: Classified
    choice: RungChoice


class Choice(StrEnum):
    """What a person can answer."""

    RETRY = "retry"
    ANSWER = "answer"
    SKIP = "skip"
    GOAL = "goal"
    ABORT = "abort"


class Question(Value):
    """What a person is asked, with all that was tried."""

    id: str
    step: StepId | None = None
    question: str
    tried: tuple[str, ...] = ()
    """The ladder's history for this failure, one sentence a rung."""
    choices: tuple[Choice, ...] = tuple(Choice)
    error: str = ""
    summary: str = ""
    """The same as one sentence for a report: what failed, how, and what was tried."""


class Answer(Value):
    """What a person said.

    `retry`: the step is tried again with fresh budgets. `answer`: `value` is the step's artifact.
    `skip`: the step is left out, for a `reason`. `goal`: `goal` replaces the goal. `abort`: the run ends.
    """

    choice: Choice
    reason: str = ""
    value: JsonValue = None
    goal: Goal | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, data: object) -> object:
        return {"choice": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _complete(self) -> "Answer":
        needed = {Choice.SKIP: ("reason", self.reason.strip()), Choice.GOAL: ("goal", self.goal)}
        name, given = needed.get(self.choice, ("", True))
        if not given:
            raise ValueError(f"the answer {self.choice!r} needs a {name}")
        if self.choice is Choice.ANSWER and self.value is None:
            raise ValueError("the answer 'answer' needs a value")
        return self


class Questions(Value):
    """The payload of an interrupt: questions by id."""

    questions: dict[str, Question] = Field(default_factory=dict)
    refused: str = ""
    """Why the last answer was not taken; the questions are as open as before."""

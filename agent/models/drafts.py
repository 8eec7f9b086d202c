"""What does a model fill? Small forms. Nothing here is believed before it is checked against the registry.

Effect class, idempotency and the tools' own conditions are not asked for: they come from the contracts.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent.core.failure import Scope
from agent.core.value import JsonValue, words


def _text(value: object) -> object:
    """A list number that a model gave for an id."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _many(value: object) -> object:
    """A single item, or null, where a list is meant."""
    return () if value is None else words(value) if isinstance(value, str) else value


def _sources(value: object) -> object:
    return () if value is None else (value,) if isinstance(value, str) else value


Id = Annotated[str, BeforeValidator(_text)]
Ids = Annotated[tuple[Id, ...], BeforeValidator(_many)]
Listed = Annotated[tuple[str, ...], BeforeValidator(_many)]
Sources = Annotated[tuple[str, ...], BeforeValidator(_sources)]
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Arguments = Annotated[dict[str, JsonValue], BeforeValidator(lambda value: {} if value is None else value)]


_SUBSTEPS = ("substeps", "sub_steps", "subtasks", "children")


_NATIVE = {"name": "tool", "arguments": "args", "parameters": "args"}


class Draft(BaseModel):
    """Base of the forms: what a model adds beyond the fields is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DraftedStep(Draft):
    """One step: a tool with arguments, or an instruction with the tools to carry it out."""

    id: Id
    intent: str
    tool: Text = ""
    args: Arguments = Field(default_factory=dict)
    instruction: Text = ""
    tools: Listed = ()
    needs: Listed = ()
    produces: Listed = ()
    effects: Sources = ()
    after: Ids = ()
    steps: Annotated[tuple["DraftedStep", ...], BeforeValidator(_many)] = ()
    """Sub-steps, in place of a tool or an instruction. Not offered, but given by models all the same."""

    @model_validator(mode="before")
    @classmethod
    def _take_substeps(cls, data: object) -> object:
        """Take them under whatever name: work that is dropped without a word would never be missed."""
        if not isinstance(data, Mapping) or data.get("steps"):
            return data
        return {**data, "steps": next((data[name] for name in _SUBSTEPS if data.get(name)), ())}


class DraftedCriterion(Draft):
    """One thing that must hold at the end."""

    text: Text = ""
    predicate: str


class DraftedPlan(Draft):
    """A plan; `wants` and `criteria` say what a goal that was only text means."""

    goal: Text = ""
    """The goal in the model's words, where it gives them; they have to be those it was given."""
    steps: tuple[DraftedStep, ...]
    wants: Listed = ()
    criteria: tuple[DraftedCriterion, ...] = ()


class DraftedPatch(Draft):
    """Other arguments for a call that was wrong; null when there are none that could work."""

    reason: Text = ""
    args: dict[str, JsonValue] | None


class DraftedScope(Draft):
    """What an error proves false."""

    reason: Text = ""
    scope: Scope


class DraftedRuling(Draft):
    """A verdict on one sentence; the evidence comes first, so that it is found before the verdict is given."""

    evidence: Text = ""
    verdict: Literal["holds", "fails", "unsure"]


class DraftedAction(Draft):
    """One call of the inner loop."""

    tool: str
    args: Arguments = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, data: object) -> object:
        """Take it with or without its frame, and under the names that native calls have."""
        inner = data.get("action") if isinstance(data, dict) else None
        call = inner if isinstance(inner, dict) else data
        return {_NATIVE.get(name, name): each for name, each in call.items()} if isinstance(call, dict) else call

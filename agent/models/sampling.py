"""How often is a model asked for the same thing? Three times at most: a refused draft is sampled again.

It is drawn anew with the exact faults in view. Showing a model its own bad draft and arguing works worse.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from agent.core.failure import ErrorFacts
from agent.core.signs import TRANSIENT_STATUS, TRANSIENT_TYPES
from agent.core.spending import total
from agent.core.value import JsonValue
from agent.models.asking import overflowed
from agent.models.reading import InvalidOutput
from agent.models.structured import Structured
from agent.ports import Usage

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

RE_ASKS = 2
"""Further tries after the first; without a bound a model that always errs is asked for ever."""

Prompting = Callable[[tuple[str, ...]], list[BaseMessage]]
"""Faults of the last draft -> prompt."""


class Faults(NamedTuple):
    """Why a draft cannot be taken, one sentence each, and the reply it came in."""

    sentences: tuple[str, ...]
    raw: str = ""

    def __str__(self) -> str:
        return "; ".join(self.sentences)


class Sampled(NamedTuple, Generic[R]):
    """An accepted value, or the faults of the last draft; the cost of all tries."""

    value: R | Faults
    usage: Usage
    told: tuple[str, ...] = ()
    """What the model was told about refused drafts, in order."""
    overflowed: bool = False
    """The prompt was too long for it: a shorter one may be answered."""


async def sample(
    structured: Structured,
    prompting: Prompting,
    schema: type[T],
    wire: dict[str, JsonValue],
    accept: Callable[[T], R | Faults],
) -> Sampled[R]:
    """Ask until a draft is accepted, at most `RE_ASKS` times again."""
    faults, told, spent, nudges = Faults(()), Faults(()), Usage(), list[str]()
    for _ in range(1 + RE_ASKS):
        nudges += [str(told)] if told.sentences else []
        answer = await structured.ask(prompting(told.sentences), schema, wire)
        spent = total(spent, answer.usage)
        if isinstance(answer.value, ErrorFacts):
            faults = _unanswered(answer.value)  # not told to the model: no draft is at fault
            if overflowed(answer.value):
                return Sampled(faults, spent, tuple(nudges), overflowed=True)
            if not _may_pass(answer.value):
                break
        elif isinstance(answer.value, InvalidOutput):
            faults = told = Faults((answer.value.reason,), answer.value.raw)
        else:
            outcome = accept(answer.value)
            if not isinstance(outcome, Faults):
                return Sampled(outcome, spent, tuple(nudges))
            faults = told = outcome._replace(raw=answer.raw)
    return Sampled(faults, spent, tuple(nudges))


def _may_pass(error: ErrorFacts) -> bool:
    """Whether asking again may help; nothing waits here, so an outage longer than a moment ends the tries.

    Silence was such an outage: who waited for it once would wait three times as long for the same.
    """
    names = {error.type, *error.bases}
    silent = error.kind == "timeout" or any("Timeout" in each for each in names)
    return not silent and (bool(names & TRANSIENT_TYPES) or error.status in TRANSIENT_STATUS)


def _unanswered(error: ErrorFacts) -> Faults:
    status = f" (status {error.status})" if error.status else ""
    return Faults((f"the model could not be asked: {error.type}{status}: {error.message}",))

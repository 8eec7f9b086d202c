"""How does a model fill a schema? By what its server can do: JSON schema, then a tool call, then plain text.

The mode is found out by asking and remembered for the server: it is asked once for what it cannot do.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from agent.boundary import facts_of
from agent.core.failure import ErrorFacts
from agent.core.spending import total
from agent.core.value import JsonValue
from agent.models.asking import INVALID, Said, ask, overflowed
from agent.models.reading import InvalidOutput, raw_text, read
from agent.models.remembered import Remembered
from agent.ports import Usage

T = TypeVar("T", bound=BaseModel)

REFUSED_STATUS = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses by which servers say that they do not know a mode: nothing was read, so the next one costs nothing."""
DOUBTFUL_STATUS = 500
"""What some servers answer to a field that they do not know, and others when they are unwell."""
CLIENT_REFUSES = (NotImplementedError, ValueError, TypeError, AttributeError)
"""What clients throw for a mode they do not have, before they ask."""


class Mode(StrEnum):
    """How a schema is asked for; best first."""

    JSON_SCHEMA = "json_schema"
    TOOL = "function_calling"
    TEXT = "text"


class Answer(NamedTuple, Generic[T]):
    """A filled schema, an invalid one, or the error of the call; the cost of all calls, and what was said."""

    value: T | InvalidOutput | ErrorFacts
    usage: Usage
    raw: str = ""


class _Negotiated(NamedTuple):
    """How far a server has been found out."""

    mode: Mode = Mode.JSON_SCHEMA
    works: bool = False
    """It was answered in this mode."""


NEGOTIATED = Remembered(_Negotiated())
"""What was found out: planner, patcher and classifier often share a server."""


class Structured:
    """Asks a chat model to fill schemas."""

    def __init__(
        self, model: BaseChatModel, role: str, step: str = "", around: Mapping[str, Any] | None = None
    ) -> None:
        """Args: whom to ask; in which role; for which step, and under which node's metadata, as `ask` takes them."""
        self._model = model
        self._role = role
        self._step = step
        self._around = around

    async def ask(
        self, messages: list[BaseMessage], schema: type[T], wire: dict[str, JsonValue] | None = None
    ) -> Answer[T]:
        """Ask once, in the best mode the server takes. A mode that it refuses is left for the next at once.

        Where it answered, but as if it did not know the mode, the next one is for whoever asks again: an answer is
        paid for, so that nobody is to be asked more often than callers allow.

        Args:
            messages: the prompt.
            schema: what the reply is read into.
            wire: a narrower JSON schema for the server to enforce; default: the schema's own.
        """
        spent, shown, known = Usage(), wire or schema.model_json_schema(), self._known
        for mode in tuple(Mode)[tuple(Mode).index(known.mode) :]:
            said = await self._asked(mode, messages, shown)
            spent = total(spent, said.usage)
            if known.works or not refused(said.message):
                break
        value = _read(said.message, schema)
        self._remember(mode, value)
        raw = raw_text(said.message) if isinstance(said.message, AIMessage) else ""
        return Answer(value, spent, raw)

    @property
    def mode(self) -> Mode | None:
        """The mode that is known to work."""
        return self._known.mode if self._known.works else None

    @property
    def _known(self) -> _Negotiated:
        return NEGOTIATED.of(self._model)

    def _remember(self, mode: Mode, value: object) -> None:
        """A mode that was answered works; one that seems not to be known makes room for the next."""
        if self._known.works or (isinstance(value, ErrorFacts) and value.status != DOUBTFUL_STATUS):
            return
        unknown = isinstance(value, ErrorFacts) or (isinstance(value, InvalidOutput) and value.prose)
        following = tuple(Mode)[min(tuple(Mode).index(mode) + 1, len(Mode) - 1)]
        NEGOTIATED.put(self._model, _Negotiated(following) if unknown else _Negotiated(mode, works=True))

    async def _asked(self, mode: Mode, messages: list[BaseMessage], shown: dict[str, JsonValue]) -> Said:
        if mode is Mode.TEXT:
            return await self._said(self._model, [*messages, _instruction(shown)])

        try:
            # the raw reply is read by ourselves: LangChain gives None, and no error, for a reply that is prose
            form: Any = self._model.with_structured_output(shown, method=mode.value, include_raw=True)
        except CLIENT_REFUSES as error:
            return Said(facts_of(error).model_copy(update={"kind": "refused"}), Usage())
        return await self._said(form | itemgetter("raw"), messages)

    async def _said(self, model: Runnable[Any, AIMessage], messages: list[BaseMessage]) -> Said:
        return await ask(model, messages, self._role, self._step, self._around)


def refused(said: AIMessage | ErrorFacts) -> bool:
    """Whether the mode was refused and nothing was read, so that the next one costs nothing."""
    if not isinstance(said, ErrorFacts) or overflowed(said):
        return False
    return said.status in REFUSED_STATUS or said.kind == "refused" or said.type == NotImplementedError.__name__


def _read(said: AIMessage | ErrorFacts, schema: type[T]) -> T | InvalidOutput | ErrorFacts:
    if isinstance(said, AIMessage):
        return read(said, schema)
    if said.kind == INVALID:
        return InvalidOutput(reason=f"the reply could not be read: {said.message}", prose=True)
    return said


def _instruction(schema: dict[str, JsonValue]) -> HumanMessage:
    spelled = json.dumps(schema, separators=(",", ":"))
    return HumanMessage(f"Answer with one JSON object and nothing else. It must fit this JSON schema:\n{spelled}")

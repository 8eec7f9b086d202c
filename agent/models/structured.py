"""How does a model fill a schema? By what its server can do: JSON schema, then a tool call, then plain text.

The mode is found out by asking and remembered for the model: a server is asked once for what it cannot do.
"""

import json
import weakref
from enum import StrEnum
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from agent.boundary import facts_of
from agent.core.failure import ErrorFacts
from agent.core.spending import total
from agent.core.value import JsonValue
from agent.models.asking import Said, ask
from agent.models.reading import InvalidOutput, raw_text, read
from agent.ports import Usage

T = TypeVar("T", bound=BaseModel)

REFUSED_STATUS = frozenset({400, 404, 405, 415, 422, 500, 501})
"""Statuses by which servers say that they do not know a mode; 500 is what some answer to an unknown field."""
_CLIENT_REFUSES = (NotImplementedError, ValueError, TypeError, AttributeError)
"""What clients throw for a mode they do not have, before or while they ask."""
REFUSED_TYPES = frozenset(each.__name__ for each in _CLIENT_REFUSES)


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


_MODES: dict[int, Mode] = {}
"""What was found out, by identity of the model: planner, patcher and classifier often share one."""


class Structured:
    """Asks a chat model to fill schemas."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model

    async def ask(
        self, messages: list[BaseMessage], schema: type[T], wire: dict[str, JsonValue] | None = None
    ) -> Answer[T]:
        """Ask once, in the best mode the server takes.

        Args:
            messages: the prompt.
            schema: what the reply is read into.
            wire: a narrower JSON schema for the server to enforce; default: the schema's own.
        """
        spent = Usage()
        shown = wire or schema.model_json_schema()
        for mode in self._modes():
            said = await self._asked(mode, messages, shown)
            spent = total(spent, said.usage)
            value = said.message if isinstance(said.message, ErrorFacts) else read(said.message, schema)
            if mode is Mode.TEXT or self.mode is not None or not _unknown(value):
                break
        if isinstance(said.message, ErrorFacts):
            return Answer(said.message, spent)
        self._remember(mode)
        return Answer(value, spent, raw_text(said.message))

    @property
    def mode(self) -> Mode | None:
        """The mode that is known to work."""
        return _MODES.get(id(self._model))

    def _modes(self) -> tuple[Mode, ...]:
        return (self.mode,) if self.mode else tuple(Mode)

    def _remember(self, mode: Mode) -> None:
        if id(self._model) not in _MODES:
            weakref.finalize(self._model, _MODES.pop, id(self._model), None)  # an identity is used again
        _MODES[id(self._model)] = mode

    async def _asked(self, mode: Mode, messages: list[BaseMessage], shown: dict[str, JsonValue]) -> Said:
        if mode is Mode.TEXT:
            return await ask(self._model, [*messages, _instruction(shown)])

        try:
            # the raw reply is read by ourselves: LangChain gives None, and no error, for a reply that is prose
            form: Any = self._model.with_structured_output(shown, method=mode.value, include_raw=True)
        except _CLIENT_REFUSES as error:
            return Said(facts_of(error), Usage())
        return await ask(form | itemgetter("raw"), messages)


def _unknown(value: object) -> bool:
    """Whether the server seems not to know the mode, so that the next one is worth a call."""
    if isinstance(value, ErrorFacts):
        return value.status in REFUSED_STATUS or bool({value.type, *value.bases} & REFUSED_TYPES)
    return isinstance(value, InvalidOutput) and value.prose


def _instruction(schema: dict[str, JsonValue]) -> HumanMessage:
    spelled = json.dumps(schema, separators=(",", ":"))
    return HumanMessage(f"Answer with one JSON object and nothing else. It must fit this JSON schema:\n{spelled}")

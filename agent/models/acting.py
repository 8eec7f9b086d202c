"""How does a model call a tool? By a native call, or by an action: one JSON object under a schema of the step's tools.

Which of them a server does well is found out by asking, and remembered for it. Actions go down the ladder of
structured output to plain JSON, which every server can give; so from them there is no way back.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from agent.boundary import facts_of
from agent.core.failure import ErrorFacts
from agent.core.spending import Usage, total
from agent.core.value import JsonValue
from agent.models.asking import INVALID, Said, ask
from agent.models.drafts import DraftedAction
from agent.models.local.weights import QWEN
from agent.models.reading import InvalidOutput
from agent.models.remembered import Remembered
from agent.models.structured import CLIENT_REFUSES, DOUBTFUL_STATUS, Structured, refused
from agent.models.turns import actions, in_words, normalised, taken_ids
from agent.models.wire import action_schema

_MISSES = 2
"""Turns in a row without a sound call, after which native calls are left."""


class Way(StrEnum):
    """How tools are called in a turn."""

    NATIVE = "native"
    SCHEMA = "schema"


_BEST = {QWEN.name: Way.SCHEMA}
"""Models of which it was measured beforehand; the others begin with native calls."""


class _Learnt(NamedTuple):
    """How far a server has been found out."""

    way: Way | None = None
    """None: as the model begins."""
    works: bool = False
    """A native call came."""
    misses: int = 0


LEARNT = Remembered(_Learnt())


class Acting:
    """Takes the turns of one model."""

    def __init__(self, model: BaseChatModel, role: str, forced: Way | None = None) -> None:
        """Args: whom to ask; in which role; the one way to ask, None: the better one."""
        self._model = model
        self._role = role
        self._forced = forced

    @property
    def way(self) -> Way:
        """How the next turn is asked for."""
        begins = _BEST.get(str(getattr(self._model, "model_name", "")), Way.NATIVE)
        return self._forced or LEARNT.of(self._model).way or begins

    @property
    def ends(self) -> bool:
        """Whether a reply that calls nothing is the model's own end: its server is known to pass calls on."""
        return self.way is Way.NATIVE and (self._forced is not None or LEARNT.of(self._model).works)

    async def turn(
        self,
        messages: list[BaseMessage],
        offer: list[dict[str, JsonValue]],
        step: str = "",
        around: Mapping[str, Any] | None = None,
    ) -> Said:
        """One turn: a reply whose calls each have an id of their own, or why there is none. Never throws.

        Args:
            messages: the prompt.
            offer: the tools, as functions.
            step: for which step.
            around: metadata of the node that asks.
        """
        spent = Usage()
        if self.way is Way.NATIVE:
            said = await self._called(messages, offer, step, around)
            if self._forced or LEARNT.of(self._model).works or not refused(said.message):
                self._learn(said.message)
                return said
            spent = said.usage
        said = await self._acted(messages, offer, step, around)
        if not self._forced and not isinstance(said.message, ErrorFacts):
            LEARNT.put(self._model, _Learnt(Way.SCHEMA))
        return said._replace(usage=total(spent, said.usage)) if spent.calls else said

    async def _called(
        self,
        messages: list[BaseMessage],
        offer: list[dict[str, JsonValue]],
        step: str,
        around: Mapping[str, Any] | None,
    ) -> Said:
        try:
            bound: Any = self._model.bind_tools(offer)
        except CLIENT_REFUSES as error:
            return Said(facts_of(error).model_copy(update={"kind": "refused"}), Usage())
        said = await ask(bound, messages, self._role, step, around)
        return said._replace(message=_named(said.message, messages, offer))

    async def _acted(
        self,
        messages: list[BaseMessage],
        offer: list[dict[str, JsonValue]],
        step: str,
        around: Mapping[str, Any] | None,
    ) -> Said:
        asked = Structured(self._model, self._role, step, around)
        answer = await asked.ask(in_words(messages, offer), DraftedAction, action_schema(offer))
        if isinstance(answer.value, InvalidOutput):
            return Said(ErrorFacts(kind=INVALID, type="InvalidOutput", message=answer.value.reason), answer.usage)
        if isinstance(answer.value, ErrorFacts):
            return Said(answer.value, answer.usage)
        call = ToolCall(name=answer.value.tool, args=answer.value.args, id=None, type="tool_call")
        return Said(_named(AIMessage("", tool_calls=[call]), messages, offer), answer.usage)

    def _learn(self, said: AIMessage | ErrorFacts) -> None:
        """Leave native calls for good where none comes, or none that can be read."""
        if self._forced:
            return
        if isinstance(said, ErrorFacts):
            missed = said.kind == INVALID or said.status == DOUBTFUL_STATUS
        else:
            missed = all(each.fault for each in actions(said))
            if not missed:
                LEARNT.put(self._model, _Learnt(works=True))
        if missed:
            known = LEARNT.of(self._model)
            left = known.misses + 1 >= _MISSES
            LEARNT.put(self._model, _Learnt(Way.SCHEMA) if left else known._replace(misses=known.misses + 1))


def _named(
    said: AIMessage | ErrorFacts, messages: list[BaseMessage], offer: list[dict[str, JsonValue]]
) -> AIMessage | ErrorFacts:
    names = [str(each["function"]["name"]) for each in offer if isinstance(each["function"], dict)]
    return normalised(said, names, taken_ids(messages)) if isinstance(said, AIMessage) else said

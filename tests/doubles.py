"""Doubles that do not forgive: a script that is not followed to the letter fails the test."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, Field

Reply = str | AIMessage | BaseException | Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """A chat model that gives the next reply of a script: a text, a message, an error to raise, a function.

    Use it as `with scripted(...) as model`, which checks at the end that every reply was used, and none was
    missing: an extra call raises, but the code under test may turn that into data.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    replies: list[Any]
    tool_calling: bool = True
    """False: `bind_tools` is refused, as by a client that cannot do it."""
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    """What was sent, call by call."""
    options: list[dict[str, Any]] = Field(default_factory=list)
    """With which bound options (`tools`, `tool_choice`), call by call."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[LanguageModelInput, AIMessage]:
        if not self.tool_calling:
            raise NotImplementedError
        return self.bind(tools=tools, **options)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        self.prompts.append(list(messages))
        self.options.append(options)
        called = len(self.prompts)
        if called > len(self.replies):
            raise AssertionError(f"the script has {len(self.replies)} replies; this is call {called}")
        reply = self.replies[called - 1]
        if isinstance(reply, BaseException):
            raise reply
        said = reply(messages) if callable(reply) else reply
        message = said if isinstance(said, AIMessage) else AIMessage(said)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def assert_followed(self) -> None:
        assert len(self.prompts) == len(self.replies), (
            f"the script has {len(self.replies)} replies, and the model was called {len(self.prompts)} times"
        )


@contextmanager
def scripted(*replies: Reply, tool_calling: bool = True) -> Iterator[ScriptedModel]:
    """A scripted model that must be called exactly as often as it has replies."""
    model = ScriptedModel(replies=list(replies), tool_calling=tool_calling)
    yield model
    model.assert_followed()


def calling(tool: str, call_id: str = "call", **args: Any) -> AIMessage:
    """A reply that is one tool call."""
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": call_id, "type": "tool_call"}])

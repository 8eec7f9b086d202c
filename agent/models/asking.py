"""What does one model call come to? A message, or facts about what went wrong, and what it cost."""

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from openai import LengthFinishReasonError

from agent.boundary import guarded
from agent.core.failure import ErrorFacts
from agent.core.value import canonical
from agent.plain import as_json
from agent.ports import Usage

SECONDS = 900.0
"""Longest wait for one reply; the client's own time-out is shorter, a model passed in may have none."""
CHARACTERS_PER_TOKEN = 4


class Said(NamedTuple):
    """A reply, or why there is none, and what it cost."""

    message: AIMessage | ErrorFacts
    usage: Usage


async def ask(model: Runnable[list[BaseMessage], AIMessage], messages: list[BaseMessage]) -> Said:
    """Ask once. Never throws, and never asks again by itself."""
    reply = await guarded(_replied(model, messages), SECONDS)
    if isinstance(reply, ErrorFacts):
        return Said(reply, Usage(calls=1))
    if not isinstance(reply, AIMessage):
        wrong = ErrorFacts(kind="exception", type="TypeError", message=f"the model gave {type(reply).__name__}")
        return Said(wrong, Usage(calls=1))
    return Said(reply, usage_of(messages, reply))


def usage_of(messages: Sequence[BaseMessage], reply: AIMessage) -> Usage:
    """What a reply cost: as the provider says, else counted from the text."""
    told = reply.usage_metadata
    if told and told["total_tokens"]:
        return Usage(calls=1, tokens=told["total_tokens"])
    text = sum(len(str(each.text)) for each in (*messages, reply)) + len(_called(reply))
    return Usage(calls=1, tokens=text // CHARACTERS_PER_TOKEN + 1, estimated=True)


def total(one: Usage, other: Usage) -> Usage:
    """Two costs together; estimated if one of them is."""
    return Usage(
        calls=one.calls + other.calls,
        tokens=one.tokens + other.tokens,
        estimated=one.estimated or other.estimated,
    )


def cut_short(reply: AIMessage) -> bool:
    """Whether the reply ended at the token limit."""
    why = reply.response_metadata.get("finish_reason") or reply.response_metadata.get("stop_reason")
    return why in ("length", "max_tokens")


async def _replied(model: Runnable[list[BaseMessage], AIMessage], messages: list[BaseMessage]) -> AIMessage:
    try:
        return await model.ainvoke(messages)
    except LengthFinishReasonError as error:  # the client throws the cut reply away; it is paid for all the same
        completion = error.completion
        used = completion.usage.total_tokens if completion.usage else 0
        cut = AIMessage(completion.choices[0].message.content or "", response_metadata={"finish_reason": "length"})
        if used:
            cut.usage_metadata = {"input_tokens": 0, "output_tokens": used, "total_tokens": used}
        return cut


def _called(reply: AIMessage) -> str:
    return canonical(as_json([each["args"] for each in (*reply.tool_calls, *reply.invalid_tool_calls)]))

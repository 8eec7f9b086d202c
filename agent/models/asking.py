"""What does one model call come to? A message, or facts about what went wrong, and what it cost."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from openai import LengthFinishReasonError

from agent.boundary import guarded
from agent.core.failure import ErrorFacts
from agent.core.spending import Usage
from agent.core.value import canonical
from agent.plain import as_json

PREFIX = "kintsugi"
"""Of our keys among the metadata."""
INVALID = "invalid"
"""Kind of the error when a server did answer, and nobody could read it."""

_STUMBLED = frozenset({"ValueError", "TypeError", "AttributeError", "LookupError"})
"""What clients raise over a reply that is not what they know; a class below one of these counts as well."""

_FAILED = 300
"""From this status on nothing was answered."""

_TOO_LONG = re.compile(
    r"context[ _]?(?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens", re.IGNORECASE
)

SECONDS = 900.0
"""Longest wait for one reply. `Settings.model_timeout` bounds silence before; a model passed in may have no bound."""
CHARACTERS_PER_TOKEN = 4


class Said(NamedTuple):
    """A reply, or why there is none, and what it cost."""

    message: AIMessage | ErrorFacts
    usage: Usage


async def ask(
    model: Runnable[list[BaseMessage], AIMessage],
    messages: list[BaseMessage],
    role: str,
    step: str = "",
    around: Mapping[str, Any] | None = None,
) -> Said:
    """Ask once. Never throws, and never asks again by itself.

    Args:
        model: whom.
        messages: what.
        role: who asks; with the step it is in the metadata of traces, and of the tokens that are streamed.
        step: for which step, if for one.
        around: metadata of the node that asks; default: of the one that runs here.
    """
    said = {f"{PREFIX}_role": role, **({f"{PREFIX}_step": step} if step else {})}
    config: RunnableConfig = {"metadata": {**(metadata() if around is None else around), **said}}
    reply = await guarded(_replied(model, messages, config), SECONDS)
    if isinstance(reply, ErrorFacts):
        reply = _told_apart(reply)
        return Said(reply, _unanswered(messages, reply))
    if not isinstance(reply, AIMessage):
        wrong = ErrorFacts(kind="exception", type="TypeError", message=f"the model gave {type(reply).__name__}")
        return Said(wrong, estimated(messages))
    return Said(reply, usage_of(messages, reply))


def usage_of(messages: Sequence[BaseMessage], reply: AIMessage) -> Usage:
    """What a reply cost: as the provider says, else counted from the text."""
    told, name = reply.usage_metadata, _model(reply)
    if not told or not told["total_tokens"]:
        return estimated(messages, reply).model_copy(update={"model": name, "cost": _cost(reply)})
    # a server that names only the sum, or thinks in tokens it does not list, is charged for the rest as written
    sent = min(told["input_tokens"], told["total_tokens"])
    written = told["total_tokens"] - sent
    return Usage(calls=1, tokens_in=sent, tokens_out=written, model=name, cost=_cost(reply))


def _told_apart(error: ErrorFacts) -> ErrorFacts:
    """The error, marked if it is one over what was answered: then the model may be asked again, and not the server."""
    stumbled = bool({error.type, *error.bases} & _STUMBLED) if error.status is None else error.status < _FAILED
    return error.model_copy(update={"kind": INVALID}) if stumbled else error


def _unanswered(messages: Sequence[BaseMessage], error: ErrorFacts) -> Usage:
    """A call that gave an error: what was refused with a status costs nothing; a lost answer was read, and is paid."""
    return estimated(messages) if error.status is None or error.kind == INVALID else Usage(calls=1)


def estimated(messages: Sequence[BaseMessage], reply: AIMessage | None = None) -> Usage:
    """What a call costs, counted from the text; without a reply it was read all the same."""
    sent = sum(len(str(each.text)) for each in messages) // CHARACTERS_PER_TOKEN + 1
    written = (len(str(reply.text)) + len(_called(reply))) // CHARACTERS_PER_TOKEN + 1 if reply is not None else 0
    return Usage(calls=1, tokens_in=sent, tokens_out=written, tokens_estimated=sent + written)


def _model(reply: AIMessage) -> str:
    name = reply.response_metadata.get("model_name") or reply.response_metadata.get("model")
    return name if isinstance(name, str) else ""


def _cost(reply: AIMessage) -> float | None:
    """Money, where a provider tells it: some add it to the usage, proxies put it into the metadata."""
    told = reply.response_metadata.get("token_usage")
    places = (told, reply.response_metadata, reply.additional_kwargs)
    found = (each.get(name) for each in places if isinstance(each, dict) for name in ("cost", "total_cost"))
    return next((float(each) for each in found if isinstance(each, int | float) and each >= 0), None)


def overflowed(error: ErrorFacts) -> bool:
    """Whether the prompt was too long for the model; another way to ask would not make it shorter."""
    return error.code == "context_length_exceeded" or bool(_TOO_LONG.search(error.message))


def cut_short(reply: AIMessage) -> bool:
    """Whether the reply ended at the token limit."""
    why = reply.response_metadata.get("finish_reason") or reply.response_metadata.get("stop_reason")
    return why in ("length", "max_tokens")


def doubtful(reply: AIMessage) -> bool:
    """Whether the last call was cut off, though it looks whole.

    A client that reads pieces closes what was left open, and half a path is a path too.
    """
    return cut_short(reply) and bool(reply.tool_calls) and not reply.invalid_tool_calls


def metadata() -> Mapping[str, Any]:
    """What LangGraph says of the node that runs here; tokens are streamed under it."""
    return (var_child_runnable_config.get() or {}).get("metadata", {})


async def _replied(
    model: Runnable[list[BaseMessage], AIMessage], messages: list[BaseMessage], config: RunnableConfig
) -> AIMessage:
    try:
        return await model.ainvoke(messages, config)
    except LengthFinishReasonError as error:  # the client throws the cut reply away; it is paid for all the same
        completion = error.completion
        used = completion.usage
        cut = AIMessage(completion.choices[0].message.content or "", response_metadata={"finish_reason": "length"})
        if used:
            cut.usage_metadata = {
                "input_tokens": used.prompt_tokens,
                "output_tokens": used.completion_tokens,
                "total_tokens": used.total_tokens,
            }
        return cut


def _called(reply: AIMessage) -> str:
    return canonical(as_json([each["args"] for each in (*reply.tool_calls, *reply.invalid_tool_calls)]))

"""What did the model mean? A reply is read into a schema, or becomes a typed refusal, never a guess.

Thoughts, fences, prose around the JSON, tool calls written as text and replies that are all thought are
expected. Broken JSON is not mended: the model is told what is wrong with it.
"""

import json
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import NamedTuple, TypeVar

from langchain_core.messages import AIMessage
from pydantic import BaseModel, ValidationError

from agent.boundary import shortened
from agent.core.value import Value
from agent.models.asking import cut_short, doubtful

T = TypeVar("T", bound=BaseModel)

_THOUGHT = re.compile(r"<think(?:ing)?>(.*?)(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_OBJECT = re.compile(r"\{\s*[\"}]")
_SHOWN = 5
"""Schema errors named in one reason; more do not help the next try."""
_RAW = 1000
"""Characters of a refused reply that are kept."""


class InvalidOutput(Value):
    """A reply that does not say what was asked for."""

    reason: str
    """One exact sentence; the model is asked again with it."""
    raw: str = ""
    """The reply, shortened."""
    prose: bool = False
    """There was no JSON at all: the server may not know the mode it was asked in."""


class Found(NamedTuple):
    """JSON objects in a text, and what is wrong with the one that could not be read."""

    objects: tuple[dict[str, object], ...]
    fault: str = ""


def read(reply: AIMessage, schema: type[T]) -> T | InvalidOutput:
    """The first object in the reply that fits the schema: from tool calls, then text, then thoughts."""
    faults: list[str] = []
    for found in _places(reply):
        for each in found.objects:
            value = _validated(each, schema)
            if not isinstance(value, str):
                return value
            faults.append(value)
        faults += [found.fault] if found.fault else []
    prose = not faults and not cut_short(reply) and not _refusal(reply)
    return InvalidOutput(reason=_reason(reply, faults), raw=shortened(raw_text(reply), _RAW), prose=prose)


def objects(text: str) -> Found:
    """All outermost JSON objects in a text; reading stops at one that is broken."""
    text, decoder, at = once_encoded(text), json.JSONDecoder(), 0
    found: list[dict[str, object]] = []
    while (start := _OBJECT.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, start.start())
        except JSONDecodeError as error:
            return Found(tuple(found), f"the JSON is broken: {error.msg} (line {error.lineno}, column {error.colno})")
        except RecursionError:
            return Found(tuple(found), "the JSON is nested too deeply")
        found.append(value)
    return Found(tuple(found))


def once_encoded(text: str) -> str:
    """The text itself, where it is JSON within a JSON string: some servers encode arguments twice."""
    try:
        inner = json.loads(text) if text.lstrip().startswith('"') else text
    except ValueError:
        return text
    return inner if isinstance(inner, str) else text


def spoken(text: str) -> str:
    """The text without thoughts; some servers leave out the tag that opens them."""
    return _THOUGHT_END.split(_THOUGHT.sub("", text))[-1]


def raw_text(reply: AIMessage) -> str:
    """All that the reply says, for people."""
    calls = [f"{each['name']}({each['args']})" for each in (*reply.tool_calls, *reply.invalid_tool_calls)]
    return "\n".join(part for part in (str(reply.text), *calls, _reasoning(reply)) if part)


def _places(reply: AIMessage) -> Iterator[Found]:
    text = str(reply.text)
    for call in reply.tool_calls[: -1 if doubtful(reply) else None]:
        # the name says nothing where one form is asked for, and a lot where it is the action that is
        yield Found((call["args"], {"name": call["name"], "arguments": call["args"]}))
    for invalid in reply.invalid_tool_calls:
        yield objects(invalid["args"] or "")
    yield objects(spoken(text))
    if not cut_short(reply):  # a thought that was cut off had not come to its end
        yield objects("\n".join([*_THOUGHT.findall(text), _reasoning(reply)]))


def _reasoning(reply: AIMessage) -> str:
    return str(reply.additional_kwargs.get("reasoning_content") or "")


def _refusal(reply: AIMessage) -> str:
    return str(reply.additional_kwargs.get("refusal") or "")


def _validated(value: dict[str, object], schema: type[T]) -> T | str:
    """The value in the schema, or what is wrong with it."""
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        # a tool call that was written as text
        inner = value.get("arguments", value.get("parameters"))
        found = objects(inner).objects if isinstance(inner, str) else (inner,)
        if "name" in value and found and isinstance(found[0], dict):
            return _validated(found[0], schema)
        told = error.errors(include_url=False, include_context=False)[:_SHOWN]
        return "; ".join(f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in told)


def _reason(reply: AIMessage, faults: list[str]) -> str:
    if _refusal(reply):
        return f"the model refused: {_refusal(reply)}"
    if cut_short(reply):
        return "the reply was cut off at the token limit; answer with less"
    return faults[0] if faults else "the reply has no JSON object"

"""Which tools does one turn of a model call? Every call gets an id of its own, a broken one a fault.

Servers leave ids out or repeat them, write calls as text and cut arguments off; none of that may look like
an end.
"""

from collections.abc import Iterable
from typing import NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from agent.core.value import JsonValue, canonical
from agent.models.asking import cut_short, doubtful
from agent.models.reading import objects, raw_text, spoken
from agent.plain import as_json

_HOW = """

# Tools
Each turn is one call, written as one JSON object and nothing else: {{"action": {{"tool": "<tool>", "args": {{...}}}}}}
{tools}"""
_ARGUMENTS = ("arguments", "args", "parameters")


class Action(NamedTuple):
    """One call of a turn; with a fault it is answered instead of carried out."""

    id: str
    tool: str
    args: dict[str, JsonValue]
    fault: str = ""


def actions(reply: AIMessage) -> tuple[Action, ...]:
    """The calls of one turn, the broken ones last."""
    cut = "the reply was cut off at the token limit; call with less" if cut_short(reply) else ""
    last = len(reply.tool_calls) - 1 if doubtful(reply) else -1
    return (
        *(
            Action(str(each["id"]), each["name"], each["args"], cut if place == last else "")
            for place, each in enumerate(reply.tool_calls)
        ),
        *(
            Action(
                str(each["id"]),
                each["name"] or "",
                {},
                cut or f"no JSON object: {each['error']}",
            )
            for each in reply.invalid_tool_calls
        ),
    )


def taken_ids(messages: Iterable[BaseMessage]) -> frozenset[str]:
    """Ids of all calls so far."""
    return frozenset(each.id for message in messages if isinstance(message, AIMessage) for each in actions(message))


def normalised(reply: AIMessage, tools: Iterable[str], taken: frozenset[str]) -> AIMessage:
    """The reply with calls that were written as text made calls, each under an id that no other has."""
    if not (reply.tool_calls or reply.invalid_tool_calls):
        written = _written(reply, frozenset(tools))
        reply = reply.model_copy(update={"tool_calls": written, "content": "" if written else reply.content})
    ids = set(taken)
    good = [ToolCall(**{**each, "id": _fresh(each["id"], ids)}) for each in reply.tool_calls]
    bad = [InvalidToolCall(**{**each, "id": _fresh(each["id"], ids)}) for each in reply.invalid_tool_calls]
    return reply.model_copy(update={"tool_calls": good, "invalid_tool_calls": bad})


def answered(action: Action, text: str) -> ToolMessage:
    """What a call came to, for the model."""
    return ToolMessage(text, tool_call_id=action.id, name=action.tool or "unknown")


def in_words(messages: Iterable[BaseMessage], offer: Iterable[dict[str, JsonValue]]) -> list[BaseMessage]:
    """The same talk without native calls: the tools behind the rules, calls and answers as text."""
    rules, *said = [_spoken_out(each) for each in messages]
    tools = "\n".join(canonical(each["function"]) for each in offer)
    return [SystemMessage(f"{rules.text}{_HOW.format(tools=tools)}"), *said]


def _spoken_out(message: BaseMessage) -> BaseMessage:
    if isinstance(message, ToolMessage):
        return HumanMessage(f"{message.name} gave:\n{message.text}")
    if isinstance(message, AIMessage) and message.invalid_tool_calls:
        return AIMessage(raw_text(message))
    if isinstance(message, AIMessage) and message.tool_calls:
        return AIMessage("\n".join(_action(each) for each in message.tool_calls))
    return message


def _action(call: ToolCall) -> str:
    return canonical({"action": {"tool": call["name"], "args": as_json(call["args"])}})


def _fresh(given: str | None, ids: set[str]) -> str:
    """The given id, or a new one when it is missing or taken."""
    fresh = given if given and given not in ids else f"call_{len(ids) + 1}"
    while fresh in ids:
        fresh += "_"
    ids.add(fresh)
    return fresh


def _written(reply: AIMessage, tools: frozenset[str]) -> list[ToolCall]:
    """Calls that a server without native ones left in the text: `{"name": ..., "arguments": {...}}`."""
    found = []
    for each in objects(spoken(str(reply.text))).objects:
        given = next((each[key] for key in _ARGUMENTS if key in each), None)
        args = next(iter(objects(given).objects), None) if isinstance(given, str) else given
        if each.get("name") in tools and isinstance(args, dict):
            found.append(ToolCall(name=str(each["name"]), args=args, id=None, type="tool_call"))
    return found

"""What is said in an inner loop, and how does it lie in a diary? As plain JSON, from which another process goes on."""

from typing import TypedDict

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict, messages_to_dict

from agent.core.repetition import Heard
from agent.models.turns import Action, actions
from agent.plain import as_json
from agent.ports import Result, Said, Task, Usage
from graphs.view import Kept

INTERRUPTED = "The run was interrupted in this call, outcome unknown. This is what it came to, as far as can be told:"


class Loop(TypedDict):
    """State of one inner loop; it lives as long as the attempt."""

    messages: list[BaseMessage]
    turns: int
    broken: int
    """Turns in a row that nobody could make anything of."""
    room: int
    """Characters that a prompt may have; less once the server has found one too long."""
    kept: Kept
    tool_calls: int
    heard: list[Heard]
    nudges: list[str]
    usage: Usage
    result: Result | None
    interrupted: bool
    """The first call without an answer was under way when the process ended."""


def said(state: Loop, task: Task) -> Said:
    """The loop as it is kept."""
    talk = {
        "messages": as_json(messages_to_dict(state["messages"])),
        "heard": [each.model_dump(mode="json") for each in state["heard"]],
        "usage": state["usage"].model_dump(mode="json"),
        **{name: as_json(state[name]) for name in ("turns", "broken", "room", "tool_calls", "nudges")},
    }
    kept = {handle: value for handle, value in state["kept"].items() if handle not in task.inputs}
    return Said(talk=talk, kept=kept, told=state["tool_calls"] > 0)


def taken_up(begun: Said, task: Task) -> Loop | None:
    """The loop as it was broken off; None when another release kept it in a form that cannot be read."""
    talk = begun.talk
    try:
        messages = messages_from_dict(talk["messages"])
        return Loop(
            messages=messages,
            turns=talk["turns"],
            broken=talk["broken"],
            room=talk["room"],
            kept={**task.inputs, **begun.kept},
            tool_calls=talk["tool_calls"],
            heard=[Heard.model_validate(each) for each in talk["heard"]],
            nudges=talk["nudges"],
            usage=Usage.model_validate(talk["usage"]),
            result=None,
            interrupted=bool(unanswered(messages)),
        )
    except (LookupError, TypeError, ValueError):
        return None


def last_turn(messages: list[BaseMessage]) -> tuple[Action, ...]:
    """All calls of the last turn."""
    return next((actions(each) for each in reversed(messages) if isinstance(each, AIMessage)), ())


def unanswered(messages: list[BaseMessage]) -> tuple[Action, ...]:
    """The calls of the last turn that have no answer yet."""
    given = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    return tuple(each for each in last_turn(messages) if each.id not in given)

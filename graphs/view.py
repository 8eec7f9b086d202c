"""What does the model see of its own loop? Everything while there is room, then old results by head, tail and handle.

What is left out is kept, and can be read on. The prompt's rules, the step and the last turn stay as they are: a call
that failed is what the next one is about.
"""

from langchain_core.messages import BaseMessage, ToolMessage

from agent.boundary import shortened
from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue, canonical
from agent.models.prompts import fenced

ROOM = 24_000
"""Characters of a turn's prompt, about 6,000 tokens, before old results are folded."""
LEAST = 3_000
"""With less room than this a loop cannot go on."""
SHOWN = 4_000
"""Characters of one input or result at most."""
STUB = 600
"""Characters of one that is folded."""
READ_MORE = "read_more"

Kept = dict[str, JsonValue]
"""Results by handle."""


def told(returned: JsonValue | ErrorFacts, tool: str, kept: Kept) -> tuple[str, str]:
    """What the model sees of a result, and the handle under which it is kept; an error is seen as it is."""
    if isinstance(returned, ErrorFacts):
        status = f" {returned.status}" if returned.status else ""
        said = f"{returned.type}{status}: {returned.message}".lstrip(": ")
        return "The call failed.\n" + fenced(said, tool), ""
    text = spelled(returned)
    if len(text) <= STUB:
        return fenced(text, tool), ""
    handle = next(name for number in range(1, len(kept) + 2) if (name := f"r{number}") not in kept)
    kept[handle] = returned
    return fenced(cut(text, SHOWN, handle), tool), handle


def read_on(kept: Kept, args: dict[str, JsonValue]) -> str:
    """The next part of something that was shown in part only."""
    handle, offset = str(args.get("handle")), args.get("offset")
    if handle not in kept:
        return f"there is no handle {handle!r}; the handles are: {', '.join(kept)}"
    text, start = spelled(kept[handle]), offset if isinstance(offset, int) and offset > 0 else 0
    part = text[start : start + SHOWN]
    after = start + len(part)
    more = f"\n{len(text) - after} characters are left, from offset {after}." if after < len(text) else "\nThat is all."
    return fenced(part, f"{handle}, from character {start} of {len(text)}") + more


def fitting(opening: list[BaseMessage], messages: list[BaseMessage], room: int) -> list[BaseMessage]:
    """The prompt of a turn: the oldest results are folded until it fits."""
    turns = list(messages)
    last = max((at for at, each in enumerate(turns) if each.type == "ai"), default=0)
    size = sum(len(str(each.content)) for each in (*opening, *turns))
    for at, each in enumerate(turns[:last]):
        if size <= room:
            break
        if isinstance(each, ToolMessage) and len(str(each.content)) > STUB:
            folded = cut(str(each.content), STUB, str(each.artifact or ""))
            size -= len(str(each.content)) - len(folded)
            turns[at] = each.model_copy(update={"content": folded})
    return [*opening, *turns]


def share(room: int, inputs: int) -> int:
    """Characters of one input, so that all of them leave room for the work."""
    return max(STUB, min(SHOWN, room // (2 * max(1, inputs))))


def spelled(value: JsonValue) -> str:
    """A value as text. Fields that are texts of several lines are shown as such: escaped, models misread them."""
    if isinstance(value, dict) and any(isinstance(each, str) and "\n" in each for each in value.values()):
        return "\n".join(
            f"{name}:\n{each}" if isinstance(each, str) else f"{name}: {canonical(each)}"
            for name, each in value.items()
        )
    return value if isinstance(value, str) else canonical(value)


def cut(text: str, limit: int, handle: str) -> str:
    """Head and tail of a long text, and how to read what lies between."""
    if len(text) <= limit:
        return text
    more = f'\n[read on with {READ_MORE} {{"handle": "{handle}", "offset": {limit // 2}}}]' if handle else ""
    return shortened(text, limit) + more

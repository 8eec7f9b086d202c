"""How does a value look when the world has moved on? Small deterministic changes to any JSON value."""

import re
from random import Random

from agent.core.value import JsonValue

_NUMBER = re.compile(r"\d+")


def added_to(value: JsonValue) -> JsonValue:
    """The value with something more in it that nobody asked for: a field, an element, a line."""
    match value:
        case dict():
            return {**value, "added_later": 1}
        case str():
            return f"{value}# added later\n" if "\n" in value else f"{value} (added later)"
        case _:
            return drifted(value, Random(0))


def drifted(value: JsonValue, chance: Random) -> JsonValue:
    """The value with one leaf changed: a number is one more, a truth is none, a text says something else."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return _drifted_text(value, chance)
        case list() if value:
            index = chance.randrange(len(value))
            return [drifted(each, chance) if at == index else each for at, each in enumerate(value)]
        case dict() if value:
            name = chance.choice(_numeric(value) or sorted(value))
            return {**value, name: drifted(value[name], chance)}
        case _:
            return "drifted"


def without_field(value: JsonValue, chance: Random) -> JsonValue:
    """The value after a field of it was given up; what has no fields is changed otherwise."""
    if not isinstance(value, dict) or not value:
        return added_to(value)
    gone = chance.choice(sorted(value))
    return {name: each for name, each in value.items() if name != gone}


def _numeric(value: dict[str, JsonValue]) -> list[str]:
    return sorted(name for name, each in value.items() if isinstance(each, int | float))


def _drifted_text(text: str, chance: Random) -> str:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return f"{text} (drifted)"
    one = chance.choice(numbers)
    return f"{text[: one.start()]}{int(one.group()) + 1}{text[one.end() :]}"

"""Which arguments are the same call, however they are spelled? Effects are known by what was meant.

Key order and the spacing of JSON never count; spaces and case inside a text do, for they may mean something.
"""

import re
from collections.abc import Mapping

from agent.core.value import JsonValue, canonical

Schema = Mapping[str, JsonValue]

_EXACT = 2**53
"""Up to here a float says exactly which integer it is."""
_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_TRUTH: dict[str, JsonValue] = {"true": True, "false": False}


def as_meant(args: Mapping[str, JsonValue], schema: Schema) -> dict[str, JsonValue]:
    """The arguments in one spelling.

    A whole number is the same with or without its decimal point; a number in words is that number where the tool
    takes nothing but numbers; and what is its default may as well be left out.

    Args:
        args: references resolved.
        schema: JSON schema of the tool's arguments.
    """
    properties = _mapping(schema.get("properties"))
    meant = {name: _whole(_typed(value, _mapping(properties.get(name)))) for name, value in args.items()}
    return {name: value for name, value in meant.items() if not _default(value, _mapping(properties.get(name)))}


def _typed(value: JsonValue, schema: Schema) -> JsonValue:
    """The value as the tool will take it; tools are lenient about numbers in words."""
    if not isinstance(value, str):
        return value
    match schema.get("type"):
        case "boolean":
            return _TRUTH.get(value.strip().lower(), value)
        case "integer" | "number" if _NUMBER.fullmatch(value):
            return int(value) if value.strip().lstrip("+-").isdigit() else float(value)
        case _:
            return value


def _whole(value: JsonValue) -> JsonValue:
    match value:
        case float() if value.is_integer() and abs(value) < _EXACT:
            return int(value)
        case dict():
            return {name: _whole(each) for name, each in value.items()}
        case list():
            return [_whole(each) for each in value]
        case _:
            return value


def _default(value: JsonValue, schema: Schema) -> bool:
    return "default" in schema and canonical(_whole(schema["default"])) == canonical(value)


def _mapping(value: JsonValue) -> Schema:
    return value if isinstance(value, dict) else {}

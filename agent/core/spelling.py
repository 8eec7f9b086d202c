"""Which arguments are the same call, however they are spelled? Effects are known by what was meant.

Key order and the spacing of JSON never count; spaces and case inside a text do, for they may mean something.
"""

from collections.abc import Mapping

from agent.core.value import JsonValue

_EXACT = 2**53
"""Up to here a float says exactly which integer it is."""


def as_meant(args: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The arguments in one spelling: a whole number is the same with or without its decimal point."""
    return {name: _whole(value) for name, value in args.items()}


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

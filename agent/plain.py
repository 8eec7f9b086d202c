"""What is the JSON form of whatever a tool returns? Plain values that every checkpoint and store can carry."""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import islice
from math import isfinite

from pydantic import BaseModel

from agent.core.value import JsonValue

DEPTH_LIMIT = 100
"""Nesting of a returned value; deeper parts are named, not kept."""
PARTS_LIMIT = 5_000_000
"""Objects inside a returned value; one beyond is named, not kept."""
ENDLESS = 1_000_000
"""Elements taken from a result that does not say how many it has."""
INTEGER_LIMIT = 2**63 - 1
"""Larger integers do not fit into a checkpoint and are kept as text."""


def as_json(value: object) -> JsonValue:
    """Make any returned object a JSON value; what has no JSON form is kept as text, never dropped.

    Never throws over an object it cannot read, for the call that gave it is over. Only a lazy result may throw:
    reading it is still the tool's own work.
    """
    return _Reading().read(value, ())


class _Reading:
    """One pass over a returned object; counts parts, for a small object can contain itself many times over."""

    def __init__(self) -> None:
        self._parts = 0

    def read(self, value: object, inside: tuple[int, ...]) -> JsonValue:
        self._parts += 1
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, bool | int | float | str):
            return _plain(value)
        if id(value) in inside or len(inside) > DEPTH_LIMIT or self._parts > PARTS_LIMIT:
            return f"<{type(value).__name__} left out: too deep, too large or inside itself>"
        inside = (*inside, id(value))
        named = _named(value)
        if named is not None:
            return self._mapping(named, inside)
        if isinstance(value, bytes | bytearray):
            return bytes(value).decode("utf-8", "backslashreplace")
        if isinstance(value, Iterable):
            return self._list(value, inside)
        return _spelled(value)

    def _mapping(self, named: Mapping[object, object], inside: tuple[int, ...]) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for key, each in named.items():
            name = _key(key)
            while name in found:  # 1 and "1" are two keys in Python and one in JSON
                name += "'"
            found[name] = self.read(each, inside)
        return found

    def _list(self, values: Iterable[object], inside: tuple[int, ...]) -> JsonValue:
        sized = isinstance(values, Sized)
        listed = sorted(values, key=_spelled) if isinstance(values, set | frozenset) else values
        read = [self.read(each, inside) for each in islice(listed, None if sized else ENDLESS)]
        endless = not sized and len(read) == ENDLESS
        return [*read, "<the rest left out>"] if endless else read


def _named(value: object) -> Mapping[object, object] | None:
    """What an object with named parts consists of; None for any other."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return {name: getattr(value, name, None) for name in (*type(value).model_fields, *(value.model_extra or {}))}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name, None) for each in fields(value)}
    return None


def _plain(value: bool | int | float | str | None) -> JsonValue:
    """A basic value, subclasses reduced to it; numbers and characters that JSON or the checkpoint refuse, as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) <= INTEGER_LIMIT:
            return int(value)
        return str(int(value)) if value.bit_length() < 10_000 else hex(value)  # Python refuses to spell longer ones
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    return str.__str__(value).encode("utf-8", "backslashreplace").decode()


def _key(key: object) -> str:
    plain = key.value if isinstance(key, Enum) else key
    return str(_plain(plain)) if isinstance(plain, str) else _spelled(plain)


def _spelled(value: object) -> str:
    """Text of an object; one that cannot even be spelled is named by its type."""
    try:
        return str(_plain(str(value)))
    except Exception:  # the boundary: an object may throw whatever it likes
        return f"<{type(value).__name__} that cannot be shown>"

"""What is the JSON form of whatever a tool returns? Plain values that every checkpoint and store can carry.

Nothing is altered without a word: bytes are kept exactly, in a form that reads back, and whatever has no JSON form
is kept as text or a list, with a note that says where and of which type. `noted` collects the notes.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from datetime import date, time
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
NOTES_LIMIT = 10
"""Notes about one value that are kept; the rest is counted."""
BYTES = "$bytes"
"""Key under which bytes are kept: `{"$bytes": base64, "size": bytes}`."""

_PLACE_LIMIT = 200
"""Characters of the place that a note names."""

Place = tuple["Place", str] | None
"""Where in a value: the way from the top, as a chain; spelled out only where there is something to say."""

_NOTES: ContextVar[list[str] | None] = ContextVar("notes", default=None)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect what `as_json` could not keep as it was, while the context lasts; threads it starts count as well."""
    notes: list[str] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def as_json(value: object, of: str = "") -> JsonValue:
    """Make any returned object a JSON value; what has no JSON form is kept as text, never dropped.

    Never throws over an object it cannot read, for the call that gave it is over. Only a lazy result may throw:
    reading it is still the tool's own work.

    Args:
        value: anything.
        of: what gave it, for the notes.
    """
    reading = _Reading()
    plain = reading.read(value, None, ())
    note(*reading.told(of))
    return plain


def note(*said: str) -> None:
    """Say beside the result what was not kept as it was, if somebody collects it."""
    notes = _NOTES.get()
    if notes is not None:
        notes += said


def as_python(value: JsonValue) -> object:
    """The value as a tool takes it: bytes are bytes again, everything else is as it was kept."""
    if isinstance(value, list):
        return [as_python(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = _bytes_in(value)
    return {name: as_python(each) for name, each in value.items()} if found is None else found


def _bytes_in(value: dict[str, JsonValue]) -> bytes | None:
    text = value.get(BYTES)
    if not isinstance(text, str) or value.keys() != {BYTES, "size"}:
        return None
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return None  # somebody else's mapping
    return found if len(found) == value["size"] else None


class _Reading:
    """One pass over a returned object; counts parts, for a small object can contain itself many times over."""

    def __init__(self) -> None:
        self._parts = 0
        self._notes: list[str] = []
        self._more = 0

    def told(self, of: str) -> list[str]:
        """What was not kept as it was, one sentence each."""
        more = [f"and {self._more} more like these"] if self._more else []
        return [f"{of}: {each}" if of else each for each in (*self._notes, *more)]

    def read(self, value: object, at: Place, inside: tuple[int, ...]) -> JsonValue:
        self._parts += 1
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, bool | int | float | str):
            return self._plain(value, at)
        if id(value) in inside or len(inside) > DEPTH_LIMIT or self._parts > PARTS_LIMIT:
            self._note("left out", at, value)
            return f"<{type(value).__name__} left out: too deep, too large or inside itself>"
        inside = (*inside, id(value))
        named = _named(value)
        if named is not None:
            return self._mapping(named, at, inside)
        if isinstance(value, bytes | bytearray | memoryview):
            return {BYTES: base64.b64encode(value).decode(), "size": memoryview(value).nbytes}
        if (unpacked := _unpacked(value)) is not None:
            return self.read(unpacked, at, inside)
        if isinstance(value, Iterable) and not isinstance(value, type):
            return self._list(value, at, inside)
        self._note("kept as text", at, value)
        return _spelled(value)

    def _plain(self, value: bool | int | float | str | None, at: Place) -> JsonValue:
        plain = _plain(value)
        if type(plain) is not type(value) and not isinstance(value, type(plain)):
            self._note("kept as text", at, value)
        elif isinstance(plain, str) and plain != value:
            self._note("kept with its lone surrogates spelled out", at, value)
        return plain

    def _mapping(self, named: Mapping[object, object], at: Place, inside: tuple[int, ...]) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for key, each in named.items():
            name = _key(key)
            while name in found:  # 1 and "1" are two keys in Python and one in JSON
                name += "'"
            if name != key:
                self._note(f"named {name!r}", at, key)
            found[name] = self.read(each, (at, f".{name}"), inside)
        return found

    def _list(self, values: Iterable[object], at: Place, inside: tuple[int, ...]) -> JsonValue:
        sized = isinstance(values, Sized)
        if not isinstance(values, list | tuple):
            self._note("kept as a list", at, values)
        listed = sorted(values, key=_spelled) if isinstance(values, set | frozenset) else values
        read = [
            self.read(each, (at, f"[{index}]"), inside)
            for index, each in enumerate(islice(listed, None if sized else ENDLESS))
        ]
        endless = not sized and len(read) == ENDLESS
        if endless:
            self._note("cut off", at, values)
        return [*read, "<the rest left out>"] if endless else read

    def _note(self, what: str, at: Place, value: object) -> None:
        if len(self._notes) == NOTES_LIMIT:
            self._more += 1
            return
        self._notes.append(str(_plain(f"{what}: {_spelled_out(at)} ({type(value).__name__})")))


def _named(value: object) -> Mapping[object, object] | None:
    """What an object with named parts consists of; None for any other."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return {name: getattr(value, name, None) for name in (*type(value).model_fields, *(value.model_extra or {}))}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name, None) for each in fields(value)}
    return None


def _unpacked(value: object) -> object | None:
    """What is in a number or table of the numeric libraries; None for any other object.

    Known by what they can do, because nothing here depends on those libraries. To iterate over them would give the
    names of a table's columns, and scalars that JSON does not know.
    """
    if isinstance(value, type):
        return None
    try:
        if hasattr(value, "columns") and callable(rows := getattr(value, "to_dict", None)):
            return list(rows("records"))
        if hasattr(value, "dtype") and callable(listed := getattr(value, "tolist", None)):
            found: object = listed()
            return found
    except Exception:  # the boundary: an object may throw whatever it likes
        return None
    return None


def _spelled_out(at: Place) -> str:
    parts: list[str] = []
    while at is not None:
        at, part = at
        parts.append(part)
    place = "$" + "".join(reversed(parts))
    return place if len(place) <= _PLACE_LIMIT else f"{place[:_PLACE_LIMIT]}..."


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
    text = str.__str__(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _key(key: object) -> str:
    plain = key.value if isinstance(key, Enum) else key
    return str(_plain(plain)) if isinstance(plain, str) else _spelled(plain)


def _spelled(value: object) -> str:
    """Text of an object; one that cannot even be spelled is named by its type."""
    try:
        return str(_plain(value.isoformat() if isinstance(value, date | time) else str(value)))
    except Exception:  # the boundary: an object may throw whatever it likes
        return f"<{type(value).__name__} that cannot be shown>"

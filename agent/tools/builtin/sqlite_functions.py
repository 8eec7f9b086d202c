"""Functions of SQLite that compare every character with every other, replaced by ones that do not.

The engine looks at the clock between its instructions and not inside of a function: `trim`, `instr` and `replace`
over two long texts would run for minutes or hours, and nothing could stop them.
"""

import sqlite3
from collections.abc import Callable
from functools import partial

Value = str | int | float | bytes | None


def replace_slow_functions(connection: sqlite3.Connection, size: int) -> None:
    """Put the quick ones in their place; what they make may have `size` characters."""
    for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        connection.create_function(name, 2, partial(_stripped, strip), deterministic=True)
    connection.create_function("instr", 2, _found, deterministic=True)
    connection.create_function("replace", 3, partial(_replaced, size), deterministic=True)


def _stripped(strip: Callable[[str, str], str], text: Value, letters: Value) -> str | None:
    return None if text is None or letters is None else strip(_text(text), _text(letters))


def _found(text: Value, part: Value) -> int | None:
    if text is None or part is None:
        return None
    if isinstance(text, bytes) and isinstance(part, bytes):
        return text.find(part) + 1
    return _text(text).find(_text(part)) + 1


def _replaced(size: int, text: Value, old: Value, new: Value) -> str | None:
    if text is None or old is None or new is None:
        return None
    whole, part, other = _text(text), _text(old), _text(new)
    if not part:
        return whole
    if len(whole) + whole.count(part) * len(other) > size:
        raise ValueError("too large")
    return whole.replace(part, other)


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

"""How is a statement kept to what it may do? By the engine: an authorizer, its limits, and a clock."""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from agent.tools.builtin.sqlite_functions import replace_slow_functions

Scalar = str | int | float | bool | None
Scalars = list[Scalar] | dict[str, Scalar]
"""Values of `?` in order, or of `:name` by name."""

_COLUMNS = 100
"""Columns of all tables that are told."""
_PLAIN = re.compile(r"\w{1,64}")
"""Names that are told: a name can hold anything, and what is told is read by models."""
_TICK = 1_000
"""Instructions of the engine between two looks at the clock."""


class Bounds(NamedTuple):
    """What one statement may use."""

    seconds: float
    rows: int
    size: int


class Manner(Enum):
    """What a statement may do."""

    READ = "read rows"
    WRITE = "read and change rows"
    SCHEMA = "read and change rows and tables"


_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_CHANGING = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_SCHEMA = {
    getattr(sqlite3, f"SQLITE_{verb}_{what}")
    for verb in ("CREATE", "DROP")
    for what in ("TABLE", "INDEX", "VIEW", "TRIGGER")
} | {sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_REINDEX}
_ALLOWED = {
    Manner.READ: _READING,
    Manner.WRITE: _READING | _CHANGING,
    Manner.SCHEMA: _READING | _CHANGING | _SCHEMA,
}
_TOLD = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
"""Pragmas that only tell; as table-valued functions they are part of a SELECT."""
_FORBIDDEN = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "printf", "format"}
"""Functions that reach outside of the database, where a build has them; and two that work for minutes in one go, when
they are told to, where no clock is looked at."""
_OWN = {"sqlite_master", "sqlite_temp_master"}
"""The engine's own tables: declaring one writes here, a table-valued function too. No statement can by itself."""


_KINDS = ("TABLE", "INDEX", "VIEW", "TRIGGER", "TEMP_TABLE", "TEMP_INDEX", "TEMP_VIEW", "TEMP_TRIGGER", "VTABLE")
_VERBS = ("ATTACH", "DETACH", "PRAGMA", "FUNCTION", "INSERT", "UPDATE", "DELETE", "TRANSACTION", "SAVEPOINT", "ANALYZE")
_NAMES = {
    getattr(sqlite3, f"SQLITE_{each}"): each.replace("_", " ")
    for each in (
        *_VERBS,
        "ALTER_TABLE",
        "REINDEX",
        *(f"{verb}_{what}" for verb in ("CREATE", "DROP") for what in _KINDS),
    )
}


def opened(path: Path, bounds: Bounds, manner: Manner) -> sqlite3.Connection:
    """A connection that cannot do more, whatever is executed on it."""
    mode = "ro" if manner is Manner.READ else "rw"
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", timeout=min(5.0, bounds.seconds), uri=True, isolation_level=None
    )
    connection.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    connection.execute(f"PRAGMA query_only = {int(manner is Manner.READ)}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    for limit, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, bounds.size),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    ):
        connection.setlimit(limit, most)
    replace_slow_functions(connection, bounds.size)
    return connection


def executed(
    connection: sqlite3.Connection, bounds: Bounds, manner: Manner, sql: str, parameters: Scalars
) -> tuple[list[dict[str, object]], int]:
    """Rows by column name, and how many rows were changed.

    Raises:
        PermissionError: the statement does what it may not do.
        TimeoutError: it took too long, and was stopped.
        ValueError: it is not one statement, gives too much, or its parameters do not fit.
        sqlite3.Error: the engine's own refusal, such as a missing table.
    """
    refused: list[str] = []
    with _guarded(connection, bounds, manner, refused):
        cursor = connection.cursor()
        try:
            cursor.execute(sql, parameters)
            if manner is Manner.READ and cursor.description is None:
                raise ValueError("the statement gives no rows; write one SELECT")
            return _taken(cursor, bounds), max(0, cursor.rowcount)
        except sqlite3.Warning as error:  # Python's word for more than one statement
            raise ValueError(str(error)) from None
        except (sqlite3.ProgrammingError, sqlite3.DataError, UnicodeEncodeError) as error:
            raise ValueError(f"the statement and its parameters do not fit: {error}") from error
        except sqlite3.DatabaseError as error:
            raise _explained(error, manner, refused, bounds, connection) from error
        finally:
            cursor.close()  # a statement that was broken off would hold the file until somebody forgets the error


def outline(connection: sqlite3.Connection) -> str:
    """The tables with their columns, as `orders(id, amount)`; empty when they cannot be told now."""
    sql = (
        "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c "
        "WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY t.rowid, c.cid LIMIT ?"
    )
    tables: dict[str, list[str]] = {}
    try:
        for table, column in connection.execute(sql, (_COLUMNS,)):
            if _PLAIN.fullmatch(table) and _PLAIN.fullmatch(column):
                tables.setdefault(table, []).append(column)
    except sqlite3.Error:
        return ""
    return ", ".join(f"{table}({', '.join(columns)})" for table, columns in tables.items())


def _explained(
    error: sqlite3.DatabaseError, manner: Manner, refused: list[str], bounds: Bounds, connection: sqlite3.Connection
) -> Exception:
    if refused:
        return PermissionError(f"the statement may only {manner.value}; it wants: {refused[0]}")
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return TimeoutError(f"the statement took longer than {bounds.seconds:g} s and was stopped")
    if getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR":  # the engine's word for what it cannot compile
        connection.set_authorizer(None)
        there = outline(connection) if "no such" in str(error) else ""
        return ValueError(f"the statement was refused: {error}" + (f"; there is {there}" if there else ""))
    return error


def _taken(cursor: sqlite3.Cursor, bounds: Bounds) -> list[dict[str, object]]:
    names = _names([each[0] for each in cursor.description or ()])
    rows, size = [], 0
    for row in cursor:
        rows.append(dict(zip(names, row, strict=True)))
        size += sum(len(each) if isinstance(each, str | bytes) else 8 for each in row)
        if len(rows) > bounds.rows:
            raise ValueError(f"too many rows: a query may give {bounds.rows}; add up, filter, or use LIMIT")
        if size > bounds.size:
            raise ValueError(f"too large: an answer may have {bounds.size} bytes; take fewer rows or columns")
    return rows


def _names(columns: list[str]) -> list[str]:
    """Column names, each once: a join can give two of one name."""
    named: list[str] = []
    for each in columns:
        name, number = each, 2
        while name in named:
            name, number = f"{each}_{number}", number + 1
        named.append(name)
    return named


@contextmanager
def _guarded(connection: sqlite3.Connection, bounds: Bounds, manner: Manner, refused: list[str]) -> Iterator[None]:
    until = time.monotonic() + bounds.seconds
    connection.set_progress_handler(lambda: int(time.monotonic() > until), _TICK)
    connection.set_authorizer(_authorizer(manner, refused))
    try:
        yield
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, _TICK)


def _authorizer(manner: Manner, refused: list[str]) -> Callable[..., int]:
    altering = False

    def decide(action: int, first: str | None, second: str | None, _base: str | None, _by: str | None) -> int:
        nonlocal altering
        altering = altering or (action == sqlite3.SQLITE_ALTER_TABLE and manner is Manner.SCHEMA)
        if altering and action == sqlite3.SQLITE_FUNCTION and second in ("printf", "format"):
            return sqlite3.SQLITE_OK  # the engine's own way of writing the new schema
        if _may(action, first or "", second or "", manner):
            return sqlite3.SQLITE_OK
        refused.append(" ".join(each for each in (_NAMES.get(action, "something else"), first, second) if each))
        return sqlite3.SQLITE_DENY

    return decide


def _may(action: int, first: str, second: str, manner: Manner) -> bool:
    if action == sqlite3.SQLITE_FUNCTION:
        return second.lower() not in _FORBIDDEN
    if action == sqlite3.SQLITE_PRAGMA:
        return first.lower() in _TOLD
    if action in _CHANGING and first.lower().startswith("sqlite_"):
        return first.lower() in _OWN and (manner is Manner.SCHEMA or action == sqlite3.SQLITE_UPDATE)
    return action in _ALLOWED[manner]

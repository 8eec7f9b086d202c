"""Which checkpointer? LangGraph's savers on the run's database, and where those lie that a caller brings.

The effects and artifacts of a run must live and die with its checkpoints: a journal that outlives them would
answer for effects of a run nobody can resume, and one that dies first would let them happen twice.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.store.database import Database, Place
from agent.store.postgres import Postgres
from agent.store.sqlite import BUSY_SECONDS, MEMORY, connect, pragmas

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

Saver: TypeAlias = Union[SqliteSaver, "PostgresSaver"]
"""For `invoke`. Its `conn` is closed by who opened it."""

AsyncSaver: TypeAlias = Union[AsyncSqliteSaver, "AsyncPostgresSaver"]
"""For `ainvoke`."""


class Elsewhere(Enum):
    """Where checkpoints lie that are in no database of ours."""

    MEMORY = "memory"
    UNKNOWN = "unknown"


def open_saver(database: Database | Place) -> Saver:
    """Open the checkpoints of a database; for `invoke`."""
    place = _place(database)
    if isinstance(place, Postgres):
        from agent.store.postgres_savers import postgres_saver  # needs the extra

        return postgres_saver(place)
    return SqliteSaver(connect(place or MEMORY, "NORMAL", "DEFERRED"))


@asynccontextmanager
async def async_saver(database: Database | Place) -> AsyncIterator[AsyncSaver]:
    """Open the checkpoints of a database; for `ainvoke`."""
    place = _place(database)
    if isinstance(place, Postgres):
        from agent.store.postgres_savers import async_postgres_saver  # needs the extra

        async with async_postgres_saver(place) as saver:
            yield saver
        return
    async with aiosqlite.connect(place or MEMORY, timeout=BUSY_SECONDS) as connection:
        for pragma in pragmas("NORMAL"):
            await connection.execute(pragma)
        yield AsyncSqliteSaver(connection)


def lie_in(checkpointer: BaseCheckpointSaver[Any]) -> Place | Elsewhere:
    """Where the checkpoints of a caller's checkpointer lie."""
    match checkpointer:
        case SqliteSaver():
            with checkpointer.lock:
                return _main_file(checkpointer.conn)
        case AsyncSqliteSaver():
            return _aiosqlite_file(checkpointer.conn)
        case InMemorySaver():
            return Elsewhere.MEMORY
        case _ if any(each.__module__.startswith("langgraph.checkpoint.postgres") for each in type(checkpointer).mro()):
            from agent.store.postgres_savers import database_of  # the extra is there

            return database_of(checkpointer)
        case _:
            return Elsewhere.UNKNOWN


def _place(database: Database | Place) -> Place | None:
    return database.place if isinstance(database, Database) else database


def _main_file(connection: sqlite3.Connection) -> Path | Elsewhere:
    files = {row[1]: row[2] for row in connection.execute("PRAGMA database_list")}
    return Path(files["main"]) if files["main"] else Elsewhere.MEMORY


def _aiosqlite_file(connection: aiosqlite.Connection) -> Path | Elsewhere:
    # The saver's own connection may not be open yet, and is bound to a thread that reports to an event loop.
    # Its connector (private, but as old as aiosqlite) opens another on the same file, and SQLite names that.
    with closing(connection._connector()) as another:
        return _main_file(another)

"""Which checkpointer, and in which file? LangGraph's SQLite savers on the run's database, and the way back.

The effects and artifacts of a run must live and die with its checkpoints: a journal that outlives them would
answer for effects of a run nobody can resume, and one that dies first would let them happen twice.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.store.database import Database
from agent.store.sqlite import BUSY_SECONDS, MEMORY, connect, pragmas

Checkpointer = BaseCheckpointSaver[Any] | bool | None
"""What LangGraph takes for a checkpointer; its own version type does not matter here."""


def open_saver(database: Database | Path) -> SqliteSaver:
    """Open the checkpoints of a database; for `invoke`."""
    return SqliteSaver(connect(_location(database), "NORMAL", "DEFERRED"))


@asynccontextmanager
async def async_saver(database: Database | Path) -> AsyncIterator[AsyncSqliteSaver]:
    """Open the checkpoints of a database; for `ainvoke`."""
    async with aiosqlite.connect(_location(database), timeout=BUSY_SECONDS) as connection:
        for pragma in pragmas("NORMAL"):
            await connection.execute(pragma)
        yield AsyncSqliteSaver(connection)


def backing_file(checkpointer: Checkpointer) -> Path | None:
    """The file a caller's checkpointer writes to; None when it is in memory or of a kind we do not know."""
    match checkpointer:
        case SqliteSaver():
            with checkpointer.lock:
                return _main_file(checkpointer.conn)
        case AsyncSqliteSaver():
            return _aiosqlite_file(checkpointer.conn)
        case _:
            return None


def _location(database: Database | Path) -> Path | str:
    place = database if isinstance(database, Path) else database.place
    return place if isinstance(place, Path) else MEMORY


def _main_file(connection: sqlite3.Connection) -> Path | None:
    files = {row[1]: row[2] for row in connection.execute("PRAGMA database_list")}
    return Path(files["main"]) if files["main"] else None


def _aiosqlite_file(connection: aiosqlite.Connection) -> Path | None:
    # The saver's own connection may not be open yet, and is bound to a thread that reports to an event loop.
    # Its connector (private, but as old as aiosqlite) opens another on the same file, and SQLite names that.
    with closing(connection._connector()) as another:
        return _main_file(another)

"""LangGraph's Postgres savers on the run's database. The one module that needs the extra `postgres`."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from agent.store.connection import DatabaseRefused
from agent.store.postgres import PATIENCE, PAUSE, Postgres

_SETTING_UP = 0x6B696E7473756769
"""The lock that is held while the tables are made: any number that others do not use."""

_POOLED: dict[str, Any] = {
    "kwargs": {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row},
    # a saver does one thing at a time; the pool is for its connections, which are made again when they broke
    "min_size": 1,
    "max_size": 1,
    "timeout": PATIENCE,
    "open": False,
}


def postgres_saver(place: Postgres) -> PostgresSaver:
    """Open the checkpoints, making their tables when there are none."""
    _set_up(place)
    pool = ConnectionPool(place.conninfo(), check=ConnectionPool.check_connection, **_POOLED)
    pool.open()
    return PostgresSaver(pool)


@asynccontextmanager
async def async_postgres_saver(place: Postgres) -> AsyncIterator[AsyncPostgresSaver]:
    """The same, asynchronously."""
    await asyncio.to_thread(_set_up, place)
    async with AsyncConnectionPool(place.conninfo(), check=AsyncConnectionPool.check_connection, **_POOLED) as pool:
        yield AsyncPostgresSaver(pool)


def database_of(checkpointer: BaseCheckpointSaver[Any]) -> Postgres:
    """The database that a caller's saver is connected to.

    Raises:
        DatabaseRefused: its connection is closed, or decided anew for each connection that is made.
    """
    conn = checkpointer.conn  # type: ignore[attr-defined]  # all Postgres savers have one
    if isinstance(conn, psycopg.Connection | psycopg.AsyncConnection):
        if conn.closed:
            raise DatabaseRefused("the checkpointer's connection is closed: pass one that is open")
        return Postgres(make_conninfo(conn.info.dsn, password=conn.info.password or None))
    if callable(conn.conninfo) or callable(conn.kwargs):
        raise DatabaseRefused("the checkpointer's pool asks for its connection string: pass one that is given it")
    return Postgres(make_conninfo(conn.conninfo, **_only_libpq(conn.kwargs or {})))


def _set_up(place: Postgres) -> None:
    """Make the checkpoint tables, or bring them up to date, in one process at a time."""
    with psycopg.connect(place.conninfo(), **_POOLED["kwargs"]) as connection:
        if _is_set_up(connection):
            return
        # Not a lock that waits: an index that is made beside other work waits for those who wait.
        query = "SELECT pg_try_advisory_lock(%s) AS held"
        while connection.execute(query, (_SETTING_UP,)).fetchone() != {"held": True}:
            time.sleep(PAUSE)
        PostgresSaver(connection).setup()


def _is_set_up(connection: "psycopg.Connection[Any]") -> bool:
    if connection.execute("SELECT to_regclass('checkpoint_migrations') AS name").fetchone() == {"name": None}:
        return False
    return connection.execute("SELECT max(v) AS v FROM checkpoint_migrations").fetchone() == {
        "v": len(PostgresSaver.MIGRATIONS) - 1
    }


def _only_libpq(given: dict[str, Any]) -> dict[str, Any]:
    known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()}
    return {name: value for name, value in given.items() if name in known}

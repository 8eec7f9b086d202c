"""LangGraph's Postgres savers on the run's database. The one module that needs the extra `postgres`."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import Any

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from agent.store.connection import DatabaseRefused
from agent.store.postgres import HOW, PAUSE, Outage, Postgres, connected_again, lost

_SETTING_UP = 0x6B696E7473756769
"""The lock that is held while the tables are made: any number that others do not use."""


class Lasting(ConnectionPool[Any]):
    """One connection, looked at before each use and made again when it broke.

    A pool only by its type, which is what savers take: they do one thing at a time. LangGraph's pools wait for a
    server that went away as long as anybody likes to, again at each write, and look for it more and more seldom.
    """

    def __init__(self, place: Postgres) -> None:
        super().__init__(place.conninfo(), open=False)
        self.place = place
        self._made: psycopg.Connection[Any] | None = None
        self._outage = Outage(place)

    @contextmanager
    def connection(self, timeout: float | None = None) -> Iterator["psycopg.Connection[Any]"]:  # noqa: ARG002
        """The connection.

        Raises:
            DatabaseLost: the server went away, and did not come back in time.
        """
        if self._made is None or not _answers(self._made):
            self._made = connected_again(self.place, self._outage, row_factory=dict_row)
        with _watched(self.place, self._made):
            yield self._made

    def close(self, timeout: float = 0) -> None:  # noqa: ARG002
        """Give it up."""
        if self._made is not None:
            self._made.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never made
            self.close()


class AsyncLasting(AsyncConnectionPool[Any]):
    """The same, asynchronously."""

    def __init__(self, place: Postgres) -> None:
        super().__init__(place.conninfo(), open=False)
        self.place = place
        self._made: psycopg.AsyncConnection[Any] | None = None
        self._outage = Outage(place)

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator["psycopg.AsyncConnection[Any]"]:  # noqa: ARG002
        """The connection.

        Raises:
            DatabaseLost: the server went away, and did not come back in time.
        """
        if self._made is None or not await _answers_too(self._made):
            self._made = await self._again()
        with _watched(self.place, self._made):
            yield self._made

    async def close(self, timeout: float = 0) -> None:  # noqa: ARG002
        """Give it up."""
        if self._made is not None:
            await self._made.close()

    def __del__(self) -> None:
        if getattr(self, "_made", None) is not None:
            self._made.pgconn.finish()  # type: ignore[union-attr]

    async def _again(self) -> "psycopg.AsyncConnection[Any]":
        while True:
            try:
                made = await psycopg.AsyncConnection.connect(self.place.conninfo(), **HOW, row_factory=dict_row)
            except psycopg.Error as error:
                self._outage.outlasts(error)
                await asyncio.sleep(PAUSE)
            else:
                self._outage.over()
                return made


def postgres_saver(place: Postgres) -> PostgresSaver:
    """Open the checkpoints, making their tables when there are none."""
    pool = Lasting(place)
    _set_up(pool)
    return PostgresSaver(pool)


@asynccontextmanager
async def async_postgres_saver(place: Postgres) -> AsyncIterator[AsyncPostgresSaver]:
    """The same, asynchronously."""
    await asyncio.to_thread(_made_ready, place)
    pool = AsyncLasting(place)
    try:
        yield AsyncPostgresSaver(pool)
    finally:
        await pool.close()


def database_of(checkpointer: BaseCheckpointSaver[Any]) -> Postgres:
    """The database that a caller's saver is connected to.

    Raises:
        DatabaseRefused: its connection is closed, or decided anew for each connection that is made.
    """
    conn = checkpointer.conn  # type: ignore[attr-defined]  # all Postgres savers have one
    if isinstance(conn, Lasting | AsyncLasting):
        return conn.place
    if isinstance(conn, psycopg.Connection | psycopg.AsyncConnection):
        if conn.closed:
            raise DatabaseRefused("the checkpointer's connection is closed: pass one that is open")
        return Postgres(make_conninfo(conn.info.dsn, password=conn.info.password or None))
    if callable(conn.conninfo) or callable(conn.kwargs):
        raise DatabaseRefused("the checkpointer's pool asks for its connection string: pass one that is given it")
    return Postgres(make_conninfo(conn.conninfo, **_only_libpq(conn.kwargs or {})))


def _made_ready(place: Postgres) -> None:
    with closing(Lasting(place)) as pool:
        _set_up(pool)


def _set_up(pool: Lasting) -> None:
    """Make the checkpoint tables, or bring them up to date, in one process at a time."""
    with pool.connection() as connection:
        if _is_set_up(connection):
            return
        # Not a lock that waits: an index that is made beside other work waits for those who wait.
        query = "SELECT pg_try_advisory_lock(%s) AS held"
        while connection.execute(query, (_SETTING_UP,)).fetchone() != {"held": True}:
            time.sleep(PAUSE)
        try:
            PostgresSaver(connection).setup()
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_SETTING_UP,))


def _is_set_up(connection: "psycopg.Connection[Any]") -> bool:
    if connection.execute("SELECT to_regclass('checkpoint_migrations') AS name").fetchone() == {"name": None}:
        return False
    return connection.execute("SELECT max(v) AS v FROM checkpoint_migrations").fetchone() == {
        "v": len(PostgresSaver.MIGRATIONS) - 1
    }


@contextmanager
def _watched(place: Postgres, connection: "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]") -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if connection.closed:
            raise lost(place, error) from error
        raise


def _answers(connection: "psycopg.Connection[Any]") -> bool:
    """Whether it can be used; one that is not is closed."""
    with suppress(psycopg.Error):
        connection.execute("")
    if not _is_idle(connection):
        connection.close()
    return not connection.closed


async def _answers_too(connection: "psycopg.AsyncConnection[Any]") -> bool:
    with suppress(psycopg.Error):
        await connection.execute("")
    if not _is_idle(connection):
        await connection.close()
    return not connection.closed


def _is_idle(connection: "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]") -> bool:
    """Whether nothing is left on it of a use that was cancelled."""
    return connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def _only_libpq(given: dict[str, Any]) -> dict[str, Any]:
    known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()}
    return {name: value for name, value in given.items() if name in known}

"""The fence of checkpoints in Postgres: a run that has lost its thread is refused in the transaction that would write.

The transaction takes the lock under which leases change hands, so that none does between the look and the commit.
One that the server went away from is tried once more, on a connection made again: twice the same is as good as once.
"""

import copy
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver, _ainternal, _internal
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row

from agent.core.lease import Superseded
from agent.store.connection import DatabaseLost
from agent.store.hold import Hold, held
from agent.store.postgres import lock_of

_LOCK = "SELECT pg_advisory_xact_lock(%s)"
_QUERY = "SELECT 1 FROM kintsugi_leases WHERE thread = %s AND token > %s"


class _View:
    """A saver for one write, on behalf of somebody who holds the thread; without one it is the saver itself."""

    where: object
    hold: Hold | None = None

    def _for(self, config: RunnableConfig) -> Self:
        view = copy.copy(self)
        view.hold = held(config, self.where)
        return view


class FencedPostgresSaver(_View, PostgresSaver):
    """Writes only for those who hold their thread."""

    def put(self, config: RunnableConfig, *args: Any) -> RunnableConfig:
        """Save a checkpoint."""
        put = partial(super(_View, self._for(config)).put, config, *args)
        try:
            return put()
        except DatabaseLost:
            return put()

    def put_writes(self, config: RunnableConfig, *args: Any) -> None:
        """Save what a task wrote."""
        put = partial(super(_View, self._for(config)).put_writes, config, *args)
        try:
            put()
        except DatabaseLost:
            put()

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:
        if self.hold is None:
            with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor
            return
        with (
            self.lock,
            _internal.get_connection(self.conn) as conn,
            conn.transaction(),
            conn.cursor(binary=True, row_factory=dict_row) as cursor,
        ):
            cursor.execute(_LOCK, (lock_of(self.hold.thread),))
            if cursor.execute(_QUERY, (self.hold.thread, self.hold.token)).fetchone():
                raise Superseded(self.hold.thread)
            yield cursor


class FencedAsyncPostgresSaver(_View, AsyncPostgresSaver):
    """The same, asynchronously. A write that is cancelled is taken back by the connection."""

    async def aput(self, config: RunnableConfig, *args: Any) -> RunnableConfig:
        """Save a checkpoint."""
        put = partial(super(_View, self._for(config)).aput, config, *args)
        try:
            return await put()
        except DatabaseLost:
            return await put()

    async def aput_writes(self, config: RunnableConfig, *args: Any) -> None:
        """Save what a task wrote."""
        put = partial(super(_View, self._for(config)).aput_writes, config, *args)
        try:
            await put()
        except DatabaseLost:
            await put()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Any]:
        if self.hold is None:
            async with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor
            return
        async with (
            self.lock,
            _ainternal.get_connection(self.conn) as conn,
            conn.transaction(),
            conn.cursor(binary=True, row_factory=dict_row) as cursor,
        ):
            await cursor.execute(_LOCK, (lock_of(self.hold.thread),))
            found = await cursor.execute(_QUERY, (self.hold.thread, self.hold.token))
            if await found.fetchone():
                raise Superseded(self.hold.thread)
            yield cursor


def fenced_postgres(saver: Any, where: object) -> Any:
    """The same saver with a fence; one of a class that we do not know, or in pipeline mode, stays as it is."""
    kinds = {PostgresSaver: FencedPostgresSaver, AsyncPostgresSaver: FencedAsyncPostgresSaver}
    kind: Any = kinds.get(type(saver))
    if kind is None or saver.pipe is not None:
        return saver
    clone = kind.__new__(kind)
    clone.__dict__.update(saver.__dict__, where=where)
    return clone

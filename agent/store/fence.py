"""Whose checkpoints count? A run that has lost its thread is refused in the very transaction that would write.

A look beforehand would not do: a process may be stopped for minutes between the look and the write. So the saver
writes through a connection that takes the write lock first, then looks at the lease, then goes on.
"""

import asyncio
import copy
import sqlite3
from pathlib import Path
from typing import Any, Self

import aiosqlite
from aiosqlite.context import contextmanager as awaitable_context
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.core.lease import Superseded
from agent.store.checkpoints import lie_in
from agent.store.hold import Hold, held
from agent.store.postgres import Postgres

_QUERY = "SELECT 1 FROM kintsugi_leases WHERE thread = ? AND token > ?"


def fenced(saver: BaseCheckpointSaver[Any], where: object) -> BaseCheckpointSaver[Any]:
    """The same checkpointer, writing only for those who hold their thread.

    Args:
        saver: a caller's. What this process alone can write to needs no fence: a call of the own process is known
            to go on. Of savers that do not lie in a database beside the leases, only the journal is fenced.
        where: the database that keeps the leases, as a `Hold` names it.
    """
    fence: type[_Fence] | type[_AsyncFence]
    if where == (place := lie_in(saver)) and isinstance(place, Postgres):
        from agent.store.postgres_fence import fenced_postgres  # the extra is there

        fenced_saver: BaseCheckpointSaver[Any] = fenced_postgres(saver, where)
        return fenced_saver
    match saver:
        case SqliteSaver():
            fence = _Fence
        case AsyncSqliteSaver():
            fence = _AsyncFence
        case _:
            return saver
    if not isinstance(place, Path) or place.resolve() != where:
        return saver
    kind: Any = type(f"Fenced{type(saver).__name__}", (fence, type(saver)), {"where": where})
    clone: BaseCheckpointSaver[Any] = kind.__new__(kind)
    clone.__dict__.update(saver.__dict__)
    return clone


class _Fence:
    """Makes a saver write through a guarded connection."""

    where: object
    conn: Any

    def put(self, config: RunnableConfig, *args: Any) -> RunnableConfig:
        """Save a checkpoint."""
        written: RunnableConfig = super(_Fence, self._for(config)).put(config, *args)  # type: ignore[misc]
        return written

    def put_writes(self, config: RunnableConfig, *args: Any) -> None:
        """Save what a task wrote."""
        super(_Fence, self._for(config)).put_writes(config, *args)  # type: ignore[misc]

    def _for(self, config: RunnableConfig) -> Self:
        hold = held(config, self.where)
        if hold is None:
            return self
        view = copy.copy(self)
        view.conn = _Guarded(self.conn, hold)
        return view


class _AsyncFence:
    """The same for an asynchronous saver. A write that has begun is finished, also when its run is cancelled.

    Otherwise the transaction would stay open, with the write lock, for as long as the connection lives.
    """

    where: object
    conn: Any

    async def aput(self, config: RunnableConfig, *args: Any) -> RunnableConfig:
        """Save a checkpoint."""
        put = super(_AsyncFence, self._for(config)).aput(config, *args)  # type: ignore[misc]
        written: RunnableConfig = await _finished(put)
        return written

    async def aput_writes(self, config: RunnableConfig, *args: Any) -> None:
        """Save what a task wrote."""
        await _finished(super(_AsyncFence, self._for(config)).aput_writes(config, *args))  # type: ignore[misc]

    def _for(self, config: RunnableConfig) -> Self:
        hold = held(config, self.where)
        if hold is None:
            return self
        view = copy.copy(self)
        view.conn = _AsyncGuarded(self.conn, hold)
        return view


class _Guarded:
    """A connection whose every cursor stands in a transaction of somebody who holds the thread."""

    def __init__(self, connection: sqlite3.Connection, hold: Hold) -> None:
        self._connection = connection
        self._hold = hold

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def cursor(self) -> sqlite3.Cursor:
        """A cursor to write with."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        if self._connection.execute(_QUERY, (self._hold.thread, self._hold.token)).fetchone():
            self._connection.rollback()
            raise Superseded(self._hold.thread)
        return self._connection.cursor()


class _AsyncGuarded:
    """The same for aiosqlite, whose savers write through the connection and through cursors of it."""

    def __init__(self, connection: aiosqlite.Connection, hold: Hold) -> None:
        self._connection = connection
        self._hold = hold

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    @awaitable_context
    async def execute(self, *args: Any) -> aiosqlite.Cursor:
        """Write."""
        await self._guard()
        return await self._connection.execute(*args)

    @awaitable_context
    async def cursor(self) -> aiosqlite.Cursor:
        """A cursor to write with."""
        await self._guard()
        return await self._connection.cursor()

    async def _guard(self) -> None:
        if not self._connection.in_transaction:
            await self._connection.execute("BEGIN IMMEDIATE")
        found = await self._connection.execute(_QUERY, (self._hold.thread, self._hold.token))
        if await found.fetchone():
            await self._connection.rollback()
            raise Superseded(self._hold.thread)


async def _finished(write: Any) -> Any:
    """The end of a write; a cancellation in between waits for it."""
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise

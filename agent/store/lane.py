"""How a database is called from many threads and loops: each connection has a thread, and work queues for it.

The queue makes a lock unnecessary, never blocks an event loop, and is not starved by tools that fill the
loop's own thread pool.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from agent.store.connection import Connection, DatabaseLost

T = TypeVar("T")

Work = Callable[[Connection], T]
"""Something to do with a connection, on its thread: one statement, or one transaction, that may be done twice."""


class Lane:
    """One connection and the one thread that uses it. Work is done in the order it was handed over."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kintsugi-lane")

    def submit(self, work: Work[T]) -> Future[T]:
        """Hand work over without waiting for it."""
        return self._thread.submit(self._do, work)

    def call(self, work: Work[T]) -> T:
        """Do work and wait; for callers that have no event loop to block."""
        return self.submit(work).result()

    async def run(self, work: Work[T]) -> T:
        """Do work without blocking the event loop. A caller that is cancelled meanwhile does not undo it."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(work)))

    def close(self) -> None:
        """Finish the work handed over, then close the connection. Closing twice is harmless."""
        self._thread.shutdown()
        self._connection.close()

    def _do(self, work: Work[T]) -> T:
        # A method, so that queued work holds the lane: its thread ends, once idle, when nobody holds it.
        try:
            return work(self._connection)
        except DatabaseLost:
            # Once more, on a connection made again: work is one statement or one transaction, so that the first
            # try left nothing or all of it, and all of it twice is the same as once.
            return work(self._connection)

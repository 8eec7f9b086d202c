"""How SQLite is called from many threads and loops: each connection has a thread, and work queues for it.

The queue makes a lock unnecessary, never blocks an event loop, and is not starved by tools that fill the
loop's own thread pool.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], T]
"""Something to do with a connection, on its thread."""

Synchronous = Literal["NORMAL", "FULL"]
"""NORMAL survives the death of the process, FULL also the loss of power (one fsync for each commit)."""

Isolation = Literal["DEFERRED"] | None
"""None: each statement commits by itself, outside of `transaction`. Savers want Python's own transactions."""

BUSY_SECONDS = 30.0
"""How long a writer waits for another process before SQLite reports that the database is locked."""


MEMORY = ":memory:"
"""Location of a database that ends with its connection."""


class Connection(sqlite3.Connection):
    """A connection that closes when nobody holds it: neither a graph nor a saver has a closing moment."""

    def __del__(self) -> None:
        self.close()


def connect(location: Path | str, synchronous: Synchronous, isolation: Isolation = None) -> sqlite3.Connection:
    """Open a connection that may be used from any thread, by one at a time."""
    connection = sqlite3.connect(
        location, timeout=BUSY_SECONDS, isolation_level=isolation, check_same_thread=False, factory=Connection
    )
    for pragma in pragmas(synchronous):
        connection.execute(pragma)
    return connection


def pragmas(synchronous: Synchronous) -> tuple[str, ...]:
    """What SQLite has to be told again for every connection."""
    return (
        f"PRAGMA synchronous = {synchronous}",
        "PRAGMA foreign_keys = ON",
        # On macOS a plain fsync leaves the data in the drive's cache; elsewhere this changes nothing.
        "PRAGMA fullfsync = ON",
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Takes the write lock first, so what is read inside is still true at the commit."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class Lane:
    """One SQLite connection and the one thread that uses it. Work is done in the order it was handed over."""

    def __init__(self, location: Path | str, synchronous: Synchronous) -> None:
        self._connection = connect(location, synchronous)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"kintsugi-{synchronous.lower()}")

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
        return work(self._connection)

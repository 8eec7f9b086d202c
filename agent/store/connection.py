"""What does our SQL need of a database? The same of SQLite and Postgres: `?` for a parameter, tuples for rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


class DatabaseRefused(ValueError):
    """The database cannot be used as it is. It was not changed; the message says what to do."""


class DatabaseLost(RuntimeError):
    """The database went away and did not come back in time. What was recorded in it is still there."""


class Rows(Protocol):
    """What a statement found, or how much it changed."""

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE touched."""
        ...

    def fetchone(self) -> Any:
        """The next row as a tuple; None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection on which each statement commits by itself, outside of `transaction`."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run one statement. Written as both databases understand it, with a `?` for each parameter."""
        ...

    def begin(self, about: str) -> None:
        """Begin a transaction; for `transaction` alone."""
        ...

    def commit(self) -> None:
        """End it; for `transaction` alone."""
        ...

    def rollback(self) -> None:
        """Take it back, if there is one; for `transaction` alone."""
        ...

    def close(self) -> None:
        """Give the connection up. Closing twice is harmless."""
        ...


@contextmanager
def transaction(connection: Connection, about: str) -> Iterator[None]:
    """All or nothing, and alone: what is read inside is still true at the commit, for threads and processes alike.

    Args:
        connection: the lane's.
        about: what it decides about, such as the thread. Only transactions about the same thing wait for each
            other on Postgres; on SQLite all do.
    """
    connection.begin(about)
    try:
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise

"""Runs in an SQLite file. Can the file be trusted, and what is to be done when it fails?

One that is damaged, foreign or newer is refused and left byte for byte as it was.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

from agent.store.connection import DatabaseLost, DatabaseRefused, transaction
from agent.store.lane import Lane, Work
from agent.store.layout import lay_out
from agent.store.schema import SQLITE, migrate, read_schema, refuse_newer

T = TypeVar("T")

Synchronous = Literal["NORMAL", "FULL"]
"""NORMAL survives the death of the process, FULL also the loss of power (one fsync for each commit)."""

Isolation = Literal["DEFERRED"] | None
"""None: each statement commits by itself, outside of `transaction`. Savers want Python's own transactions."""

BUSY_SECONDS = 30.0
"""How long a writer waits for another process before SQLite reports that the database is locked."""

MEMORY = ":memory:"
"""Location of a database that ends with its connection."""

_WAL_TRIES = 5
"""The second try succeeds unless others interfere again. A file left as it was works as well, slower."""

_ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database; name another file, or restore a backup if it was one",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore a backup, or move it away and start anew",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that it is a file and that its folder is writable",
    sqlite3.SQLITE_IOERR: "it cannot be read or written; check that it is a file, that the disk works, and quotas",
    sqlite3.SQLITE_READONLY: "it cannot be written; check the permissions of the file and of its folder",
    sqlite3.SQLITE_PERM: "access is denied; check the permissions of the file and of its folder",
    sqlite3.SQLITE_BUSY: "another process is writing to it and does not finish; try again when it has ended",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
}


class SqliteConnection(sqlite3.Connection):
    """A connection that closes when nobody holds it: neither a graph nor a saver has a closing moment."""

    def begin(self, about: str) -> None:  # noqa: ARG002 - one writer at a time, whatever it is about
        """Take the write lock, waiting for who has it."""
        self.execute("BEGIN IMMEDIATE")

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it was never open
            self.close()


class SqliteLane(Lane):
    """A lane to an SQLite file, which says in a sentence what is wrong with it."""

    def __init__(self, path: Path, synchronous: Synchronous) -> None:
        """Args: the file; what its commits survive."""
        super().__init__(connect(path, synchronous))
        self._path, self._file = path, _identity(path)

    def _do(self, work: Work[T]) -> T:
        with telling(self._path):
            if _identity(self._path) != self._file:
                # SQLite goes on writing into a file that nobody can find any more
                raise DatabaseLost(
                    f"the database {self._path} was moved or deleted while it was in use; put it back: what was "
                    "recorded until then is in it"
                )
            return super()._do(work)


@contextmanager
def telling(where: object) -> Iterator[None]:
    """While a run goes on: say what is wrong with the file, and what to do, where SQLite fails.

    Raises:
        DatabaseLost: in place of an error that is the file's and not ours. What was recorded in it is still there.
    """
    try:
        yield
    except sqlite3.Error as error:
        advice = _advice(error)
        if advice is None:
            raise
        what = f"the database {where}" if isinstance(where, Path) else "the database"
        raise DatabaseLost(f"{what} failed: {advice} ({error})") from error


def connect(location: Path | str, synchronous: Synchronous, isolation: Isolation = None) -> SqliteConnection:
    """Open a connection that may be used from any thread, by one at a time."""
    connection = sqlite3.connect(
        location, timeout=BUSY_SECONDS, isolation_level=isolation, check_same_thread=False, factory=SqliteConnection
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


def prepare(path: Path) -> None:
    """Make the file with its folders when there is none, look into it, and bring its tables up to date.

    Raises:
        DatabaseRefused: it is damaged, no database, of a newer release, or not accessible.
    """
    try:
        _make_file(path)
        _inspect(path)
        with closing(connect(path, "FULL")) as connection:
            _use_wal(connection)
            migrate(connection, SQLITE, path)
            lay_out(connection)
    except OSError as error:
        raise DatabaseRefused(f"cannot use {path} as a database: {error.strerror or error}") from error
    except sqlite3.Error as error:
        _refuse(path, error)


def connect_memory() -> SqliteConnection:
    """A database that ends with its connection."""
    connection = connect(MEMORY, "NORMAL")
    migrate(connection, SQLITE, MEMORY)
    return connection


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None when there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _make_file(path: Path) -> None:
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    # Never open an existing database with anything but SQLite: closing it drops this process's POSIX locks.
    with suppress(FileExistsError):
        path.touch(mode=0o600, exist_ok=False)


def _inspect(path: Path) -> None:
    # Read-only, because a writer folds the write-ahead log into the file when it closes.
    try:
        _read(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
        # A crash left half a transaction in the file; only a writer can take it back, as SQLite intends.
        _read(path, "rw")


def _read(path: Path, mode: str) -> None:
    location = f"{path.as_uri()}?mode={mode}"
    with closing(sqlite3.connect(location, uri=True, timeout=BUSY_SECONDS, factory=SqliteConnection)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DatabaseRefused(f"{path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]}. SQLite found: {found}")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'kintsugi_meta'").fetchone():
            refuse_newer(read_schema(connection), path)


def _use_wal(connection: SqliteConnection) -> None:
    for _ in range(_WAL_TRIES):
        if _switched_to_wal(connection):
            return
        # Another process is switching the same new file. SQLite will not wait for that in the switch itself
        # (each would wait for the other's read lock), but it does wait for a write lock.
        with transaction(connection, "wal"):
            pass


def _switched_to_wal(connection: sqlite3.Connection) -> bool:
    """Let readers go on while one writes; the file remembers it."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _refuse(path: Path, error: sqlite3.Error) -> NoReturn:
    raise DatabaseRefused(f"{path}: {_advice(error) or 'SQLite cannot use it'} ({error})") from error


def _advice(error: sqlite3.Error) -> str | None:
    """What to do about the file; None when it is not the file's fault."""
    # The low byte is the kind of error; the rest says where in SQLite it arose.
    return _ADVICE.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF)

"""Where a run is kept: one SQLite file for checkpoints, artifacts, effects and the run index.

Opening it answers whether the file can be trusted. One that is damaged, foreign or newer is refused and left
byte for byte as it was. The checkpoint tables in the same file belong to LangGraph's savers, hence the prefix
on ours, and a version that lies in a table: `PRAGMA user_version` may be taken by the caller's application.
"""

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from agent.store.lane import BUSY_SECONDS, MEMORY, Lane, connect, transaction

DEFAULT_PATH = Path(".kintsugi/kintsugi.db")
"""Used when the caller names no file; relative to the working directory."""

SCHEMA = 1
"""Version of our tables. A change that an older release cannot read adds one."""

_WAL_TRIES = 5
"""The second try succeeds unless others interfere again. A file left as it was works as well, slower."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS kintsugi_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS kintsugi_artifacts (digest TEXT PRIMARY KEY, body BLOB NOT NULL)",
    """CREATE TABLE IF NOT EXISTS kintsugi_effects (
        thread TEXT NOT NULL, tool TEXT NOT NULL, args_digest TEXT NOT NULL, repetition INTEGER NOT NULL,
        step TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, result BLOB,
        PRIMARY KEY (thread, tool, args_digest, repetition))""",
    # goal and source are typed by people and by file systems: blobs, because they may not be valid Unicode
    """CREATE TABLE IF NOT EXISTS kintsugi_runs (
        thread TEXT PRIMARY KEY, goal BLOB NOT NULL, status TEXT NOT NULL, tools TEXT, source BLOB,
        started_at REAL NOT NULL, updated_at REAL NOT NULL)""",
    # numbers are never used again: a checkpoint remembers the last one it has heard
    """CREATE TABLE IF NOT EXISTS kintsugi_inbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL, goal TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS kintsugi_inbox_thread ON kintsugi_inbox (thread, number)",
)

_ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database; name another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore a backup, or move it away and start anew",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that it is a file and that its folder is writable",
    sqlite3.SQLITE_IOERR: "it cannot be read; check that it is a file and that the disk works",
    sqlite3.SQLITE_READONLY: "it cannot be written; check the permissions of the file and of its folder",
    sqlite3.SQLITE_PERM: "access is denied; check the permissions of the file and of its folder",
    sqlite3.SQLITE_BUSY: "another process is writing to it and does not finish; try again when it has ended",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
}


class DatabaseRefused(ValueError):
    """The file cannot be used as it is. It was not changed; the message says what to do."""


@dataclass(frozen=True)
class Database:
    """An open database: two lanes, one per kind of durability."""

    path: Path | None
    """None: in memory."""
    quick: Lane
    """For artifacts and the run index, which must survive the death of the process."""
    durable: Lane
    """For the effect journal, which must survive the loss of power: the world does not roll back."""

    def close(self) -> None:
        """Finish what was handed over and close both connections."""
        self.quick.close()
        self.durable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(path: Path | str = DEFAULT_PATH) -> Database:
    """Open the file, creating it with its folders when there is none.

    Raises:
        DatabaseRefused: the file is damaged, no database, of a newer release, or not accessible.
    """
    path = Path(path).absolute()
    try:
        _make_file(path)
        _inspect(path)
        _prepare(path)
    except OSError as error:
        raise DatabaseRefused(f"cannot use {path} as a database: {error.strerror or error}") from error
    except sqlite3.Error as error:
        _refuse(path, error)
    return Database(path, Lane(path, "NORMAL"), Lane(path, "FULL"))


def memory_database() -> Database:
    """A database that ends with the process. Its lanes share nothing: no table is used by both."""
    database = Database(None, Lane(MEMORY, "NORMAL"), Lane(MEMORY, "FULL"))
    database.quick.call(_create_tables)
    database.durable.call(_create_tables)
    return database


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
    with closing(sqlite3.connect(location, uri=True, timeout=BUSY_SECONDS)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DatabaseRefused(f"{path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]}. SQLite found: {found}")
        _refuse_newer(path, _schema(connection))


def _schema(connection: sqlite3.Connection) -> int:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'kintsugi_meta'").fetchone():
        return SCHEMA
    query = "SELECT CAST(value AS INTEGER) FROM kintsugi_meta WHERE key = 'schema'"
    (schema,) = connection.execute(query).fetchone() or (SCHEMA,)
    return int(schema)


def _refuse_newer(path: Path, schema: int) -> None:
    if schema > SCHEMA:
        raise DatabaseRefused(
            f"{path} was written by a newer Kintsugi (schema {schema}; this one reads up to {SCHEMA}): "
            "upgrade Kintsugi, or name another file"
        )


def _prepare(path: Path) -> None:
    with closing(connect(path, "FULL")) as connection:
        _use_wal(connection)
        _create_tables(connection)


def _create_tables(connection: sqlite3.Connection) -> None:
    # Also when all are there: it proves that the file can be written before a run relies on that.
    with transaction(connection):
        for table in _TABLES:
            connection.execute(table)
        connection.execute("INSERT OR IGNORE INTO kintsugi_meta VALUES ('schema', ?)", (SCHEMA,))


def _use_wal(connection: sqlite3.Connection) -> None:
    for _ in range(_WAL_TRIES):
        if _switched_to_wal(connection):
            return
        # Another process is switching the same new file. SQLite will not wait for that in the switch itself
        # (each would wait for the other's read lock), but it does wait for a write lock.
        with transaction(connection):
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
    # The low byte is the kind of error; the rest says where in SQLite it arose.
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    raise DatabaseRefused(f"{path}: {_ADVICE.get(kind, 'SQLite cannot use it')} ({error})") from error

"""Which tables are ours, and how did they come to be? An ordered list of migrations, for both databases.

A database of an earlier release is brought up to date when it is opened, in one transaction: one that fails leaves
everything as it was, and of several processes that open it at once one does the work. A newer one is refused.
The checkpoint tables beside ours belong to LangGraph's savers, hence the prefix on ours, and a version that lies in
a table: `PRAGMA user_version` may be taken by the caller's application.
"""

from collections.abc import Mapping
from string import Template

from agent.store.connection import Connection, DatabaseRefused, transaction

_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE IF NOT EXISTS kintsugi_artifacts (digest TEXT PRIMARY KEY, body $blob NOT NULL)",
        """CREATE TABLE IF NOT EXISTS kintsugi_effects (
            thread TEXT NOT NULL, tool TEXT NOT NULL, args_digest TEXT NOT NULL, repetition INTEGER NOT NULL,
            step TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, result $blob,
            PRIMARY KEY (thread, tool, args_digest, repetition))""",
        # goal and source are typed by people and by file systems: blobs, because they may not be valid Unicode
        """CREATE TABLE IF NOT EXISTS kintsugi_runs (
            thread TEXT PRIMARY KEY, goal $blob NOT NULL, status TEXT NOT NULL, tools TEXT, source $blob,
            started_at $real NOT NULL, updated_at $real NOT NULL)""",
        # numbers are never used again: a checkpoint remembers the last one it has heard
        "CREATE TABLE IF NOT EXISTS kintsugi_inbox (number $counter, thread TEXT NOT NULL, goal TEXT NOT NULL)",
        "CREATE INDEX IF NOT EXISTS kintsugi_inbox_thread ON kintsugi_inbox (thread, number)",
    ),
    (
        # the order in which effects were intended, in words that Postgres has as well
        "ALTER TABLE kintsugi_effects ADD COLUMN number INTEGER NOT NULL DEFAULT 0",
        "UPDATE kintsugi_effects SET number = $rowid",
        "CREATE INDEX kintsugi_effects_number ON kintsugi_effects (thread, number)",
    ),
    (
        # rows stay when nobody holds the thread: a token is never given twice
        """CREATE TABLE kintsugi_leases (
            thread TEXT PRIMARY KEY, token INTEGER NOT NULL, holder TEXT NOT NULL, expires $real NOT NULL,
            halt TEXT NOT NULL, strays TEXT NOT NULL)""",
    ),
    # seconds since the epoch of the last time a run put the body, as far as garbage collection has to know
    ("ALTER TABLE kintsugi_artifacts ADD COLUMN touched $real NOT NULL DEFAULT 0",),
    # digest of a large result, which lies among the artifacts: most often it is one
    ("ALTER TABLE kintsugi_effects ADD COLUMN stored TEXT",),
    # few are open at any moment; before each write of an inner loop those of its step are asked for
    ("CREATE INDEX kintsugi_effects_open ON kintsugi_effects (thread, step, number) WHERE status = 'open'",),
    (
        # what was said in steps that a model is carrying out; `start` tells which start of the step it belongs to
        """CREATE TABLE kintsugi_turns (
            thread TEXT NOT NULL, step TEXT NOT NULL, start TEXT NOT NULL, body $blob NOT NULL, touched $real NOT NULL,
            PRIMARY KEY (thread, step))""",
    ),
)
"""What each schema adds to the one before. Once released, a migration is never changed: the next one mends it."""

SCHEMA = len(_MIGRATIONS)
"""Version of our tables."""

SQLITE = {"blob": "BLOB", "real": "REAL", "counter": "INTEGER PRIMARY KEY AUTOINCREMENT", "rowid": "rowid"}
"""How SQLite spells what the databases spell differently."""

POSTGRES = {
    "blob": "BYTEA",
    "real": "DOUBLE PRECISION",
    "counter": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "rowid": "0",  # no Postgres held effects before they were numbered
}
"""How Postgres does."""


def read_schema(connection: Connection) -> int:
    """The version of the tables that are there; 0 when there are none. `kintsugi_meta` has to exist."""
    found = connection.execute("SELECT value FROM kintsugi_meta WHERE key = 'schema'").fetchone()
    return int(found[0]) if found else 0


def refuse_newer(schema: int, name: object) -> None:
    """Stop at a schema that this release does not know.

    Raises:
        DatabaseRefused: it is one.
    """
    if schema > SCHEMA:
        raise DatabaseRefused(
            f"{name} was written by a newer Kintsugi (schema {schema}; this one reads up to {SCHEMA}): "
            "upgrade Kintsugi, or name another database"
        )


def migrate(connection: Connection, words: Mapping[str, str], name: object) -> None:
    """Bring the tables up to date, or make them.

    Args:
        connection: to a database that may be empty.
        words: how it spells what databases spell differently.
        name: how people call it.

    Raises:
        DatabaseRefused: the database is of a newer release.
    """
    with transaction(connection, "schema"):
        connection.execute("CREATE TABLE IF NOT EXISTS kintsugi_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL)")
        found = read_schema(connection)
        refuse_newer(found, name)
        for migration in _MIGRATIONS[found:]:
            for statement in migration:
                connection.execute(Template(statement).substitute(words))
        # Also when all is up to date: it proves that the database can be written before a run relies on that.
        connection.execute(
            "INSERT INTO kintsugi_meta VALUES ('schema', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (SCHEMA,),
        )

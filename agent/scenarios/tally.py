"""What a scenario's world remembers between processes: durable counters, one SQLite file in the workspace.

They say how often something was read, asked or done. A killed process loses none of them, so that a fault is
played once, and a test can tell an effect that happened once from one that happened twice.
"""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

_TABLE = "CREATE TABLE IF NOT EXISTS tally (name TEXT PRIMARY KEY, count INTEGER NOT NULL)"
_ADD = """INSERT INTO tally VALUES (?, 1)
    ON CONFLICT (name) DO UPDATE SET count = count + 1 RETURNING count"""


class Tally:
    """Counters by name. Safe to use from several threads and after a kill."""

    def __init__(self, path: Path) -> None:
        """Args: the file; made when it is not there."""
        self._path = path
        self._lock = threading.Lock()
        with closing(self._open()) as connection:
            # the write-ahead log makes a count cheap; it outlives the process, and that is enough
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(_TABLE)

    def add(self, name: str) -> int:
        """Count once more; the new count."""
        with self._lock, closing(self._open()) as connection:
            (count,) = connection.execute(_ADD, (name,)).fetchone()
            return int(count)

    def count(self, name: str) -> int:
        """How often the name was counted."""
        return self.counts(name).get(name, 0)

    def counts(self, prefix: str = "") -> dict[str, int]:
        """Counts of all names that begin so."""
        with self._lock, closing(self._open()) as connection:
            rows = connection.execute("SELECT name, count FROM tally ORDER BY name").fetchall()
        return {name: count for name, count in rows if name.startswith(prefix)}

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

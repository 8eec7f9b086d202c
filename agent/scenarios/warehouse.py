"""The warehouse that the backfill fills: one SQLite file, the loaded orders and their aggregates.

No constraint forbids an order to be loaded twice, as in most real ones: the runtime has to see to it.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

_TABLES = (
    "CREATE TABLE IF NOT EXISTS revenue (week, order_id, day, region, units INTEGER, net INTEGER)",
    "CREATE TABLE IF NOT EXISTS aggregates (region PRIMARY KEY, rows INTEGER, units INTEGER, net INTEGER)",
)
_AGGREGATE = """INSERT INTO aggregates
    SELECT region, count(*), sum(units), sum(net) FROM revenue GROUP BY region ORDER BY region"""


class Loaded(NamedTuple):
    """One row of the warehouse."""

    order: str
    day: str
    region: str
    units: int
    net: int


class Warehouse:
    """The database; a connection is opened for each use, so that any thread may come."""

    def __init__(self, path: Path) -> None:
        """Args: the file; made when it is not there."""
        self._path = path
        with self._transaction() as connection:
            for table in _TABLES:
                connection.execute(table)

    def load(self, week: str, rows: Iterable[Loaded]) -> None:
        """Add the rows of a week, all of them or, if anything stops it, none."""
        with self._transaction() as connection:
            connection.executemany("INSERT INTO revenue VALUES (?, ?, ?, ?, ?, ?)", [(week, *row) for row in rows])

    def week(self, week: str) -> dict[str, JsonValue] | None:
        """What is there of a week: rows and their net revenue; None when nothing is."""
        sums = "SELECT count(*), sum(net) FROM revenue WHERE week = ?"
        ((rows, net),) = self._read(sums, week)
        return {"week": week, "rows": rows, "net": net} if rows else None

    def recompute(self) -> None:
        """Compute the aggregates anew; doing it twice changes nothing."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM aggregates")
            connection.execute(_AGGREGATE)

    def aggregates(self) -> dict[str, JsonValue] | None:
        """The aggregates as they stand; None when they were never computed."""
        found = self._read("SELECT region, rows, units, net FROM aggregates ORDER BY region")
        if not found:
            return None
        return {
            "rows": sum(rows for _, rows, _, _ in found),
            "net": sum(net for _, _, _, net in found),
            "regions": {region: {"rows": rows, "units": units, "net": net} for region, rows, units, net in found},
        }

    def orders(self) -> list[str]:
        """Ids of all loaded orders, as often as each was loaded."""
        return [order for (order,) in self._read("SELECT order_id FROM revenue ORDER BY order_id")]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            # taken at once: weeks are loaded side by side, and a late lock would be refused, not awaited
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def _read(self, query: str, *values: str) -> list[tuple]:  # type: ignore[type-arg]
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            return connection.execute(query, values).fetchall()

"""The books of the closing scenario: journal and rates as files, ledger and stock book as SQLite.

The journal is still being written when it is read first: it lacks its end. The rates can be corrected, once,
when the statement that was made from them has been written.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from pydantic import JsonValue

from agent.scenarios.closing_data import BOOK, CORRECTED_RATES, JOURNAL, RATES, Entry, journal_text
from agent.scenarios.report import as_written, written
from agent.scenarios.scenario import Conditions, tally_in, write_whole

RATES_CORRECTED = "rates-corrected"
STATEMENT, STOCKLIST = "statement.md", "stocklist.md"

_TABLES = (
    "CREATE TABLE IF NOT EXISTS ledger (number, account, currency, amount INTEGER)",
    "CREATE TABLE IF NOT EXISTS balances (account PRIMARY KEY, cents INTEGER)",
    "CREATE TABLE IF NOT EXISTS book (depot, article, pieces INTEGER, PRIMARY KEY (depot, article))",
)


class Books:
    """The files and databases of one workspace. A connection is opened for each use: any thread may come."""

    def __init__(self, workspace: Path, conditions: Conditions) -> None:
        """Find the books of an earlier run, or open new ones."""
        self.folder = workspace
        self.tally = tally_in(workspace)
        self.journal = workspace / "journal.csv"
        self.rates = workspace / "rates.json"
        self._conditions = conditions
        if not self.rates.exists():
            write_whole(self.rates, json.dumps(RATES))
        if not self.journal.exists():
            write_whole(self.journal, self._first_journal())
        with closing(self._open()) as connection, connection:
            for table in _TABLES:
                connection.execute(table)
            rows = [(depot, name, held) for depot, articles in BOOK.items() for name, held in articles.items()]
            connection.executemany("INSERT OR IGNORE INTO book VALUES (?, ?, ?)", rows)

    def read_journal(self) -> JsonValue:
        """The journal's lines, and whether its writers had come to the end; they do while it is read."""
        lines = self.journal.read_text().splitlines()
        finished = "end" in lines
        if not finished:
            write_whole(self.journal, journal_text())
        entries: list[JsonValue] = [list(each.split(",")) for each in lines[1:] if "," in each]
        return {"entries": entries, "finished": finished}

    def load(self, entries: Iterable[Entry]) -> None:
        """Add journal lines to the ledger: all or none, and twice if told twice."""
        with closing(self._open()) as connection, connection:
            connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", list(entries))

    def ledger(self) -> tuple[Entry, ...]:
        """All lines of the ledger."""
        with closing(self._open()) as connection:
            return tuple(Entry(*each) for each in connection.execute("SELECT * FROM ledger ORDER BY rowid"))

    def loaded(self) -> JsonValue:
        """What is in the ledger; None when nothing is."""
        entries = self.ledger()
        accounts: JsonValue = [str(each) for each in sorted({each.account for each in entries})]
        return {"lines": len(entries), "accounts": accounts} if entries else None

    def keep(self, balances: dict[str, int]) -> None:
        """Put the balances in place of those there were."""
        with closing(self._open()) as connection, connection:
            connection.execute("DELETE FROM balances")
            connection.executemany("INSERT INTO balances VALUES (?, ?)", list(balances.items()))

    def balances(self) -> dict[str, int]:
        """The balances as they stand."""
        with closing(self._open()) as connection:
            return dict(connection.execute("SELECT account, cents FROM balances ORDER BY account").fetchall())

    def book(self) -> dict[str, dict[str, int]]:
        """The stock book: pieces by depot and article."""
        found: dict[str, dict[str, int]] = {}
        with closing(self._open()) as connection:
            for depot, article, pieces in connection.execute("SELECT * FROM book ORDER BY depot, article"):
                found.setdefault(depot, {})[article] = pieces
        return found

    def write(self, name: str, text: str) -> JsonValue:
        """Write a file and say what is there; the statement is the moment of the event."""
        found = written(self.folder / name, text)
        self.go_on()
        return found

    def go_on(self) -> None:
        """Let the event happen if its moment has come; also when a kill came between the two."""
        due = self._conditions.event == RATES_CORRECTED and self.seen(STATEMENT) is not None
        if due and not self.tally.count("event"):
            write_whole(self.rates, json.dumps(CORRECTED_RATES))
            # noted after the edit, which may safely be made twice, so that no kill can make it fall out
            self.tally.add("event")

    def seen(self, name: str) -> JsonValue:
        """A file as it stands; None when it is not there."""
        return as_written(self.folder / name)

    def _first_journal(self) -> str:
        return journal_text(JOURNAL[:4], finished=False) if self._conditions.faults else journal_text()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "books.db", timeout=30)

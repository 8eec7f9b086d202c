"""The stock office of the closing scenario, on loopback: it counts shelves, and books what it is told.

It misbehaves twice. One count comes back as an error inside an ordinary answer. One adjustment is booked, and
the connection is lost before the answer: whoever books it again would correct the stock twice.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from pydantic import JsonValue

from agent.scenarios.closing_data import SHELVES
from agent.scenarios.loopback import JsonFront, LoopbackServer, answering
from agent.scenarios.tally import Tally

BUSY = "south"
"""The depot whose first count is turned down, by a body that says so under a status that does not."""
UNANSWERED = "west"
"""The depot whose first adjustment is booked and never confirmed."""


class Office:
    """The service behind its HTTP front. What is booked is kept in one SQLite file."""

    def __init__(self, folder: Path, tally: Tally, faults: bool) -> None:
        """Args: where bookings are kept; counters of this world; whether it misbehaves."""
        self._path = folder / "office.db"
        self._tally = tally
        self._faults = faults
        with closing(self._open()) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS booked (id INTEGER PRIMARY KEY, kind TEXT, body TEXT)")

    def count(self, depot: str) -> JsonValue:
        """What is on the shelves of a depot."""
        asked = self._tally.add(f"GET /counts {depot}")
        if self._faults and depot == BUSY and asked == 1:
            return {"error": "too many requests: the depot is being counted", "status": 429}
        return {"depot": depot, "pieces": dict(SHELVES[depot])}

    def book(self, kind: str, body: JsonValue) -> bool:
        """Book something, as often as it is told to; False: booked, but the answer gets lost."""
        depot = body.get("depot") if isinstance(body, dict) else None
        booked = self._tally.add(f"POST /{kind}" + (f" {depot}" if depot else ""))
        with closing(self._open()) as connection, connection:
            connection.execute("INSERT INTO booked (kind, body) VALUES (?, ?)", (kind, json.dumps(body)))
        return not (self._faults and depot == UNANSWERED and booked == 1)

    def booked(self, kind: str) -> list[JsonValue]:
        """Everything of a kind that was booked, oldest first."""
        with closing(self._open()) as connection:
            found = connection.execute("SELECT body FROM booked WHERE kind = ? ORDER BY id", (kind,)).fetchall()
        return [json.loads(body) for (body,) in found]

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)


@contextmanager
def serving(office: Office) -> Iterator[int]:
    """Serve the office on a free port, which is given, until the context ends."""
    with answering(_Server(office), "stock-office") as port:
        yield port


class _Server(LoopbackServer):
    def __init__(self, office: Office) -> None:
        self.office = office
        super().__init__(_Front)


class _Front(JsonFront):
    server: _Server

    def do_GET(self) -> None:
        """Answer a read."""
        target = urlsplit(self.path)
        if target.path == "/counts":
            return self.answer(self.server.office.count(parse_qs(target.query)["depot"][0]))
        return self.answer(list(self.server.office.booked(target.path.strip("/"))))

    def do_POST(self) -> None:
        """Answer a write; or be cut off with the work done."""
        if self.server.office.book(urlsplit(self.path).path.strip("/"), self.received()):
            return self.answer({"booked": True}, HTTPStatus.CREATED)
        self.close_connection = True
        return None

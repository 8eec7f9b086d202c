"""What the export service answers. It misbehaves in three ways, in an order that no timing can change.

The desk serves weeks in order: a request for a later week waits until the weeks before it have been served.
So however many weeks are asked for at once, the gateway times out on the second week first, then the large
week is refused whole, and the format changes when the fourth week has been served, with two still waiting.
"""

import json
import sqlite3
import threading
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from agent.scenarios.export_data import QUARTER, WEEKS, Order, days_of, orders_of, total
from agent.scenarios.tally import Tally

FLAKY = WEEKS[1]
"""The week whose first request is lost at the gateway."""
ROW_LIMIT = 200
"""Rows in one answer; a week that has more must be asked for by days."""
SERVED_BEFORE_CHANGE = 4
"""Weeks that are served in the old format."""
PATIENCE = 5.0
"""Seconds a request waits for its turn before it is turned away."""

_PLAIN = ("order", "day", "region", "units")
_NET: tuple[dict[str, JsonValue], ...] = ({"revenue_net": 1}, {"revenue_gross": 1, "revenue_tax": -1})
"""Which columns add up to the net revenue, and with which sign: in the old format and in the new one."""


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    body: JsonValue


class ExportDesk:
    """The service behind its HTTP front: what was served, in which format, and the summaries posted to it."""

    def __init__(self, folder: Path, tally: Tally, faults: bool) -> None:
        """Args: where summaries are kept; the counters it lives by; whether it misbehaves."""
        self._path = folder / "service.db"
        self._tally = tally
        self._faults = faults
        self._turn = threading.Condition()
        with closing(self._open()) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS summaries (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    def export(self) -> Reply:
        """What the export holds: the control totals a load is checked against."""
        self._tally.add("GET /export")
        weeks = {week: total(orders_of(week)) for week in WEEKS}
        whole = total(order for week in WEEKS for order in orders_of(week))
        body: JsonValue = {
            "quarter": QUARTER,
            "weeks": {week: {"rows": each.rows, "net": each.net} for week, each in weeks.items()},
            "rows": whole.rows,
            "net": whole.net,
        }
        return Reply(HTTPStatus.OK, body)

    def schema(self) -> Reply:
        """The columns an order has, and how they add up to the net revenue."""
        self._tally.add("GET /schema")
        net = self._net()
        return Reply(HTTPStatus.OK, {"columns": [*_PLAIN, *net], "net": net})

    def rows(self, week: str, day: str | None, columns: list[str]) -> Reply:
        """The orders of a week, or of one of its days, in the columns asked for."""
        asked = self._tally.add(f"GET /rows {week}" + (f" {day}" if day else ""))
        with self._turn:
            refusal = self._disturbed(week, day, columns, asked) if self._faults else None
            if refusal is not None:
                return refusal
            missing = next((each for each in columns if each not in (*_PLAIN, *self._net())), None)
            if missing:
                return Reply(HTTPStatus.BAD_REQUEST, {"error": f"column {missing} not found"})
            orders = [each for each in orders_of(week) if day in (None, each.day)]
            self._tally.add(f"served {week} {day or 'whole'}")
            self._turn.notify_all()
            return Reply(HTTPStatus.OK, [_in_columns(each, columns) for each in orders])

    def post(self, body: JsonValue) -> Reply:
        """Take a summary. The service does not mind getting the same one twice, so its callers must."""
        self._tally.add("POST /summaries")
        with closing(self._open()) as connection, connection:
            added = connection.execute("INSERT INTO summaries (body) VALUES (?)", (json.dumps(body),))
            return Reply(HTTPStatus.CREATED, {"id": added.lastrowid})

    def summaries(self) -> Reply:
        """All summaries that were posted, oldest first."""
        with closing(self._open()) as connection:
            found = connection.execute("SELECT body FROM summaries ORDER BY id").fetchall()
        return Reply(HTTPStatus.OK, [json.loads(body) for (body,) in found])

    def close(self) -> None:
        """Turn away whoever still waits."""
        with self._turn:
            self._faults = False
            self._turn.notify_all()

    def _disturbed(self, week: str, day: str | None, columns: list[str], asked: int) -> Reply | None:
        # the columns are looked at again at every step forward: a format that changed is no reason to wait
        if not self._turn.wait_for(lambda: self._may_answer(week, columns), timeout=PATIENCE):
            return Reply(HTTPStatus.SERVICE_UNAVAILABLE, {"error": f"{week} is not ready yet"})
        if week == FLAKY and asked == 1:
            return Reply(HTTPStatus.GATEWAY_TIMEOUT, {"error": "gateway timeout"})
        rows = len(orders_of(week))
        if day is None and rows > ROW_LIMIT:
            message = f"payload too large: {week} has {rows} rows, one answer holds {ROW_LIMIT}"
            return Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": message})
        return None

    def _may_answer(self, week: str, columns: list[str]) -> bool:
        earlier = WEEKS[: WEEKS.index(week)] if week in WEEKS else ()
        known = set(columns) <= {*_PLAIN, *self._net()}
        return not known or not self._faults or set(earlier) <= self._served()

    def _net(self) -> dict[str, JsonValue]:
        changed = self._faults and len(self._served()) >= SERVED_BEFORE_CHANGE
        return _NET[changed]

    def _served(self) -> set[str]:
        """Weeks that were served whole, or day by day. Counted by week: asking again changes nothing."""
        served = self._tally.counts("served ")
        return {
            week
            for week in WEEKS
            if f"served {week} whole" in served or all(f"served {week} {day}" in served for day in days_of(week))
        }

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)


def _in_columns(order: Order, columns: list[str]) -> JsonValue:
    values: dict[str, JsonValue] = {
        "order": order.order,
        "day": order.day,
        "region": order.region,
        "units": order.units,
        "revenue_net": order.net,
        "revenue_gross": order.gross,
        "revenue_tax": order.tax,
    }
    return {each: values[each] for each in columns}

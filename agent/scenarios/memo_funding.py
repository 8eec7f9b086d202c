"""The funding source of the memo scenario, on loopback: who a company is, and what was put into it.

It goes down after the first question. Whether it comes back depends on the conditions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from pydantic import JsonValue

from agent.scenarios.loopback import JsonFront, LoopbackServer, answering
from agent.scenarios.tally import Tally

COMPANY: dict[str, JsonValue] = {"id": "c-2107", "name": "Acme Robotics", "seat": "Ghent", "founded": 2021}
ROUNDS: list[dict[str, Any]] = [
    {"round": "seed", "closed": "2021-11", "raised": 2_400_000},
    {"round": "first", "closed": "2023-05", "raised": 9_500_000},
    {"round": "second", "closed": "2025-02", "raised": 18_000_000},
    {"round": "second, extended", "closed": "2026-04", "raised": 6_000_000},
]
"""In EUR."""


class FundingSource(NamedTuple):
    """The records behind the HTTP front, and how many questions about rounds it turns down before it answers."""

    tally: Tally
    down_for: float
    """A count; infinite: it does not come back."""

    def companies(self, name: str) -> JsonValue:
        """All companies of a name."""
        self.tally.add("GET /companies")
        return [COMPANY] if name == COMPANY["name"] else []

    def rounds(self, company: str) -> tuple[JsonValue, HTTPStatus]:
        """The rounds of a company, oldest first; or that the source is down."""
        if self.tally.add("GET /rounds") <= self.down_for:
            return {"error": "the records are being moved to another host"}, HTTPStatus.SERVICE_UNAVAILABLE
        if company != COMPANY["id"]:
            return {"error": f"there is no company {company}"}, HTTPStatus.NOT_FOUND
        return list(ROUNDS), HTTPStatus.OK


@contextmanager
def serving(source: FundingSource) -> Iterator[int]:
    """Serve the source on a free port, which is given, until the context ends."""
    with answering(_Server(source), "funding-source") as port:
        yield port


class _Server(LoopbackServer):
    def __init__(self, source: FundingSource) -> None:
        self.source = source
        super().__init__(_Front)


class _Front(JsonFront):
    server: _Server

    def do_GET(self) -> None:
        """Answer a read."""
        target = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(target.query).items()}
        match target.path:
            case "/companies":
                self.answer(self.server.source.companies(asked["name"]))
            case "/rounds":
                self.answer(*self.server.source.rounds(asked["company"]))
            case path:
                self.answer({"error": f"there is nothing at {path}"}, HTTPStatus.NOT_FOUND)

"""The export service on loopback: HTTP in front of the desk."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from agent.scenarios.export_desk import ExportDesk, Reply
from agent.scenarios.loopback import JsonFront, LoopbackServer, answering


@contextmanager
def serving(desk: ExportDesk) -> Iterator[int]:
    """Serve the desk on a free port, which is given, until the context ends."""
    with answering(_Server(desk), "export-service") as port:
        try:
            yield port
        finally:
            desk.close()


class _Server(LoopbackServer):
    def __init__(self, desk: ExportDesk) -> None:
        self.desk = desk
        super().__init__(_Front)


class _Front(JsonFront):
    server: _Server

    def do_GET(self) -> None:
        """Answer a read."""
        target = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        self._send(_read(self.server.desk, target.path, query))

    def do_POST(self) -> None:
        """Answer a write."""
        known = urlsplit(self.path).path == "/summaries"
        self._send(self.server.desk.post(self.received()) if known else _nothing_here(self.path))

    def _send(self, reply: Reply) -> None:
        self.answer(reply.body, reply.status)


def _read(desk: ExportDesk, path: str, query: dict[str, str]) -> Reply:
    match path:
        case "/export":
            return desk.export()
        case "/schema":
            return desk.schema()
        case "/rows":
            return desk.rows(query["week"], query.get("day"), query["columns"].split(","))
        case "/summaries":
            return desk.summaries()
    return _nothing_here(path)


def _nothing_here(path: str) -> Reply:
    return Reply(HTTPStatus.NOT_FOUND, {"error": f"there is nothing at {path}"})

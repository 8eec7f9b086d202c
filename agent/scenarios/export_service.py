"""The export service on loopback: HTTP in front of the desk, and the client that the tools call it with."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import JsonValue

from agent.scenarios.export_desk import ExportDesk, Reply
from agent.scenarios.loopback import HOST, LoopbackServer, answering

TIMEOUT = 30.0
"""Seconds a client waits for an answer; longer than the desk lets anybody wait."""


class ExportError(RuntimeError):
    """The service said no. Carries the status, and the reason in the service's own words."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {HTTPStatus(status).phrase}: {reason}")
        self.status = status


class ExportClient:
    """Calls the service. Plain HTTP without a proxy: the service is on this machine."""

    def __init__(self, port: int) -> None:
        """Args: where the service listens."""
        self._port = port

    def get(self, path: str, **query: str) -> JsonValue:
        """Read something.

        Raises:
            ExportError: when the service answers with an error.
            OSError: when it does not answer.
        """
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, body: JsonValue) -> JsonValue:
        """Hand something in; raises as `get` does."""
        return self._ask("POST", path, json.dumps(body))

    def _ask(self, method: str, target: str, body: str | None = None) -> JsonValue:
        connection = HTTPConnection(HOST, self._port, timeout=TIMEOUT)
        try:
            connection.request(method, target, body)
            response = connection.getresponse()
            answer: JsonValue = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise ExportError(response.status, str(answer["error"] if isinstance(answer, dict) else answer))
        return answer


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


class _Front(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Answer a read."""
        target = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        self._send(_read(self.server.desk, target.path, query))

    def do_POST(self) -> None:
        """Answer a write."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        known = urlsplit(self.path).path == "/summaries"
        self._send(self.server.desk.post(json.loads(body)) if known else _nothing_here(self.path))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the run."""

    def _send(self, reply: Reply) -> None:
        body = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


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

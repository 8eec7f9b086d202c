"""How a scenario's service is served and called: real HTTP on a free loopback port, while a context lasts."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

from pydantic import JsonValue

HOST = "127.0.0.1"
TIMEOUT = 30.0
"""Seconds a client waits for the answer of a service; longer than any of them lets anybody wait."""


class JsonFront(BaseHTTPRequestHandler):
    """What every service of a scenario has in common: bodies are JSON, and it keeps silent."""

    def received(self) -> JsonValue:
        """The body of the request."""
        body: JsonValue = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        return body

    def answer(self, body: JsonValue, status: int = HTTPStatus.OK) -> None:
        """Answer the request."""
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the run."""


class LoopbackServer(ThreadingHTTPServer):
    """A server on any free port of this machine, a thread for each request."""

    def __init__(self, front: type[BaseHTTPRequestHandler]) -> None:
        """Args: what answers a request."""
        super().__init__((HOST, 0), front)

    def server_bind(self) -> None:
        """Bind without asking for the machine's name: a resolver may take seconds, and nobody needs it."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]


@contextmanager
def answering(server: LoopbackServer, name: str) -> Iterator[int]:
    """Answer requests in a thread of that name, on the port that is given, until the context ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name=name, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class ServiceError(RuntimeError):
    """The service said no. Carries the status, and the reason in the service's own words."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {HTTPStatus(status).phrase}: {reason}")
        self.status = status


class ServiceClient:
    """Calls the service. Plain HTTP without a proxy: the service is on this machine."""

    def __init__(self, port: int) -> None:
        """Args: where the service listens."""
        self._port = port

    def get(self, path: str, **query: str) -> JsonValue:
        """Read something.

        Raises:
            ServiceError: when the service answers with an error.
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
            raise ServiceError(response.status, str(answer["error"] if isinstance(answer, dict) else answer))
        return answer

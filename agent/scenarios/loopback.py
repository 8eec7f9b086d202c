"""How a scenario's service is served: a real HTTP server on a free loopback port, while a context lasts."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"


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

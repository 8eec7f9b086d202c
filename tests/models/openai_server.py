"""A server on loopback that speaks OpenAI's protocol as a test tells it to."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
Answering = Callable[[Body], tuple[int, Body]]
"""Request -> status and reply."""


class Server:
    """Where the server is, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Body] = []


@contextmanager
def openai_server(answering: Answering) -> Iterator[Server]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(body)
            status, reply = answering(body)
            spelled = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(spelled)))
            self.end_headers()
            self.wfile.write(spelled)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http.server_port}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def completion(message: Body, finish: str = "stop", usage: bool = True) -> tuple[int, Body]:
    """A reply with one choice."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": None, **message}}
    counted = {"usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}} if usage else {}
    return 200, {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **counted}


def tool_call(name: str, arguments: Any, call_id: str | None = "c1") -> Body:
    """A message that is one tool call; arguments go out as they are."""
    return {"tool_calls": [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]}


def refused(status: int, message: str) -> tuple[int, Body]:
    """An error reply."""
    return status, {"error": {"message": message, "type": "invalid_request_error"}}

"""A server on loopback that speaks OpenAI's protocol as a test tells it to."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Body = dict[str, Any]
Answering = Callable[[Body], tuple[int, Any]]
"""Request -> status and reply: a body, or a `Raw` one."""


class Raw(NamedTuple):
    """What is sent as it stands, whatever it is."""

    text: str
    sort: str = "text/html"
    missing: int = 0
    """Bytes that are promised and not sent, before the connection is closed."""


class Server:
    """Where the server is, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Body] = []
        self.keys: list[str] = []


@contextmanager
def openai_server(answering: Answering, protocol: str = "HTTP/1.0") -> Iterator[Server]:
    """Serve until the block ends; by HTTP/1.1 connections are kept, unless the client says otherwise."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = protocol

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(body)
            server.keys.append(self.headers["Authorization"].removeprefix("Bearer "))
            status, reply = answering(body)
            raw = reply if isinstance(reply, Raw) else Raw(json.dumps(reply), "application/json")
            spelled = raw.text.encode()
            self.send_response(status)
            self.send_header("Content-Type", raw.sort)
            self.send_header("Content-Length", str(len(spelled) + raw.missing))
            self.end_headers()
            self.wfile.write(spelled)
            self.close_connection |= bool(raw.missing)

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


def streamed(message: Body, finish: str | None = "stop", usage: bool = True) -> tuple[int, Raw]:
    """The same reply piece by piece; without `finish` it breaks off."""
    text, calls = message.get("content"), message.get("tool_calls") or ()
    pieces: list[Body] = [{"content": text[at : at + 5]} for at in range(0, len(text or ""), 5)] if text else []
    for index, call in enumerate(calls):
        said = call["function"]["arguments"]
        pieces.append({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        for at in range(0, len(said), 5):
            pieces.append({"tool_calls": [{"index": index, "function": {"arguments": said[at : at + 5]}}]})
    chunks = [_chunk({"role": "assistant", **each}, None) for each in pieces or [{"content": ""}]]
    chunks += [_chunk({}, finish)] if finish else []
    if usage and finish:
        counted = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
        chunks.append({**_chunk({}, None), "choices": [], "usage": counted})
    lines = [f"data: {json.dumps(each)}\n\n" for each in chunks] + (["data: [DONE]\n\n"] if finish else [])
    return 200, Raw("".join(lines), "text/event-stream")


def _chunk(delta: Body, finish: str | None) -> Body:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

"""A stand-in for LangSmith's ingest API on loopback: it keeps what is sent, put together run by run."""

import json
import threading
from collections.abc import Callable, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote_plus
from uuid import uuid4

import zstandard

Run = dict[str, Any]

NOW = "2026-01-01T00:00:00Z"

INFO = {
    "version": "0.12.0",
    "instance_flags": {"zstd_compression_enabled": True, "dataset_examples_multipart_enabled": True},
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "scale_up_qsize_trigger": 1000,
        "scale_up_nthreads_limit": 16,
        "scale_down_nempty_trigger": 4,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
    },
}
"""What a server says of itself: spans come as multipart forms, packed."""


class Standin:
    """The server, and what has arrived at it."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.feedback: list[dict[str, Any]] = []
        self.projects: dict[str, str] = {}
        self.datasets: dict[str, str] = {}
        self.examples: list[dict[str, Any]] = []
        self.bytes = 0
        """Of all bodies, as JSON."""
        self.bodies: list[bytes] = []
        self.answers = threading.Event()
        """Cleared, it takes what is sent and answers nothing."""
        self.answers.set()
        self.status = 200
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for(self, enough: Callable[[], bool]) -> None:
        """Until enough has arrived; spans are sent in the background."""
        with self._changed:
            assert self._changed.wait_for(enough, timeout=60), (
                len(self.runs),
                self.feedback,
            )

    def complete(self, roots: int) -> bool:
        """Whether so many runs have ended, with all that lies below them."""
        ended = all(each.get("end_time") for each in self.runs.values())
        return ended and len(self.roots()) >= roots

    def roots(self) -> list[Run]:
        return [each for each in self.runs.values() if not each.get("parent_run_id")]

    def named(self, start: str) -> list[Run]:
        return [each for each in self.runs.values() if each["name"].startswith(start)]

    def below(self, run: Run) -> list[Run]:
        return [each for each in self.runs.values() if each.get("parent_run_id") == run["id"]]

    def sent(self) -> str:
        """All that was sent, as text."""
        return b"\n".join(self.bodies).decode("utf-8", "replace")

    def take(self, path: str, body: bytes, kind: str) -> object:
        with self._changed:
            self.bodies.append(body)
            self.bytes += len(body)
            answer = self._taken(path.partition("?")[0], body, kind)
            self._changed.notify_all()
        return answer

    def _taken(self, path: str, body: bytes, kind: str) -> object:
        what, _, which = path.strip("/").partition("/")
        if which == "multipart":
            for name, part in _parts(body, kind):
                self._part(name.split("."), part)
        elif which == "batch":
            for run in [*json.loads(body).get("post", []), *json.loads(body).get("patch", [])]:
                self._run(run)
        elif what == "runs":
            self._run({**json.loads(body), **({"id": which} if which else {})})
        elif what == "feedback":
            self.feedback.append(json.loads(body))
        else:
            return self._evaluated(path, body, kind)
        return {}

    def _evaluated(self, path: str, body: bytes, kind: str) -> object:
        match path.strip("/").split("/"):
            case ["sessions"]:
                return self._project(json.loads(body)["name"])
            case ["sessions", id_]:
                return next(self._project(name) for name, each in self.projects.items() if each == id_)
            case ["datasets"]:
                return self._dataset(json.loads(body)["name"])
            case [*_, dataset, "examples"]:
                return self._examples(dataset, body, kind)
        return {}

    def found(self, path: str) -> list[dict[str, Any]]:
        """What is asked for by name."""
        if path.startswith("/examples"):
            return self.examples if "offset=0" in path or "offset" not in path else []
        if path.startswith("/datasets"):
            return [self._dataset(name) for name in self.datasets if f"name={name}" in path]
        return [self._project(name) for name, id_ in self.projects.items() if name in path or id_ in path]

    def _project(self, name: str) -> dict[str, Any]:
        id_ = self.projects.setdefault(name, str(uuid4()))
        dataset = next(iter(self.datasets.values()), None)
        return {"id": id_, "name": name, "tenant_id": id_, "start_time": NOW, "reference_dataset_id": dataset}

    def _dataset(self, name: str) -> dict[str, Any]:
        return {"id": self.datasets.setdefault(name, str(uuid4())), "name": name, "created_at": NOW}

    def _examples(self, dataset: str, body: bytes, kind: str) -> dict[str, Any]:
        parts = dict(_parts(body, kind))
        new = [
            {"id": each, "dataset_id": dataset, "created_at": NOW, "inputs": parts.get(f"{each}.inputs", {})}
            for each in parts
            if "." not in each
        ]
        self.examples += new
        return {"count": len(new), "example_ids": [each["id"] for each in new], "as_of": NOW}

    def _part(self, name: list[str], part: Any) -> None:
        if name[0] == "feedback":
            self.feedback.append(part)
        else:
            self._run({"id": name[1], name[2]: part} if len(name) > 2 else {**part, "id": name[1]})

    def _run(self, given: Run) -> None:
        run = self.runs.setdefault(given["id"], {})
        run.update({name: each for name, each in given.items() if each is not None or name not in run})
        if name := given.get("session_name"):
            self.projects.setdefault(name, str(uuid4()))


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that has lost its patience is none of the test's business."""


def _parts(body: bytes, kind: str) -> Iterator[tuple[str, Any]]:
    form = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
    for part in form.iter_parts():
        content: Any = part.get_payload(decode=True)
        yield str(part.get_param("name", header="content-disposition")), json.loads(content)


def _handler(standin: Standin) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"standin": standin})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    standin: Standin

    def do_GET(self) -> None:
        if self.path.startswith("/info"):
            self._answer(INFO)
            return
        self._answer(self.standin.found(unquote_plus(self.path)))

    def do_POST(self) -> None:
        self._answer(self.standin.take(self.path, self._body(), self.headers.get("Content-Type", "")))

    do_PATCH = do_POST

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        packed = self.headers.get("Content-Encoding") == "zstd"
        return zstandard.ZstdDecompressor().decompressobj().decompress(body) if packed else body

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().strip(), 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _answer(self, value: object) -> None:
        assert self.standin.answers.wait(timeout=60)
        body = json.dumps(value).encode()
        self.send_response(self.standin.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...

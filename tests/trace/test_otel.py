"""The same spans through OpenTelemetry, by LangSmith's own switch: one tree, small, and without secrets."""

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

ROOT = Path(__file__).parents[2]
KEY = "lsv2_pt_0123456789abcdef"

RUN = """
from agent import Goal, build_graph
from tests.builders import Calls, calm, once, run

tools = [
    Calls().tool("big", "", once(ConnectionError("reset: password=hunter2hunter2"), "x" * 2_000_000)),
    Calls().tool("use", "big", lambda big: {"size": len(big), "note": "Bearer abcdefghijklmnop"}),
]
end = run(build_graph(tools, settings=calm()), Goal(wants=("use",)))
assert end["outcome"].status == "satisfied"
"""


class Collector:
    """A collector of OpenTelemetry's own protocol on loopback, and all spans that have come."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.bytes = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self, body: bytes) -> None:
        self.bytes += len(body)
        asked = ExportTraceServiceRequest.FromString(body)
        self.spans += [each for of in asked.resource_spans for scope in of.scope_spans for each in scope.spans]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/v1/traces"):
                collector.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


def test_a_run_is_one_tree_of_open_telemetry_spans_small_and_without_secrets(collector: Collector) -> None:
    switched = {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_OTEL_ENABLED": "true",
        "LANGSMITH_OTEL_ONLY": "true",
        "LANGSMITH_API_KEY": KEY,
        "LANGSMITH_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "PYTHONPATH": str(ROOT),
    }
    # a process of its own: who traces with OpenTelemetry is settled once for a whole process
    ended = subprocess.run([sys.executable, "-c", RUN], env={**os.environ, **switched}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    spans = {each.span_id: each for each in collector.spans}
    (root,) = [each for each in spans.values() if each.parent_span_id not in spans]
    assert (root.name, root.parent_span_id) == ("kintsugi: use", b"")
    assert {each.trace_id for each in spans.values()} == {root.trace_id}
    attempts = [each for each in spans.values() if "(attempt" in each.name]
    assert sorted(each.name for each in attempts) == [
        "executor: Make it (attempt 1)",
        "executor: Make it (attempt 1)",
        "executor: Make it (attempt 2)",
    ]
    for each in attempts:
        assert each.parent_span_id == root.span_id
        assert [below.name for below in spans.values() if below.parent_span_id == each.span_id]
    assert sum(each.status.code == Status.STATUS_CODE_ERROR for each in attempts) == 1
    assert collector.bytes < 200_000
    sent = "".join(str(each) for each in spans.values())
    for secret in ("hunter2", "abcdefghijkl", KEY):
        assert secret not in sent, secret

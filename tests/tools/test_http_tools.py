"""The tool that fetches: bounds, redirects, and the address that is really connected to."""

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent.core.failure import Scope
from agent.plain import as_json
from agent.tools.builtin import http_tools
from tests.tools.calling import Hands

C, P, N = Scope.CALL, Scope.PRECONDITION, Scope.NOTHING


class Desk(BaseHTTPRequestHandler):
    """Answers by path; `hits` keeps what was asked for, and for which host."""

    hits: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        type(self).hits.append((self.path, self.headers["Host"]))
        getattr(self, f"_{self.path.strip('/').split('?')[0]}")()

    def _answer(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _text(self) -> None:
        self._answer(body="grüße".encode("latin-1"), Content_Type="text/plain; charset=latin-1")

    def _image(self) -> None:
        self._answer(body=b"\x89PNG", Content_Type="image/png")

    def _gone(self) -> None:
        self._answer(404, b"no such page")

    def _busy(self) -> None:
        self._answer(503, b"later", Retry_After="7")

    def _big(self) -> None:
        self._answer(body=b"x" * 20_000)

    def _bomb(self) -> None:
        self._answer(body=b"\x1f\x8b", Content_Encoding="gzip")

    def _slow(self) -> None:
        self._answer()
        while True:  # a byte now and then, for ever, until the other side hangs up
            try:
                self.wfile.write(b"x")
            except OSError:
                return
            type(self).over.wait(0.05)

    def _there(self) -> None:
        self._answer(302, Location="/text")

    def _round(self) -> None:
        self._answer(302, Location="/round")

    def _inward(self) -> None:
        self._answer(302, Location=f"http://127.0.0.2:{self.server.server_port}/text")  # type: ignore[attr-defined]

    def _file(self) -> None:
        self._answer(302, Location="file:///etc/passwd")

    over: threading.Event

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def desk() -> Iterator[type[Desk]]:
    desk: Any = type("DeskHere", (Desk,), {"hits": [], "over": threading.Event()})
    server = ThreadingHTTPServer(("0.0.0.0", 0), desk)  # all of loopback, so that 127.0.0.2 answers too
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    desk.url = f"http://127.0.0.1:{server.server_port}"
    desk.port = server.server_port
    yield desk
    desk.over.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def hands(desk: Any) -> Hands:
    return Hands(http_tools(allow=[f"127.0.0.1:{desk.port}"], seconds=2, size=10_000))


def test_text_is_told_as_text_and_the_rest_as_bytes(hands: Hands, desk: Any) -> None:
    assert hands.call("http_get", url=f"{desk.url}/text")["text"] == "grüße"
    assert hands.call("http_get", url=f"{desk.url}/image")["content"] == as_json(b"\x89PNG")
    assert desk.hits[0] == ("/text", f"127.0.0.1:{desk.port}")


def test_a_redirect_is_followed_and_told(hands: Hands, desk: Any) -> None:
    assert hands.call("http_get", url=f"{desk.url}/there")["url"] == f"{desk.url}/text"


@pytest.mark.parametrize(
    ("path", "scope", "said"),
    [
        pytest.param("gone", P, "404", id="404"),
        pytest.param("busy", N, "503", id="503"),
        pytest.param("big", C, "too large", id="too large"),
        pytest.param("bomb", C, "compressed", id="compressed"),
        pytest.param("round", C, "redirects", id="redirects without end"),
        pytest.param("inward", P, "no public address", id="redirected inward"),
        pytest.param("file", C, "must be http or https", id="redirected to a file"),
    ],
)
def test_what_is_refused_says_why(hands: Hands, desk: Any, path: str, scope: Scope, said: str) -> None:
    error = hands.refused("http_get", url=f"{desk.url}/{path}")
    assert (said in error.message, hands.scope_of("http_get", error)) == (True, scope)
    assert error.retry_after == (7.0 if path == "busy" else None)


def test_an_answer_that_drips_is_cut_off(desk: Any) -> None:
    hands = Hands(http_tools(allow=["127.0.0.0/8"], seconds=0.3))
    assert hands.refused("http_get", url=f"{desk.url}/slow").kind == "timeout"


def test_a_refused_connection_is_tried_again(desk: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        hands = Hands(http_tools(allow=["127.0.0.0/8"]))
        assert hands.scope("http_get", url=f"http://127.0.0.1:{free.getsockname()[1]}/") is N


Resolver = Callable[..., list[Any]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Names of our own: for each, the addresses that the first, second, ... look-up gives."""
    named: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **more: Any) -> list[Any]:
        if host not in named:
            return list(real(host, port, *args, **more))
        return [each for address in named[host].pop(0) for each in real(address, port, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return named


def test_a_name_is_resolved_once_and_connected_to_what_was_checked(
    desk: Any, names: dict[str, list[list[str]]]
) -> None:
    """A name whose second look-up leads elsewhere (DNS rebinding) is never looked up a second time."""
    names["rebinding.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    hands = Hands(http_tools(allow=["127.0.0.1"]))
    found = hands.call("http_get", url=f"http://rebinding.test:{desk.port}/text")
    assert found["url"] == f"http://rebinding.test:{desk.port}/text"
    assert desk.hits == [("/text", f"rebinding.test:{desk.port}")]
    assert names["rebinding.test"] == [["127.0.0.2"]]


def test_a_name_with_one_private_address_is_refused(desk: Any, names: dict[str, list[list[str]]]) -> None:
    names["mixed.test"] = [["127.0.0.1", "127.0.0.2"]]
    hands = Hands(http_tools(allow=["127.0.0.1"]))
    assert hands.scope("http_get", url=f"http://mixed.test:{desk.port}/text") is P
    assert desk.hits == []


def test_environment_proxies_are_not_used(desk: Any, monkeypatch: pytest.MonkeyPatch, hands: Hands) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert hands.call("http_get", url=f"{desk.url}/text")["status"] == 200


@pytest.mark.parametrize("named", ["localhost", "127.0.0.1:99999999", "300.1.1.1", "10.0.0.0/99", ""])
def test_what_is_no_address_cannot_be_allowed(named: str) -> None:
    with pytest.raises(ValueError, match="no address to allow"):
        http_tools(allow=[named])

"""How does `kintsugi watch` show a run that goes on? The page of the report, served on this machine to its owner."""

import hashlib
import hmac
import secrets
import signal
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from agent.cli.exits import BadInput
from agent.cli.home import Home, open_home
from agent.cli.page import material
from agent.cli.screen import console
from agent.settings import Settings
from agent.trace.html.page import page, policy
from agent.trace.html.report import report_of

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""What the page may be asked for under; another name points here only by a trick (DNS rebinding)."""


def watch(settings: Settings, thread: str, port: int) -> None:
    """Serve the page of a thread until Ctrl-C.

    Raises:
        BadInput: there is no such thread, or the port is taken.
    """
    with open_home(settings, make=False) as home:
        home.run(thread)
        with listening(Pages(home, thread), port) as server:
            console().print(f"Watching {thread}: {server.url}", markup=False)
            console().print("The address is a key: whoever has it sees the run. Ctrl-C ends it.", style="dim")
            for each in (signal.SIGINT, signal.SIGTERM):  # both by name: a shell's background jobs ignore the first
                signal.signal(each, _as_interrupt)
            try:
                server.serve_forever(poll_interval=0.1)
            except KeyboardInterrupt:
                console().print("No longer watching; the run itself is not touched.")


class Pages:
    """The page as it is now, made again only when something was written."""

    def __init__(self, home: Home, thread: str) -> None:
        self._home = home
        self._thread = thread
        self._lock = Lock()
        self._made: tuple[tuple[object, ...], bytes, str] | None = None

    def now(self) -> tuple[bytes, str]:
        """The page, and a tag that changes with it."""
        with self._lock:
            written = self._home.written(self._thread)  # before the page: what is written meanwhile is asked for again
            if self._made is None or self._made[0] != written:
                text = page(report_of(material(self._home, self._thread)), live=True).encode()
                self._made = (written, text, f'"{hashlib.sha256(text).hexdigest()[:32]}"')
            return self._made[1:]


class Server(ThreadingHTTPServer):
    """Serves the pages on this machine alone, under an address that nobody can guess."""

    daemon_threads = True

    def __init__(self, port: int, pages: Pages) -> None:
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), partial(_Handler, pages, self.token))

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "kintsugi", ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(self, pages: Pages, token: str, *given: object) -> None:
        self._pages = pages
        self._token = token
        super().__init__(*given)  # type: ignore[arg-type] # as the server hands them over

    def do_GET(self) -> None:
        """Answer with the page, to whoever knows the token and asked for this machine."""
        if not self._is_ours() or not self._knows_token():
            self._answer(HTTPStatus.FORBIDDEN, b"Forbidden: use the whole address that `kintsugi watch` printed.\n")
            return
        if self.path != f"/{self._token}/":
            self._answer(HTTPStatus.NOT_FOUND, b"There is nothing here.\n")
            return
        try:
            text, tag = self._pages.now()
        except BadInput as gone:  # its thread was deleted while it was watched
            self._answer(HTTPStatus.GONE, f"{gone}\n".encode("utf-8", "replace"))
            return
        if self.headers.get("If-None-Match") == tag:
            self._answer(HTTPStatus.NOT_MODIFIED, b"", tag)
        else:
            self._answer(HTTPStatus.OK, text, tag, "text/html")

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing: the address in a log would be a key lying about."""

    def _is_ours(self) -> bool:
        host = self.headers.get("Host", "")
        return host in {f"{name}:{self.server.server_port}" for name in NAMES}  # type: ignore[attr-defined] # a TCP server

    def _knows_token(self) -> bool:
        given = self.path.split("/")[1] if self.path.count("/") else ""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _answer(self, status: HTTPStatus, body: bytes, tag: str = "", kind: str = "text/plain") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            **({"ETag": tag} if tag else {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def listening(pages: Pages, port: int) -> Server:
    """A server of the pages, bound and not yet serving; port 0 is a free one.

    Raises:
        BadInput: the port is taken.
    """
    try:
        return Server(port, pages)
    except (OSError, OverflowError) as error:
        raise BadInput(f"--port: {port} cannot be used ({error}); leave it out, and a free one is taken") from error


def _as_interrupt(*_: object) -> None:
    raise KeyboardInterrupt

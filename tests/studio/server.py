"""One development server for all tests, whichever process they run in; killed when the last of them has ended."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
POLLS, PAUSE = 1200, 0.25
"""A first start on a busy machine reads many modules."""

_STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""Servers of this process. One that is killed by another process, as its last user, ends here with it."""


class Server(NamedTuple):
    """Where it listens, where it works, and what it is."""

    url: str
    folder: Path
    pid: int

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "server.log").read_text()

    def effects(self, effect: str, purse: str) -> int:
        """How often a write was carried out in the world."""
        book = self.folder / "effects.txt"
        return book.read_text().split("\n").count(f"{effect} {purse}") if book.exists() else 0


def started(folder: Path, home: Path | None = None) -> Server:
    """Start a server in a folder and wait until it answers; its home is in there as well, or where another's is."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((ROOT / "langgraph.json").read_text())
    for each in config["graphs"].values():
        each["path"] = str(ROOT / each["path"])
    config["graphs"]["talking"] = str(ROOT / "tests/studio/talking.py:graph")
    (folder / "langgraph.json").write_text(json.dumps({**config, "env": {}}))
    port = _free_port()
    with (folder / "server.log").open("a") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.studio.serve", str(port)],
            cwd=folder,
            env=environment(home or folder / "home"),
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    _STARTED[process.pid] = process
    server = Server(f"http://127.0.0.1:{port}", folder, process.pid)
    for _ in range(POLLS):
        with suppress(URLError, OSError), urlopen(f"{server.url}/ok", timeout=2) as answer:
            assert answer.status == 200
            return server
        assert process.poll() is None, server.log[-3000:]
        time.sleep(PAUSE)
    kill(server)
    raise AssertionError(f"the server did not come up: {server.log[-3000:]}")


def kill(server: Server) -> None:
    """End it at once, as a crash does."""
    if (process := _STARTED.pop(server.pid, None)) is not None:
        process.kill()
        process.wait()
        return
    with suppress(ProcessLookupError):  # another process started it
        os.kill(server.pid, signal.SIGKILL)


@contextmanager
def shared(folder: Path) -> Iterator[Server]:
    """The one server of a test run: started by who comes first, killed by who goes last."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "server.json"
    with (folder / "users").open("w") as users:
        with _alone(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            if not note.exists():
                note.write_text(json.dumps([str(each) for each in started(folder / "work")]))
        url, work, pid = json.loads(note.read_text())
        server = Server(url, Path(work), int(pid))
        try:
            yield server
        finally:
            with _alone(folder):
                if _is_last(users):
                    note.unlink()
                    kill(server)


def environment(home: Path) -> dict[str, str]:
    """What the server is told: tools, a home, and no way out of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KINTSUGI_", "LANGSMITH_"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "KINTSUGI_HOME": str(home),
        "KINTSUGI_TOOLS": "tests.studio.tools:TOOLS",
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_STRICT_MSGPACK": "true",
    }


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_last(users: IO[str]) -> bool:
    """Let go, and see whether anybody else holds on."""
    fcntl.flock(users, fcntl.LOCK_UN)
    with suppress(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

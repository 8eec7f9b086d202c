"""`kintsugi watch`: the page of a run that goes on, for this machine and for whoever knows its address."""

import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent.cli import serving
from agent.cli.environment import load_settings
from agent.cli.home import open_home
from agent.cli.serving import Pages, listening
from agent.trace.html.model import Material, Report
from agent.trace.html.report import report_of
from tests.cli.conftest import Cli
from tests.forks import Fork

Ask = Callable[..., Any]


@pytest.fixture
def served(cli: Cli, folder: Path) -> Iterator[tuple[str, str]]:
    """A finished thread that is watched: the host with its port, and the path with the token."""
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    with open_home(load_settings(), make=False) as home, listening(Pages(home, "t"), 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = urlsplit(server.url)
        yield address.netloc, address.path
        server.shutdown()
        thread.join()


@pytest.fixture
def ask(served: tuple[str, str]) -> Ask:
    """Ask the server for something."""
    return partial(_asked, *served)


def _asked(host: str, own: str, path: str | None = None, method: str = "GET", **headers: str) -> Any:
    with closing(HTTPConnection(host, timeout=30)) as connection:
        named = {name.replace("_", "-"): each for name, each in headers.items()}
        connection.request(method, own if path is None else path, headers=named)
        answer: Any = connection.getresponse()
        answer.text = answer.read().decode()
        return answer


def test_the_page_is_served_fresh_and_to_nobody_else(ask: Ask) -> None:
    answer = ask()
    assert answer.status == 200
    assert "<body data-live>" in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_has_not_changed_is_not_sent_again(ask: Ask) -> None:
    tag = ask().headers["ETag"]
    again = ask(If_None_Match=tag)
    assert (again.status, again.text) == (304, "")


def test_the_page_is_made_again_only_when_something_was_written(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    made: list[Material] = []

    def counted(material: Material) -> Report:
        made.append(material)
        return report_of(material)

    monkeypatch.setattr(serving, "report_of", counted)
    for _ in range(3):
        ask()
    assert len(made) == 1
    cli("goal", "t", "--want", "notice")
    ask()
    assert len(made) == 2


def test_a_thread_that_is_deleted_while_it_is_watched_is_said_to_be_gone(ask: Ask, folder: Path) -> None:
    with closing(sqlite3.connect(folder / ".kintsugi" / "kintsugi.db")) as database, database:
        database.execute("DELETE FROM kintsugi_runs")
    answer = ask()
    assert (answer.status, "there is no thread 't'" in answer.text) == (410, True)


def test_whoever_does_not_know_the_token_is_refused(ask: Ask) -> None:
    for path in ("/", "/wrong/", "//", "/%00/", "/%C3%A9/", "*"):
        answer = ask(path)
        assert (path, answer.status) == (path, 403)
        assert "total" not in answer.text


def test_another_host_is_refused_even_with_the_token(ask: Ask) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example:1", ""):
        assert (host, ask(Host=host).status) == (host, 403)


def test_there_is_one_page_and_nothing_can_be_sent(ask: Ask, served: tuple[str, str]) -> None:
    assert ask(served[1] + "more").status == 404
    assert ask(method="POST").status == 501
    head = ask(method="HEAD")
    assert (head.status, head.text) == (200, "")


def test_the_page_changes_with_the_thread(ask: Ask, cli: Cli, folder: Path) -> None:
    before = ask()
    (folder / "numbers.json").write_text("[6]")
    cli("goal", "t", "--want", "notice")
    after = ask(If_None_Match=before.headers["ETag"])
    assert after.status == 200
    assert "notice" in after.text


def test_it_ends_cleanly_with_ctrl_c(cli: Cli, child: Callable[..., Fork]) -> None:
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    process = child("watch", "t")
    found = re.search(r"http://([\d.]+:\d+)(/\S+/)", process.stdout.readline())
    assert found
    assert _asked(found[1], found[2]).status == 200
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert "the run itself is not touched" in out


def test_what_cannot_be_watched_is_refused_in_a_sentence(cli: Cli, served: tuple[str, str]) -> None:
    assert "there is no thread 'other'" in cli("watch", "other", code=2).stderr
    port = urlsplit(f"//{served[0]}").port
    assert f"--port: {port} cannot be used" in cli("watch", "t", "--port", port, code=2).stderr

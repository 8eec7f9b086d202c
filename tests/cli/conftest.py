"""The command in this process and in others, in a folder of its own, with a goal and real tools."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# before LangGraph is imported, as the command itself does
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

import pytest
from typer.testing import CliRunner, Result

from agent.cli.app import app, main
from tests.forks import Fork

ROOT = Path(__file__).parents[2]
JOBS = "tests.cli.jobs:TOOLS"

GOAL = """\
text = "Add up the numbers"
wants = ["total"]
criteria = ["artifacts.total.sum == 6"]
"""

Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with numbers and a goal file, and an environment that says nothing else."""
    for name in [each for each in os.environ if each.startswith(("KINTSUGI_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KINTSUGI_LIMITS__BACKOFF", "0.01")
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.json").write_text("[1, 2, 3]")
    (tmp_path / "goal.toml").write_text(GOAL)
    return tmp_path


@pytest.fixture
def cli() -> Cli:
    """Call the command here; the exit code is part of the call."""

    def call(*args: object, code: int = 0, input: str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(each) for each in args], input=input)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return call


@pytest.fixture
def document(cli: Cli) -> Callable[..., dict[str, Any]]:
    """Call the command with `--json` and read the one document it prints."""

    def call(*args: object, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(cli(*args, "--json", code=code).stdout)
        return found

    return call


@pytest.fixture
def child(folder: Path) -> Iterator[Callable[..., Fork]]:
    """Run the command in another process."""
    children: list[Fork] = []

    def start(*args: object) -> Fork:
        children.append(Fork(main, ["kintsugi", *map(str, args)], folder, environment()))
        return children[-1]

    yield start
    for each in children:
        each.close()


@pytest.fixture
def process(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command as a shell does."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: object, **popen: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "agent.cli.app", *map(str, args)]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options |= {"cwd": folder, "env": environment(), "text": True} | popen
        started.append(subprocess.Popen(command, **options))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def environment(**more: str) -> dict[str, str]:
    """For another process: this one's, less what would colour its output or slow its second start."""
    dropped = ("FORCE_COLOR", "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "COLUMNS", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **more}


def calls(folder: Path) -> list[str]:
    """The mutating tools that were called, in order."""
    log = folder / "calls"
    return log.read_text().split() if log.exists() else []

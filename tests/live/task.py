"""What is a task? A goal in words, the world it is about, what goes wrong there, and how to see that it was done.

A task is judged by the state of the world and by nothing that a model says. Its `solution` is one way to do it: it
shows that the task can be done with the tools, and that the checks know a right world from a wrong one.
"""

import csv
import io
import json
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field

from agent.tools.builtin import sqlite_tools, workspace_tools
from tests.live.faults import Fault

FOLDER = Path(__file__).parent / "tasks"
LOCKED_FOR = 0.5
"""Seconds that a statement waits for a locked database."""


class Form(BaseModel):
    """Base of what a task file holds; a misspelled field is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Check(Form):
    """One thing that must be so afterwards; each field that is given must hold."""

    file: str | None = None
    text: str | None = None
    """The file says this; spaces around lines and empty lines do not count."""
    number: float | None = None
    """The file says this number and nothing else."""
    data: Any = None
    """The file is JSON and means this."""
    rows: list[list[str]] | None = None
    """The file is CSV and has these rows; numbers are compared as numbers."""
    holds: list[str] = Field(default_factory=list)
    lacks: list[str] = Field(default_factory=list)
    longest: int | None = None
    """Most words of the file."""
    gone: str | None = None
    """A file that is not there any more."""
    query: str | None = None
    gives: list[list[Any]] | None = None
    """What the query gives."""


class Given(Form):
    """One call of the solution."""

    tool: str
    args: dict[str, Any]


class Task(Form):
    """As a file of `tasks/` says it."""

    name: str
    kind: Literal["count", "extract", "join", "convert", "summarise", "fix", "change"]
    goal: str
    files: dict[str, str] = Field(default_factory=dict)
    database: str = ""
    """SQL that makes it; without it the task has no database, and no tools for one."""
    fault: Fault | None = None
    checks: list[Check]
    solution: list[Given]


class Setting:
    """The world of one task in a folder of its own, and the tools to work in it."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task, self.root, self.file = task, folder / "files", folder / "data.db"
        self.root.mkdir(parents=True)
        for path, text in task.files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        if task.database:
            with closing(sqlite3.connect(self.file)) as connection:
                connection.executescript(task.database)
        if task.fault:
            task.fault.prepare(self.root)

    def tools(self) -> list[BaseTool]:
        """The default tools over files and database, with the task's fault before them."""
        plain = workspace_tools(self.root)
        plain += sqlite_tools(self.file, seconds=LOCKED_FOR) if self.task.database else []
        return self.task.fault.before(plain, self.root, self.file) if self.task.fault else plain

    def wrongs(self) -> list[str]:
        """What is not as it should be, one sentence each; empty when the task was done."""
        return [wrong for each in self.task.checks if (wrong := _wrong(each, self.root, self.file))]


def tasks() -> list[Task]:
    """All of them, in order of their names."""
    return [_read(each) for each in sorted(FOLDER.glob("*.toml"))]


def _read(file: Path) -> Task:
    return Task.model_validate({"name": file.stem, **tomllib.loads(file.read_text())})


def _wrong(check: Check, root: Path, file: Path) -> str:
    if check.gone:
        return f"{check.gone} is still there" if (root / check.gone).exists() else ""
    if check.query:
        with closing(sqlite3.connect(file)) as connection:
            found = [list(each) for each in connection.execute(check.query)]
        return "" if found == check.gives else f"{check.query} gives {found}, not {check.gives}"
    place = root / str(check.file)
    if not place.is_file():
        return f"{check.file} is not there"
    text = place.read_text()
    return "" if _right(check, text) else f"{check.file} says {text[:200]!r}"


def _right(check: Check, text: str) -> bool:
    return (
        (check.text is None or _lines(text) == _lines(check.text))
        and (check.number is None or _number(text.strip()) == check.number)
        and (check.data is None or _parsed(text) == check.data)
        and (check.rows is None or _table(text) == [[_number(cell) for cell in row] for row in check.rows])
        and all(each in text for each in check.holds)
        and not any(each in text for each in check.lacks)
        and (check.longest is None or len(text.split()) <= check.longest)
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _table(text: str) -> list[list[float | str]]:
    return [[_number(cell.strip()) for cell in row] for row in csv.reader(io.StringIO(text.strip())) if row]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None

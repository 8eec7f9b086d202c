"""What do `kintsugi report` and `kintsugi watch` show? One page about a thread as it stands, for a browser."""

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.cli.exits import BadInput
from agent.cli.home import Home, open_home
from agent.cli.screen import console
from agent.cli.session import questions_of
from agent.core.grant import granted
from agent.settings import Settings
from agent.trace.html.model import Material
from agent.trace.html.page import page
from agent.trace.html.report import report_of

STDOUT = Path("-")


def report(settings: Settings, thread: str, out: Path | None) -> None:
    """Write the page of a thread into a file; `-` is standard output.

    Raises:
        BadInput: there is no such thread, or the file cannot be written.
    """
    with open_home(settings, make=False) as home:
        text = page(report_of(material(home, thread)))
    if out == STDOUT:
        sys.stdout.write(text)
        return
    path = out or Path(_as_name(thread) + ".html")
    _write(path, text)
    console().print(f"Wrote {path}: open it in a browser.", markup=False)


def material(home: Home, thread: str) -> Material:
    """What the page is made of, as it was last written.

    Raises:
        BadInput: there is no such thread.
    """
    run = home.run(thread)
    snapshot = home.snapshot(thread)
    state: Mapping[str, Any] = snapshot.values
    names = ("goal", "plan", "world", "trace", "ledger", "outcome")
    return Material(
        thread=thread,
        standing=home.status(run),
        limits=granted(home.settings.limits, state.get("granted") or {}),
        questions=tuple(questions_of(snapshot).values()),
        again=home.command("resume", thread),
        **{name: state[name] for name in names if name in state},
    )


def _as_name(thread: str) -> str:
    """A thread's name may be anything; a file's may not."""
    return re.sub(r"[^\w.-]+", "-", thread).strip(".-") or "thread"


def _write(path: Path, text: str) -> None:
    """Put the whole file there or nothing: half a page says nothing."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", encoding="utf-8", delete=False) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise BadInput(f"-o: {path} cannot be written: {error.strerror or error}") from error

"""Where does output go? One console for people, one for errors; wide when nobody's terminal sets the width."""

import os
import sys

from rich.console import Console

WIDTH = 200
"""Columns for a pipe or a file: nothing is cut there, and nothing is wrapped that a `grep` should find."""

COLOURS = {
    "done": "green",
    "kept": "bold yellow",
    "running": "cyan",
    "pending": "dim",
    "invalid": "yellow",
    "failed": "red",
    "skipped": "dim",
    "retry": "cyan",
    "patch": "cyan",
    "rewrite": "yellow",
    "replan": "yellow",
    "escalate": "red",
}
"""One colour for each state of a step and each rung."""


def console() -> Console:
    """For results. Rich itself obeys NO_COLOR."""
    terminal = is_terminal()
    return Console(highlight=False, soft_wrap=not terminal, width=None if terminal else _width())


def errors() -> Console:
    """For errors and what is said beside the results."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def is_terminal() -> bool:
    """Whether a person looks at the output, on a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def is_conversation() -> bool:
    """Whether a person can be asked."""
    return is_terminal() and sys.stdin.isatty()


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() else WIDTH

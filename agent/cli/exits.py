"""What does the exit code say? One for each kind of end; and the two ways to end with a sentence."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from agent.cli.screen import errors
from agent.core.outcome import Outcome, OutcomeStatus


class Code(IntEnum):
    """Exit codes, as the help states them."""

    SATISFIED = 0
    BUG = 1
    USAGE = 2
    UNSATISFIED = 3
    WAITING = 4
    INTERRUPTED = 130


EXITS = (
    "Exit codes: 0 the goal is satisfied · 1 a bug · 2 usage or bad input · 3 the run ended without satisfying "
    "the goal (partial results are printed) · 4 it waits for a person · 130 interrupted; the state is kept"
)


class BadInput(Exception):
    """What was given cannot be used. The message is for the person who gave it, and is all they see."""


@contextmanager
def bad_input(what: str = "") -> Iterator[None]:
    """Turn a refusal of what was given into a sentence.

    Args:
        what: what the refused value was, put in front of the reason.

    Raises:
        BadInput: in place of a `ValueError`.
    """
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        raise BadInput(f"{what}{where}{': ' if where else ''}{first['msg']}") from error
    except ValueError as error:
        raise BadInput(f"{what}{error}") from error


def code_of(outcome: Outcome | None) -> Code:
    """The exit code of a run; one without an outcome waits for a person."""
    if outcome is None:
        return Code.WAITING
    return Code.SATISFIED if outcome.status is OutcomeStatus.SATISFIED else Code.UNSATISFIED


def unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Tell of a bug in one line; it is how Python reports what nobody has caught."""
    if "--debug" in sys.argv or os.environ.get("KINTSUGI_DEBUG"):
        traceback.print_exception(kind, error, trace)
        return
    last = traceback.extract_tb(trace)[-1:]
    place = f" ({Path(last[0].filename).name}, line {last[0].lineno})" if last else ""
    said = " ".join(str(error).split())
    errors().print(f"kintsugi: unexpected {kind.__name__}: {said}{place}", style="red", markup=False)
    errors().print(
        "What was verified is kept. For the traceback: KINTSUGI_DEBUG=1, or kintsugi --debug ...", markup=False
    )

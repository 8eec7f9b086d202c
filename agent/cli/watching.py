"""Who watches a run? A live board on a terminal, one line for each thing that matters elsewhere, or nobody."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.live import Live

from agent.cli.board import Board
from agent.cli.screen import COLOURS
from agent.core.failure import Trigger
from agent.core.ladder import Rung
from agent.core.plan import Plan
from agent.core.record import AttemptEnded, Committed, IntentChanged, Planned, Recovered, Repaired, TraceRecord
from agent.nodes.state import take_plan

_KEPT = {"adopted": "seen in the world", "recorded": "the journal has its outcome"}


class Watch(Protocol):
    """Follows one call of the graph; may be entered again for the next."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def take(self, update: Mapping[str, Any]) -> None:
        """Follow what a node returned."""
        ...


class LiveWatch:
    """Draws the board, again and again in the same place."""

    def __init__(self, console: Console, board: Board) -> None:
        self._console = console
        self._board = board
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._live = Live(self._board, console=self._console, refresh_per_second=8)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, update: Mapping[str, Any]) -> None:
        """Follow what a node returned."""
        self._board.take(update)


class LineWatch:
    """Prints a line for each plan, each artifact, each failure and each rung."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._plan = plan

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def take(self, update: Mapping[str, Any]) -> None:
        """Follow what a node returned."""
        self._plan = take_plan(self._plan, [update.get("plan")])
        for record in update.get("trace", ()):
            kind, said = self._said(record)
            if kind:
                self._console.print(f"[{COLOURS.get(kind, 'bold')}]{kind:<9}[/]", end="")
                self._console.print(said, markup=False)

    def _said(self, record: TraceRecord) -> tuple[str, str]:
        match record:
            case IntentChanged():
                return "goal", f"changed (revision {record.goal_revision})"
            case Planned():
                new = len(record.delta.added) + len(record.delta.reopened)
                return "plan", f"revision {record.revision} by the {record.planner} planner, steps to do: {new}"
            case Committed(unchanged=False):
                return "done", f"{record.name}: {self._intent(record.step)}"
            case AttemptEnded(ok=False):
                return "failed", f"{self._intent(record.step)}: {' '.join(record.error.split())}"
            case AttemptEnded() if record.how in _KEPT:
                return "kept", f"{self._intent(record.step)}: {_KEPT[record.how]}, not done again"
            case Recovered():
                return record.choice.rung, _about(record)
            case Repaired(rung=Rung.PATCH):
                return "patched", record.because
            case _:
                return "", ""

    def _intent(self, step: str | None) -> str:
        return next((each.intent for each in self._plan.steps if each.id == step), "given by a person")


def _about(record: Recovered) -> str:
    """What is recovered; why, too, unless a line about the failed attempt has just said it."""
    failure = record.classified.failure
    if record.choice.joined:
        return f"{failure.key}: goes along with it"
    why = "" if failure.trigger is Trigger.TASK_FAILURE else f": {' '.join(failure.error.message.split())}"
    return f"{failure.key}{why}"


class NoWatch:
    """Shows nothing, and keeps what tools print off the standard output, which is for one document."""

    def __init__(self) -> None:
        self._elsewhere = ExitStack()

    def __enter__(self) -> Self:
        self._elsewhere.enter_context(redirect_stdout(sys.stderr))
        return self

    def __exit__(self, *_: object) -> None:
        self._elsewhere.close()

    def take(self, update: Mapping[str, Any]) -> None:
        """Show nothing."""

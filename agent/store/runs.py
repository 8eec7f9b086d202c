"""Which runs are there, and how did each end? One row per thread, written when a run is accepted.

A run killed before its first checkpoint left no state, but it was accepted, so it is listed with its goal.
"""

from functools import partial

from agent.core.identifier import identifier
from agent.core.value import Value
from agent.store.body import from_body, to_body
from agent.store.connection import Connection
from agent.store.database import Database

RUNNING = "running"
"""Accepted and not ended; also what a killed run shows until it is resumed."""

WAITING = "waiting"
"""Stopped until a person answers."""

_COLUMNS = "thread, goal, status, tools, source, started_at, updated_at"


class Run(Value):
    """One thread, as the index knows it."""

    thread: str
    goal: str
    """The goal's text or a short title of it."""
    status: str
    """`running`, `waiting`, or the status of the outcome."""
    tools: str | None = None
    """Where the tools come from, as `module:attribute`; needed to resume."""
    source: str | None = None
    """Goal file or scenario name; None when the goal was typed."""
    started_at: float
    """Seconds since the epoch, of the first start."""
    updated_at: float
    """Seconds since the epoch."""


class RunIndex:
    """The runs of one database."""

    def __init__(self, database: Database) -> None:
        self._lane = database.quick

    def started(
        self, thread: str, *, goal: str, at: float, tools: str | None = None, source: str | None = None
    ) -> None:
        """Record that a run was accepted: a new one, a resumed one, or one with a changed goal.

        A thread that is known keeps its first start, and its tools and source where none are given.

        Raises:
            BadIdentifier: no thread can have that id.
        """
        identifier(thread)
        self._lane.call(partial(_start, (thread, to_body(goal), RUNNING, tools, _blob(source), at, at)))

    def ended(self, thread: str, status: str, *, at: float) -> None:
        """Record how a run ended, or that it waits.

        Raises:
            LookupError: no run of that thread was started.
        """
        if not self._lane.call(partial(_end, thread, status, at)):
            raise LookupError(f"no run of thread {thread!r} was started")

    def get(self, thread: str) -> Run | None:
        """The run of a thread."""
        return next(iter(self._lane.call(partial(_select, "WHERE thread = ?", (thread,)))), None)

    def list(self) -> tuple[Run, ...]:
        """All runs, the one that changed last first."""
        return self._lane.call(partial(_select, "ORDER BY updated_at DESC, started_at DESC, thread", ()))


def _start(row: tuple[object, ...], connection: Connection) -> None:
    connection.execute(
        f"""INSERT INTO kintsugi_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (thread) DO UPDATE SET goal = excluded.goal, status = excluded.status,
        tools = coalesce(excluded.tools, kintsugi_runs.tools),
        source = coalesce(excluded.source, kintsugi_runs.source),
        updated_at = excluded.updated_at""",
        row,
    )


def _end(thread: str, status: str, at: float, connection: Connection) -> bool:
    statement = "UPDATE kintsugi_runs SET status = ?, updated_at = ? WHERE thread = ?"
    return connection.execute(statement, (status, at, thread)).rowcount == 1


def _select(clause: str, given: tuple[str, ...], connection: Connection) -> tuple[Run, ...]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM kintsugi_runs {clause}", given)
    return tuple(_run(row) for row in rows)


def _blob(text: str | None) -> bytes | None:
    return None if text is None else to_body(text)


def _run(row: tuple[str, bytes, str, str | None, bytes | None, float, float]) -> Run:
    thread, goal, status, tools, source, started_at, updated_at = row
    return Run(
        thread=thread,
        goal=str(from_body(goal)),
        status=status,
        tools=tools,
        source=None if source is None else str(from_body(source)),
        started_at=started_at,
        updated_at=updated_at,
    )

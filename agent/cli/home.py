"""Which runs are there, and where? The home folder, opened: its database, its index of runs, its inbox."""

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import StateSnapshot

from agent.cli.exits import BadInput, bad_input
from agent.core.goal import Goal
from agent.core.identifier import identifier
from agent.settings import Settings
from agent.store.checkpoints import open_saver
from agent.store.connection import DatabaseRefused
from agent.store.database import Database, open_database, place_of
from agent.store.hold import KEY as HOLD
from agent.store.hold import Hold
from agent.store.inbox import GoalInbox
from agent.store.leases import Leases
from agent.store.naming import Newer
from agent.store.runs import RUNNING, Run, RunIndex

if TYPE_CHECKING:
    from graphs.loop import LoopGraph

STOPPED = "stopped"
"""Shown for a run that was killed or interrupted: accepted, not ended, and nobody works on it."""


@dataclass(frozen=True)
class Home:
    """One home folder with everything in it."""

    settings: Settings
    database: Database

    @property
    def folder(self) -> Path:
        """Where everything lies."""
        return self.settings.home

    @property
    def runs(self) -> RunIndex:
        """The index of runs."""
        return RunIndex(self.database)

    @property
    def inbox(self) -> GoalInbox:
        """Goals that were changed while their runs went on."""
        return GoalInbox(self.database)

    @property
    def leases(self) -> Leases:
        """Who works on which thread."""
        return Leases(self.database, self.settings.lease_seconds)

    def is_worked_on(self, thread: str) -> bool:
        """Whether somebody works on the thread at this moment."""
        return self.leases.holder(thread) is not None

    def run(self, thread: str) -> Run:
        """The run of a thread.

        Raises:
            BadInput: there is none; the message names those there are.
        """
        with bad_input():
            identifier(thread)
        found = self.runs.get(thread)
        if found is None:
            known = ", ".join(each.thread for each in self.runs.list()[:10])
            raise BadInput(
                f"there is no thread {thread!r} in {self.folder}; " + (f"there are: {known}" if known else NONE)
            )
        return found

    def status(self, run: Run) -> str:
        """How the run stands; one that was killed still says `running` in the index."""
        return STOPPED if run.status == RUNNING and not self.is_worked_on(run.thread) else run.status

    def command(self, *words: str) -> str:
        """How to call this program on this home, as it can be pasted into a shell."""
        usual = Path(os.environ.get("KINTSUGI_HOME") or ".kintsugi")
        return shlex.join(["kintsugi", *words, *([] if self.folder == usual else ["--home", str(self.folder)])])

    def left_goal(self, thread: str, state: Mapping[str, Any]) -> Goal | None:
        """A changed goal in the inbox that no run has heard, by the thread's state."""
        return self.inbox.unheard(thread, state.get("heard") or 0)

    def values(self, thread: str) -> dict[str, Any]:
        """The thread's state as it was last written; empty before the first checkpoint."""
        values: dict[str, Any] = self.snapshot(thread).values
        return values

    def snapshot(self, thread: str) -> StateSnapshot:
        """The same with what is asked, and where the run goes on.

        Raises:
            BadInput: a later release wrote it.
        """
        with self._reading() as graph:
            return snapshot_of(graph, config_of(thread))

    def written(self, thread: str) -> tuple[object, ...]:
        """What changes with whatever is written of the thread, or of its standing; cheap to ask again and again."""
        with self._reading() as graph:
            assert isinstance(graph.checkpointer, BaseCheckpointSaver)
            found = graph.checkpointer.get_tuple(config_of(thread))
        last = (found.checkpoint["id"], len(found.pending_writes or ())) if found else ()
        run = self.run(thread)
        return (*last, run.updated_at, self.status(run))

    @contextmanager
    def _reading(self) -> "Iterator[LoopGraph]":
        """A graph without tools, to read checkpoints with."""
        from agent.app import assemble  # heavy, and most readers of a home need no graph

        saver = open_saver(self.database)
        with closing(saver.conn):
            yield assemble([], self.database, self.settings, checkpointer=saver)


NONE = "no run was started yet"


def config_of(thread: str, hold: Hold | None = None) -> RunnableConfig:
    """How LangGraph is told which thread is meant, and that it is held already."""
    return {"configurable": {"thread_id": thread, HOLD: hold}}


def snapshot_of(graph: "LoopGraph", config: RunnableConfig) -> StateSnapshot:
    """The thread of a config as it was last written.

    Raises:
        BadInput: by a later release.
    """
    try:
        return graph.get_state(config)
    except Newer as error:
        raise BadInput(str(error)) from error


@contextmanager
def open_home(settings: Settings, make: bool = True) -> Iterator[Home]:
    """Open the home folder; with `make`, also one that is not there yet.

    Raises:
        BadInput: the database cannot be trusted or used, or there is none and none is to be made.
    """
    place = place_of(settings)
    if not make and isinstance(place, Path) and not place.exists():
        raise BadInput(f"there are no runs in {settings.home}: {NONE}")
    try:
        database = open_database(place)
    except DatabaseRefused as error:
        raise BadInput(str(error)) from error
    with database:
        yield Home(settings, database)

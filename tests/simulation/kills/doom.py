"""Where a process ends itself by SIGKILL. The product has no switch for that: its classes are wrapped in the child."""

import inspect
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.scenarios import config_tools
from agent.scenarios.closing_books import Books
from agent.scenarios.closing_office import Office
from agent.scenarios.export_desk import ExportDesk
from agent.scenarios.tally import Tally
from agent.scenarios.warehouse import Warehouse
from agent.store.artifacts import DatabaseArtifacts
from agent.store.inbox import GoalInbox
from agent.store.journal import DatabaseJournal
from agent.store.leases import Leases
from agent.tools.calling import Caller
from graphs import loop
from tests.simulation.kills.script import Kill


class Doom:
    """Counts what comes by, and kills its process at the place it was given; at none it only counts."""

    def __init__(self, end: Kill | None) -> None:
        self._end = end
        self._passed: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def reach(self, boundary: str, when: str) -> None:
        """Come by a boundary."""
        with self._lock:
            self._passed[boundary, when] += 1
            if self._end == Kill(boundary, when, self._passed[boundary, when]):
                os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """Wrap everything that is a boundary; for the rest of the process's life."""
        for owner, name, boundary in _boundaries():
            setattr(owner, name, self._around(getattr(owner, name), boundary))

    def _around(self, original: Callable[..., Any], boundary: str) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(original):

            @wraps(original)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                self.reach(boundary, "before")
                result = await original(*args, **kwargs)
                self.reach(boundary, "after")
                return result

            return awaited

        @wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.reach(boundary, "before")
            result = original(*args, **kwargs)
            self.reach(boundary, "after")
            return result

        return called


def _boundaries() -> Iterator[tuple[Any, str, str]]:
    """Class or module, what is called of it, and the boundary it is."""
    for saver, prefix in _savers():
        yield saver, f"{prefix}put", "put"
        yield saver, f"{prefix}put_writes", "writes"
    yield DatabaseJournal, "begin", "begin"
    for end in ("done", "adopted", "absent"):
        yield DatabaseJournal, end, "done"
    yield DatabaseArtifacts, "put", "store"
    yield Leases, "take", "lease"
    yield Leases, "release", "lease"
    yield GoalInbox, "put", "inbox"
    yield Caller, "call", "tool"
    yield Caller, "look", "probe"
    yield loop._Node, "invoke", "node"
    yield loop._Node, "ainvoke", "node"
    # the effects of the packaged scenarios; those of the shop come by themselves
    yield Tally, "add", "effect"
    yield Warehouse, "load", "effect"
    yield ExportDesk, "post", "effect"
    yield Office, "book", "effect"
    yield Books, "load", "effect"
    yield Books, "write", "effect"
    yield config_tools, "_create", "effect"
    yield config_tools, "written", "effect"


def _savers() -> Iterator[tuple[type, str]]:
    yield SqliteSaver, ""
    yield AsyncSqliteSaver, "a"
    yield PostgresSaver, ""
    yield AsyncPostgresSaver, "a"

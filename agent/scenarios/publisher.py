"""Who publishes the schema: a team elsewhere, whose first release lacks a table and whose second follows.

The publisher is a thread that watches what really happens in the workspace. It completes the schema when the
first release has been fetched and the report has been written meanwhile, or else a little later anyway.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.scenarios.scenario import write_whole

PATIENCE = 2.0
"""Seconds after the first fetch when the schema is completed in any case."""

DRAFT = {"orders": ["id", "user_id", "amount"], "products": ["id", "name"]}
COMPLETE = {**DRAFT, "users": ["id", "name", "email"]}
"""Tables and their columns."""


class Publisher:
    """Publishes the complete schema, once, on what it notices."""

    def __init__(self, path: Path) -> None:
        """Args: the schema file."""
        self._path = path
        self._fetched = threading.Event()
        self._written = threading.Event()
        self._closed = False

    def note_fetch(self) -> None:
        """Somebody has read the schema."""
        self._fetched.set()

    def await_fetch(self, seconds: float) -> None:
        """Wait until somebody has read the schema, or for some time."""
        self._fetched.wait(seconds)

    def note_report(self) -> None:
        """The report has been written; the schema is complete when this returns, if it was fetched before."""
        self._written.set()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Publish in a thread of its own while the context lasts."""
        thread = threading.Thread(target=self._work, name="schema-publisher", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closed = True
            self._fetched.set()
            self._written.set()
            thread.join()

    def _work(self) -> None:
        self._fetched.wait()
        self._written.wait(PATIENCE)
        if not self._closed:
            publish(self._path, COMPLETE)


def publish(path: Path, tables: dict[str, list[str]]) -> None:
    """Release a schema: from one moment to the next every reader sees the new one."""
    write_whole(path, json.dumps({"tables": tables}, indent=2))

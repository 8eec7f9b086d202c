"""Which goals were changed while their runs went on? Left by another thread or process, taken by the dispatcher."""

import asyncio
import sqlite3
from functools import partial

from agent.core.goal import Goal
from agent.store.database import Database
from agent.store.lane import transaction


class GoalInbox:
    """Changed goals in the run's database; the last one stated for a thread counts."""

    def __init__(self, database: Database) -> None:
        self._lane = database.quick

    def put(self, thread: str, goal: Goal) -> None:
        """Leave a changed goal for a thread."""
        self._lane.call(partial(_put, thread, goal.model_dump_json()))

    async def take(self, thread: str) -> Goal | None:
        """Take the changed goal, if there is one; it is there only once."""
        found = await asyncio.wrap_future(self._lane.submit(partial(_take, thread)))
        return Goal.model_validate_json(found) if found is not None else None


def _put(thread: str, goal: str, connection: sqlite3.Connection) -> None:
    with transaction(connection):
        connection.execute("INSERT OR REPLACE INTO kintsugi_inbox (thread, goal) VALUES (?, ?)", (thread, goal))


def _take(thread: str, connection: sqlite3.Connection) -> str | None:
    found = connection.execute("SELECT goal FROM kintsugi_inbox WHERE thread = ?", (thread,)).fetchone()
    if found is None:
        return None
    with transaction(connection):
        connection.execute("DELETE FROM kintsugi_inbox WHERE thread = ?", (thread,))
    return str(found[0])

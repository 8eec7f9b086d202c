"""Which goals were changed while their runs went on? Left by another thread or process, heard by the dispatcher.

A letter is thrown away only after a checkpoint says that it was heard: a kill in between loses nothing.
"""

import asyncio
from functools import partial

from agent.core.goal import Goal
from agent.core.identifier import identifier
from agent.ports import Letter
from agent.secrecy import said
from agent.store.connection import Connection, transaction
from agent.store.database import Database


class GoalInbox:
    """Changed goals in the run's database; the last one stated for a thread counts."""

    def __init__(self, database: Database) -> None:
        self._lane = database.quick

    def put(self, thread: str, goal: Goal) -> None:
        """Leave a changed goal for a thread.

        Raises:
            BadIdentifier: no thread can have that id.
        """
        identifier(thread)
        self._lane.call(partial(_put, thread, said(goal).model_dump_json()))

    async def newer(self, thread: str, heard: int) -> Letter | None:
        """The last letter after number `heard`; the letters up to it are thrown away."""
        found = await asyncio.wrap_future(self._lane.submit(partial(_newer, thread, heard)))
        return Letter(number=found[0], goal=Goal.model_validate_json(found[1])) if found is not None else None

    def unheard(self, thread: str, heard: int) -> Goal | None:
        """Likewise, for a caller without an event loop."""
        found = self._lane.call(partial(_newer, thread, heard))
        return Goal.model_validate_json(found[1]) if found is not None else None


def _put(thread: str, goal: str, connection: Connection) -> None:
    with transaction(connection, thread):
        connection.execute("INSERT INTO kintsugi_inbox (thread, goal) VALUES (?, ?)", (thread, goal))


def _newer(thread: str, heard: int, connection: Connection) -> tuple[int, str] | None:
    query = "SELECT number, goal FROM kintsugi_inbox WHERE thread = ? ORDER BY number DESC LIMIT 1"
    found = connection.execute(query, (thread,)).fetchone()
    if found is None:
        return None
    number, goal = int(found[0]), str(found[1])
    if number > heard:
        return number, goal
    with transaction(connection, thread):
        connection.execute("DELETE FROM kintsugi_inbox WHERE thread = ? AND number <= ?", (thread, heard))
    return None

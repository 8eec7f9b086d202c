"""What was said in an attempt that its process did not live to end? Kept turn by turn, so that a resume goes on there.

A step has one row, and that belongs to one start of it: nothing is taken up under another goal, from other inputs, or
in a fork that started the step anew. Large results lie among the artifacts, under their digests.
"""

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from agent.core.value import Digest, JsonValue, size
from agent.ports import Said, Task
from agent.secrecy import hidden
from agent.store.artifacts import FOR_EVER, ArtifactStore, DamagedArtifact, MissingArtifact
from agent.store.body import from_body, to_body
from agent.store.connection import Connection, transaction
from agent.store.database import Database
from agent.store.lane import Lane
from agent.store.leases import refuse_superseded

_Parked = dict[str, list[JsonValue]]
"""Results by handle: digest of the body, or the value itself."""


class DatabaseTurns:
    """Turns in the run's database; like its artifacts they survive the death of the process."""

    def __init__(
        self,
        database: Database,
        artifacts: ArtifactStore,
        inline_bytes: int,
        beside: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Keep them.

        Args:
            database: where.
            artifacts: where large results lie.
            inline_bytes: up to how many bytes a result is not large.
            beside: whether the checkpoints lie in that database as well.
            now: the time, since the epoch.
        """
        self._lane = database.quick
        self._artifacts = artifacts
        self._inline = inline_bytes
        self._now = now if beside else lambda: FOR_EVER

    async def of(self, task: Task) -> "DatabaseDiary":
        """The diary of an attempt, with what it had come to when it was broken off."""
        diary = DatabaseDiary(task, self._lane, self._artifacts, self._inline, self._now)
        await diary.read()
        return diary

    async def sweep(self, thread: str, running: Collection[str] = (), fence: int | None = None) -> None:
        """Drop the turns of all steps of a thread but those that are running.

        Raises:
            Superseded: another run has taken the thread over.
        """
        await self._lane.run(partial(_sweep, thread, tuple(running), fence))


class DatabaseDiary:
    """The turns of one attempt."""

    def __init__(
        self, task: Task, lane: Lane, artifacts: ArtifactStore, inline_bytes: int, now: Callable[[], float]
    ) -> None:
        self.begun: Said | None = None
        self._task = task
        self._lane = lane
        self._artifacts = artifacts
        self._inline = inline_bytes
        self._now = now
        self._parked: _Parked = {}

    async def read(self) -> None:
        """Take up what is there. What cannot be read any more is as good as never said."""
        row = await self._lane.run(partial(_find, self._task))
        if row is None:
            return
        try:
            kept = {handle: await self._unparked(*where) for handle, where in row["kept"].items()}
        except (MissingArtifact, DamagedArtifact):
            return
        self._parked = row["kept"]
        self.begun = Said(talk=row["talk"], kept=kept, told=row["told"])

    async def keep(self, said: Said) -> None:
        """Keep all that was said until now.

        Raises:
            Superseded: another run has taken the thread over.
        """
        for handle, value in said.kept.items():
            if handle not in self._parked:
                large = size(value) > self._inline
                self._parked[handle] = [await self._artifacts.put(value), None] if large else [None, value]
        body = to_body({"talk": hidden(said.talk), "kept": dict(self._parked), "told": said.told})
        await self._lane.run(partial(_keep, self._task, body, self._now()))

    async def _unparked(self, stored: str | None, value: JsonValue) -> JsonValue:
        return await self._artifacts.get(Digest(stored)) if stored else value


def bodies(connection: Connection) -> list[bytes]:
    """All that is kept: digests are among it."""
    return [bytes(body) for (body,) in connection.execute("SELECT body FROM kintsugi_turns")]


def drop_orphans(threads: Collection[str], before: float, connection: Connection) -> None:
    """Drop what was kept before a time on threads that are none of these."""
    rows = connection.execute("SELECT thread, step FROM kintsugi_turns WHERE touched < ?", (before,)).fetchall()
    for thread, step in rows:
        if thread not in threads:
            key = (thread, step, before)
            connection.execute("DELETE FROM kintsugi_turns WHERE thread = ? AND step = ? AND touched < ?", key)


def _find(task: Task, connection: Connection) -> dict[str, Any] | None:
    query = "SELECT body FROM kintsugi_turns WHERE thread = ? AND step = ? AND start = ?"
    row = connection.execute(query, (task.thread, task.step.id, task.start)).fetchone()
    found = from_body(bytes(row[0])) if row else None
    return found if isinstance(found, dict) else None


def _keep(task: Task, body: bytes, at: float, connection: Connection) -> None:
    with transaction(connection, task.thread):
        refuse_superseded(connection, task.thread, task.fence)
        connection.execute(
            """INSERT INTO kintsugi_turns (thread, step, start, body, touched) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (thread, step) DO UPDATE SET
            start = excluded.start, body = excluded.body, touched = excluded.touched""",
            (task.thread, task.step.id, task.start, body, at),
        )


def _sweep(thread: str, running: tuple[str, ...], fence: int | None, connection: Connection) -> None:
    with transaction(connection, thread):
        refuse_superseded(connection, thread, fence)
        found = connection.execute("SELECT step FROM kintsugi_turns WHERE thread = ?", (thread,)).fetchall()
        for (step,) in found:
            if step not in running:
                connection.execute("DELETE FROM kintsugi_turns WHERE thread = ? AND step = ?", (thread, step))

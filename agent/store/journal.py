"""Has this mutating call been made before? The effect journal, in the run's database or in memory.

Each report reads the entry, lets a pure function say what it becomes, and writes that in one transaction, so
that check and record are one act for threads and processes alike. A large result is most often an artifact as well:
it is kept once, among them, and the entry has its digest. Both are written in that one transaction.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from agent.core.effect import (
    Begun,
    EffectEntry,
    EffectIdentity,
    EffectStatus,
    Fresh,
    UnknownEffect,
    answer,
    happened,
)
from agent.core.value import Digest, JsonValue, size
from agent.store.artifacts import get_body, put_body
from agent.store.body import from_body, to_body
from agent.store.connection import Connection, transaction
from agent.store.database import Database, memory_database
from agent.store.leases import refuse_superseded

Next = Callable[[EffectEntry | None], EffectEntry]
"""From an entry as it is to the entry as it shall be."""

INLINE_BYTES = 4096
"""Results up to this size lie in their entry, where nothing else is said."""

_COLUMNS = "thread, tool, args_digest, repetition, step, status, attempts, result, stored"


class DatabaseJournal:
    """The journal in the run's database. Its commits are fsynced: see `Database.durable`."""

    def __init__(
        self, database: Database, inline_bytes: int = INLINE_BYTES, now: Callable[[], float] = time.time
    ) -> None:
        """Args: where; up to how many bytes a result lies in its entry; the time, since the epoch."""
        self._lane = database.durable
        self._inline = inline_bytes
        self._now = now

    async def begin(self, identity: EffectIdentity, step: str, fence: int | None = None) -> Begun:
        """Ask to make the call. Of all that ask at once, one is told `Fresh`.

        Raises:
            Superseded: another run has taken the thread over since the token `fence` was given.
        """
        asked = self._lane.submit(partial(_begin, identity, step, fence))
        try:
            return await asyncio.shield(asyncio.wrap_future(asked))
        except asyncio.CancelledError:
            # Who is cancelled here never learns the answer and so never calls: take the intent back, or the
            # effect would look as if it may have happened.
            self._lane.submit(partial(_withdraw, identity, asked))
            raise

    async def done(self, identity: EffectIdentity, result: JsonValue) -> None:
        """Report that the call happened. The first result stays."""
        await self._settle(identity, EffectStatus.DONE, result)

    async def adopted(self, identity: EffectIdentity, result: JsonValue) -> None:
        """Report that the effect was found in the world. The first result stays."""
        await self._settle(identity, EffectStatus.ADOPTED, result)

    async def absent(self, identity: EffectIdentity, attempts: int) -> None:
        """Report that this attempt had no effect, so that the call may be made again."""
        await self._lane.run(partial(_write_off, identity, attempts))

    async def entries(self, thread: str) -> tuple[EffectEntry, ...]:
        """All effects of a thread, in the order they were first intended."""
        return await self._lane.run(partial(_entries, thread))

    async def undecided(self, thread: str, steps: Collection[str]) -> tuple[EffectIdentity, ...]:
        """What these steps have intended last and nobody has reported the end of; reads no results."""
        return await self._lane.run(partial(_undecided, thread, steps))

    async def _settle(self, identity: EffectIdentity, status: EffectStatus, result: JsonValue) -> None:
        large = size(result) > self._inline
        await self._lane.run(partial(_settle, identity, status, result, self._now() if large else None))


class MemoryJournal(DatabaseJournal):
    """A journal that ends with the process; for graphs whose checkpoints do so too."""

    def __init__(self) -> None:
        super().__init__(memory_database())


def _begin(identity: EffectIdentity, step: str, fence: int | None, connection: Connection) -> Begun:
    return answer(_change(connection, identity, partial(_armed, identity, step), fence))


def _withdraw(identity: EffectIdentity, asked: Future[Begun], connection: Connection) -> None:
    # The lane works in order, so the answer is there; or the refusal, and then there is nothing to take back.
    match asked.exception() or asked.result():
        case Fresh(attempts):
            _write_off(identity, attempts, connection)


def _settle(
    identity: EffectIdentity, status: EffectStatus, result: JsonValue, at: float | None, connection: Connection
) -> None:
    _change(connection, identity, partial(_settled, identity, status, result), at=at)


def _write_off(identity: EffectIdentity, attempts: int, connection: Connection) -> None:
    _change(connection, identity, partial(_absent, identity, attempts))


def _armed(identity: EffectIdentity, step: str, entry: EffectEntry | None) -> EffectEntry:
    match answer(entry):
        case Fresh(attempts):
            return EffectEntry(identity, step, EffectStatus.OPEN, attempts)
        case _:
            return _known(identity, entry)


def _settled(
    identity: EffectIdentity, status: EffectStatus, result: JsonValue, entry: EffectEntry | None
) -> EffectEntry:
    known = _known(identity, entry)
    # An attempt that was written off may still report success: then it did happen after all.
    return known if happened(known) else replace(known, status=status, result=result)


def _absent(identity: EffectIdentity, attempts: int, entry: EffectEntry | None) -> EffectEntry:
    known = _known(identity, entry)
    same = known.status is EffectStatus.OPEN and known.attempts == attempts
    return replace(known, status=EffectStatus.ABSENT) if same else known


def _known(identity: EffectIdentity, entry: EffectEntry | None) -> EffectEntry:
    if entry is None:
        raise UnknownEffect(f"no intent is recorded for {identity!r}: `begin` comes before the call")
    return entry


def _change(
    connection: Connection,
    identity: EffectIdentity,
    following: Next,
    fence: int | None = None,
    at: float | None = None,
) -> EffectEntry | None:
    """Replace an entry by what follows from it; returns it as it was before.

    Args:
        connection: to the journal.
        identity: which entry.
        following: what follows.
        fence: token of the thread's lease; None where none is needed.
        at: the time, where the result is to lie among the artifacts.
    """
    with transaction(connection, identity.thread):
        refuse_superseded(connection, identity.thread, fence)
        before = _find(connection, identity)
        after = following(before)
        if after != before:
            _put(connection, after, at)
    return before


def _find(connection: Connection, identity: EffectIdentity) -> EffectEntry | None:
    where = "thread = ? AND tool = ? AND args_digest = ? AND repetition = ?"
    row = connection.execute(f"SELECT {_COLUMNS} FROM kintsugi_effects WHERE {where}", _key(identity)).fetchone()
    return None if row is None else _entry(connection, row)


def _entries(thread: str, connection: Connection) -> tuple[EffectEntry, ...]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM kintsugi_effects WHERE thread = ? ORDER BY number", (thread,))
    return tuple(_entry(connection, row) for row in rows.fetchall())


def _undecided(thread: str, steps: Collection[str], connection: Connection) -> tuple[EffectIdentity, ...]:
    # `open` in the text, and not a parameter: else SQLite does not see that its index serves
    query = f"""SELECT thread, tool, args_digest, repetition FROM kintsugi_effects
        WHERE thread = ? AND step IN ({", ".join("?" * len(steps))}) AND status = 'open' ORDER BY number"""
    rows = connection.execute(query, (thread, *steps)).fetchall()
    return tuple(EffectIdentity(of, tool, Digest(args), repetition) for of, tool, args, repetition in rows)


def _put(connection: Connection, entry: EffectEntry, at: float | None) -> None:
    stored = None if at is None else put_body(entry.result, at, connection)
    result = to_body(entry.result if stored is None else None)
    connection.execute(
        f"""INSERT INTO kintsugi_effects ({_COLUMNS}, number) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,
            (SELECT coalesce(max(number), 0) + 1 FROM kintsugi_effects WHERE thread = ?))
        ON CONFLICT (thread, tool, args_digest, repetition) DO UPDATE SET
        step = excluded.step, status = excluded.status,
        attempts = excluded.attempts, result = excluded.result, stored = excluded.stored""",
        (*_key(entry.identity), entry.step, entry.status, entry.attempts, result, stored, entry.identity.thread),
    )


def _key(identity: EffectIdentity) -> tuple[str, str, str, int]:
    return identity.thread, identity.tool, identity.args_digest, identity.repetition


def _entry(connection: Connection, row: tuple[str, str, str, int, str, str, int, bytes, str | None]) -> EffectEntry:
    thread, tool, args_digest, repetition, step, status, attempts, body, stored = row
    identity = EffectIdentity(thread, tool, Digest(args_digest), repetition)
    result = from_body(body) if stored is None else get_body(Digest(stored), connection)
    return EffectEntry(identity, step, EffectStatus(status), attempts, result)

"""Who works on which thread? The leases in a run's database, for the threads and processes that share it.

A lease is kept and given back by the statement that compares its token, and taken in a transaction about its thread,
as the journal's are: none of them can fall between another's look and its write.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from agent.core.identifier import identifier
from agent.core.lease import Busy, Halt, Holder, Lease, Life, Standing, Superseded, standing, succeeded
from agent.store.connection import Connection, DatabaseLost, transaction
from agent.store.database import Database
from agent.store.hold import Hold
from agent.store.lane import Lane
from agent.store.process import is_gone, myself

_COLUMNS = "thread, token, holder, expires, halt, strays"
_PATIENCE = 5.0
"""Seconds that giving a lease back may take; it runs out by itself if this does not come about."""

_HOLDS: WeakValueDictionary[tuple[object, str, int], Hold] = WeakValueDictionary()
"""What this process holds, by database, thread and token. A hold that nobody has any more is none."""

_TAKING = threading.RLock()
"""Between a lease that is written and its hold, nobody may ask what this process holds."""


class Leases:
    """The leases of one database."""

    def __init__(self, database: Database, seconds: float, now: Callable[[], float] = time.time) -> None:
        """Args: where they are kept; how long a silent holder keeps its lease; the time, since the epoch."""
        self._lane = database.quick
        self.where = where_of(database)
        self._seconds = seconds
        self._now = now

    async def take(self, thread: str) -> Hold | Lease:
        """Hold the thread, or see who does.

        Raises:
            BadIdentifier: no thread can have that id.
        """
        identifier(thread)
        return self._beating(await self._lane.run(partial(self._take, thread)))

    async def release(self, hold: Hold) -> None:
        """Give it back."""
        hold.end()
        with suppress(TimeoutError, DatabaseLost):
            # bounded, because a generator that is collected may close on the very thread that would do this
            async with asyncio.timeout(_PATIENCE):
                await self._lane.run(partial(_release, hold))

    @contextmanager
    def held(self, thread: str) -> Iterator[Hold]:
        """Hold a thread for as long as the context lasts; for a caller without an event loop.

        Raises:
            Busy: somebody else holds it.
            BadIdentifier: no thread can have that id.
        """
        identifier(thread)
        taken = self._beating(self._lane.call(partial(self._take, thread)))
        if isinstance(taken, Lease):
            raise Busy(taken)
        try:
            yield taken
        finally:
            taken.end()
            with suppress(DatabaseLost):  # it runs out by itself
                self._lane.call(partial(_release, taken))

    def holder(self, thread: str) -> Lease | None:
        """Who holds the thread at this moment, if anybody does."""
        identifier(thread)
        found = self._lane.call(partial(_find, thread))
        seen = standing(found, self._life(found), self._now())
        return None if seen in (Standing.FREE, Standing.DEAD) else found

    def ask(self, thread: str, halt: Halt) -> bool:
        """Ask whoever works on the thread, here or elsewhere, to stop. False: nobody does."""
        found = self.holder(thread)
        if found is None or not self._lane.call(partial(_ask, found, halt)):
            return False
        here = _HOLDS.get(self._key(found))
        if here is not None:
            here.nudge()
        return True

    def _beating(self, taken: Hold | Lease) -> Hold | Lease:
        if isinstance(taken, Hold):
            taken.beat_with(partial(_beat, self._lane, self._now, self._seconds), self._seconds)
        return taken

    def _take(self, thread: str, connection: Connection) -> Hold | Lease:
        with _TAKING:
            return self._taken(thread, connection)

    def _taken(self, thread: str, connection: Connection) -> Hold | Lease:
        found = _find(thread, connection)
        if found is not None and standing(found, self._life(found), self._now()) is Standing.HELD:
            return found  # who only looks takes no lock
        with transaction(connection, thread):
            return self._succession(thread, connection)

    def _succession(self, thread: str, connection: Connection) -> Hold | Lease:
        found, now = _find(thread, connection), self._now()
        seen = standing(found, self._life(found), now)
        if found is not None and seen is Standing.HELD:
            return found
        kept = found and found.model_copy(update={"strays": tuple(each for each in found.strays if not is_gone(each))})
        lease = succeeded(kept, seen, myself(), thread, now + self._seconds)
        _write(lease, connection)
        hold = Hold(lease, self.where)
        _HOLDS[self._key(lease)] = hold
        return hold

    def _life(self, found: Lease | None) -> Life:
        if found is None:
            return Life.GONE
        if found.holder == myself():
            with _TAKING:
                here = _HOLDS.get(self._key(found))
                # one that has ended could not say so: the database was away, or is about to be told
                return Life.HOLDING if here is not None and not here.ended else Life.GONE
        return {True: Life.GONE, False: Life.RUNNING, None: Life.UNKNOWN}[is_gone(found.holder)]

    def _key(self, lease: Lease) -> tuple[object, str, int]:
        return self.where, lease.thread, lease.token


def where_of(database: Database) -> object:
    """What tells one database from another within this process."""
    place = database.place
    return place.resolve() if isinstance(place, Path) else place or id(database.quick)


def refuse_superseded(connection: Connection, thread: str, token: int | None) -> None:
    """Go on only under the newest token of a thread. Inside a transaction that writes, it holds to the commit.

    Raises:
        Superseded: another run has taken the thread over.
    """
    query = "SELECT token FROM kintsugi_leases WHERE thread = ? AND token > ?"
    if token is not None and connection.execute(query, (thread, token)).fetchone() is not None:
        raise Superseded(thread)


def _find(thread: str, connection: Connection) -> Lease | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM kintsugi_leases WHERE thread = ?", (thread,)).fetchone()
    if row is None:
        return None
    _, token, holder, expires, halt, strays = row
    return Lease(
        thread=thread,
        token=token,
        holder=Holder.model_validate_json(holder),
        expires=expires,
        halt=Halt(halt),
        strays=tuple(Holder.model_validate(each) for each in json.loads(strays)),
    )


def _write(lease: Lease, connection: Connection) -> None:
    strays = json.dumps([each.model_dump() for each in lease.strays])
    connection.execute(
        f"""INSERT INTO kintsugi_leases ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (thread) DO UPDATE SET token = excluded.token, holder = excluded.holder,
        expires = excluded.expires, halt = excluded.halt, strays = excluded.strays""",
        (lease.thread, lease.token, lease.holder.model_dump_json(), lease.expires, lease.halt.value, strays),
    )


def _beat(lane: Lane, now: Callable[[], float], seconds: float, hold: Hold) -> Future[Halt | None]:
    return lane.submit(partial(_prolong, hold.thread, hold.token, now() + seconds))


def _prolong(thread: str, token: int, expires: float, connection: Connection) -> Halt | None:
    mine = "WHERE thread = ? AND token = ? AND expires > 0"
    connection.execute(f"UPDATE kintsugi_leases SET expires = ? {mine}", (expires, thread, token))
    found = connection.execute(f"SELECT halt FROM kintsugi_leases {mine}", (thread, token)).fetchone()
    return None if found is None else Halt(found[0])


def _release(hold: Hold, connection: Connection) -> None:
    statement = "UPDATE kintsugi_leases SET expires = 0, halt = '' WHERE thread = ? AND token = ?"
    connection.execute(statement, (hold.thread, hold.token))


def _ask(lease: Lease, halt: Halt, connection: Connection) -> bool:
    statement = "UPDATE kintsugi_leases SET halt = ? WHERE thread = ? AND token = ? AND halt <> 'now'"
    return bool(connection.execute(statement, (halt.value, lease.thread, lease.token)).rowcount) or (
        lease.halt is Halt.NOW
    )

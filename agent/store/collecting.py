"""Which bodies can no thread reach any more? They are deleted; and a whole thread is forgotten when somebody says so.

Whatever looks like a digest anywhere in a checkpoint, a pending write, a recorded result, a turn or a letter is
reachable: that is more than is needed, and never less, whatever shape the state has. So running, resumable and
time-travelled threads keep theirs. What a run has put a moment ago and no checkpoint holds yet is kept by its age, and
what was put by a graph whose checkpoints lie elsewhere (a server's, say) is never collected. Bodies in a LangGraph
store are only for who names it, and with it all checkpoints that share it: nothing there says which threads do.
"""

import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore

from agent.core.identifier import identifier
from agent.store.artifacts import bodies_in, delete_from
from agent.store.connection import Connection, transaction
from agent.store.database import Database
from agent.store.packing import packing
from agent.store.serde import known_types, trusting
from agent.store.turns import bodies, drop_orphans

GRACE = 3600.0
"""Seconds for which an unreachable body is kept after a run has put it."""

_DIGEST = re.compile(rb"(?=([0-9a-f]{32}))")


class Collected(NamedTuple):
    """What was deleted, or would be."""

    bodies: int
    size: int
    """Bytes."""


class Forgotten(NamedTuple):
    """What went with a thread, and what stays."""

    checkpoints: int
    effects: int
    """Effects on record when it was forgotten."""
    kept: bool
    """Whether they stay on record, so that no later run under this name does them once more."""


def collect(
    database: Database,
    saver: BaseCheckpointSaver[Any],
    *,
    store: BaseStore | None = None,
    dry: bool = False,
    grace: float = GRACE,
    now: Callable[[], float] = time.time,
) -> Collected:
    """Delete the bodies that nothing reaches.

    Args:
        database: where they lie.
        saver: the checkpoints beside them.
        store: a LangGraph store that holds bodies of these threads and of no others; its bodies are collected too.
            It cannot look and delete in one act: call this while no run writes there.
        dry: only count.
        grace: seconds for which a body is kept after it was put.
        now: the time, since the epoch.
    """
    before = now() - grace
    if not dry:
        # a thread whose checkpoints somebody deleted is never resumed
        threads = {str(each.config["configurable"]["thread_id"]) for each in _read(saver).list(None)}
        database.quick.call(partial(drop_orphans, threads, before))
    found = dict(database.quick.call(partial(_old, before)))
    apart = bodies_in(store, before) if store is not None else {}
    reachable = _reachable(database, saver, {*found, *apart})
    unreachable = {key: size for key, size in found.items() if key not in reachable}
    unread = {key: size for key, size in apart.items() if key not in reachable}
    if not dry:
        deleted = database.quick.call(partial(_delete, before, tuple(unreachable)))
        unreachable = {key: unreachable[key] for key in deleted}
        unread = {key: size for key, size in unread.items() if store and delete_from(store, key, before)}
    sizes = (*unreachable.values(), *unread.values())
    return Collected(len(sizes), sum(sizes))


def forget(
    database: Database, saver: BaseCheckpointSaver[Any], thread: str, *, effects: bool = False, dry: bool = False
) -> Forgotten:
    """Delete a thread: checkpoints, its line in the index, its letters. Nobody may be working on it.

    Args:
        database: where it is kept.
        saver: its checkpoints.
        thread: which.
        effects: also what it did to the world. A later run under this name would then do all of it once more.
        dry: only count.

    Raises:
        BadIdentifier: no thread can have that id.
    """
    identifier(thread)
    checkpoints = sum(1 for _ in _read(saver).list({"configurable": {"thread_id": thread}}))
    count = database.durable.call(partial(_effects, thread))
    if not dry:
        saver.delete_thread(thread)
        database.quick.call(partial(_erase, thread, ("kintsugi_runs", "kintsugi_inbox", "kintsugi_turns")))
        if effects:
            database.durable.call(partial(_erase, thread, ("kintsugi_effects",)))
    return Forgotten(checkpoints, count, kept=not effects)


def _read(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """The checkpoints, with no graph around them whose schema would say in LangGraph's strict mode what to expect."""
    return trusting(packing(saver)).with_allowlist(list(known_types()))


def _reachable(database: Database, saver: BaseCheckpointSaver[Any], wanted: Iterable[str]) -> set[str]:
    """Those of the digests that something speaks of."""
    spelling, digests, found = JsonPlusSerializer(), {each.encode() for each in wanted}, set[bytes]()
    for each in _read(saver).list(None):
        for part in (each.checkpoint, each.metadata, each.pending_writes):
            found |= digests.intersection(_DIGEST.findall(spelling.dumps_typed(part)[1]))
    for body in (*database.quick.call(_letters), *database.quick.call(bodies), *database.durable.call(_results)):
        found |= digests.intersection(_DIGEST.findall(body))
    return {each.decode() for each in found}


def _old(before: float, connection: Connection) -> list[tuple[str, int]]:
    query = "SELECT digest, length(body) FROM kintsugi_artifacts WHERE touched < ?"
    return [(str(key), int(size)) for key, size in connection.execute(query, (before,))]


def _delete(before: float, keys: tuple[str, ...], connection: Connection) -> list[str]:
    """Delete what nobody has put again since it was looked for."""
    statement = "DELETE FROM kintsugi_artifacts WHERE digest = ? AND touched < ?"
    return [each for each in keys if connection.execute(statement, (each, before)).rowcount]


def _letters(connection: Connection) -> list[bytes]:
    return [
        str(goal).encode("utf-8", "surrogatepass") for (goal,) in connection.execute("SELECT goal FROM kintsugi_inbox")
    ]


def _results(connection: Connection) -> list[bytes]:
    query = "SELECT result, stored FROM kintsugi_effects WHERE result IS NOT NULL"
    return [str(stored).encode() if stored else bytes(result) for result, stored in connection.execute(query)]


def _effects(thread: str, connection: Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM kintsugi_effects WHERE thread = ?", (thread,)).fetchone()
    return int(count)


def _erase(thread: str, tables: tuple[str, ...], connection: Connection) -> None:
    with transaction(connection, thread):
        for table in tables:
            connection.execute(f"DELETE FROM {table} WHERE thread = ?", (thread,))

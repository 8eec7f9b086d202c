"""Where are the bodies of artifacts too large for state? Stored once, under the digest of their content.

What is read is checked against its digest: a body that changed on disk is never taken for the verified work.
"""

import base64
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Protocol

from langgraph.store.base import BaseStore

from agent.core.value import Digest, JsonValue, digest
from agent.store.body import from_body, to_body
from agent.store.connection import Connection
from agent.store.database import Database, memory_database

FOR_EVER = 1e18
"""When a body was put whose checkpoints lie elsewhere: nothing here knows who reads it, so that it is never too old."""

_LATELY = 600.0
"""Seconds within which a body that is put again need not be written; far less than a collection waits."""

_PAGE = 100
"""Items that are listed at once."""

NAMESPACE = ("kintsugi", "artifacts")
"""Where artifacts lie in a LangGraph store."""


class MissingArtifact(LookupError):
    """No body is stored under this digest."""

    def __init__(self, key: Digest) -> None:
        super().__init__(
            f"artifact {key} is not in the store: open the store this run was made with, "
            "or mark the artifact invalid to have it made again"
        )


class DamagedArtifact(ValueError):
    """The stored body is not what was verified."""

    def __init__(self, key: Digest) -> None:
        super().__init__(
            f"artifact {key} changed in the store after it was verified: restore the store from a backup, "
            "or mark the artifact invalid to have it made again"
        )


class ArtifactStore(Protocol):
    """Keeps values under their digests."""

    async def put(self, value: JsonValue) -> Digest:
        """Keep a value; one that is there already is not written again."""
        ...

    async def get(self, key: Digest) -> JsonValue:
        """Read a value back, as a copy of its own.

        Raises:
            MissingArtifact: there is none.
            DamagedArtifact: what is there is not what was put.
        """
        ...


class DatabaseArtifacts:
    """Artifacts in the run's database, beside the checkpoints that refer to them."""

    def __init__(self, database: Database, beside: bool = True, now: Callable[[], float] = time.time) -> None:
        """Args: where; whether the checkpoints that refer to them lie there as well; the time, since the epoch."""
        self._lane = database.quick
        self._beside = beside
        self._now = now

    async def put(self, value: JsonValue) -> Digest:
        """Keep a value."""
        return await self._lane.run(partial(put_body, value, self._now() if self._beside else FOR_EVER))

    async def get(self, key: Digest) -> JsonValue:
        """Read a value back."""
        return await self._lane.run(partial(get_body, key))


class MemoryArtifacts(DatabaseArtifacts):
    """Artifacts that end with the process; for graphs whose checkpoints do so too."""

    def __init__(self) -> None:
        super().__init__(memory_database())


class StoreArtifacts:
    """Artifacts in a LangGraph store, such as the one a server gives to its graphs."""

    def __init__(self, store: BaseStore, now: Callable[[], float] = time.time) -> None:
        """Args: where; the time, since the epoch."""
        self._store = store
        self._now = now

    async def put(self, value: JsonValue) -> Digest:
        """Keep a value."""
        key, packed = digest(value), _packed(to_body(value))
        item = await self._store.aget(NAMESPACE, key)
        if item is None or item.value != packed or item.updated_at.timestamp() < self._now() - _LATELY:
            await self._store.aput(NAMESPACE, key, packed, index=False)
        return key

    async def get(self, key: Digest) -> JsonValue:
        """Read a value back."""
        item = await self._store.aget(NAMESPACE, key)
        if item is None:
            raise MissingArtifact(key)
        return _verified(key, _unpacked(item.value))


def bodies_in(store: BaseStore, before: float) -> dict[str, int]:
    """Digests and sizes of the bodies of a store that nobody has put since a time."""
    found: dict[str, int] = {}
    for offset in count(0, _PAGE):
        items = store.search(NAMESPACE, limit=_PAGE, offset=offset)
        mine = (each for each in items if each.namespace == NAMESPACE and each.updated_at.timestamp() < before)
        found |= {each.key: len(_unpacked(each.value)) for each in mine}
        if len(items) < _PAGE:
            break
    return found


def delete_from(store: BaseStore, key: str, before: float) -> bool:
    """Delete a body that nobody has put since; whether it was."""
    item = store.get(NAMESPACE, key)
    if item is None or item.updated_at.timestamp() >= before:
        return False
    store.delete(NAMESPACE, key)
    return True


def put_body(value: JsonValue, at: float, connection: Connection) -> Digest:
    """Keep a value, put at this time since the epoch; within the caller's transaction where there is one."""
    key = digest(value)
    # Writes nothing when the body is there and was put lately, and heals it when it is damaged.
    connection.execute(
        """INSERT INTO kintsugi_artifacts (digest, body, touched) VALUES (?, ?, ?)
        ON CONFLICT (digest) DO UPDATE SET body = excluded.body, touched = excluded.touched
        WHERE kintsugi_artifacts.body <> excluded.body OR kintsugi_artifacts.touched < ?""",
        (key, to_body(value), at, at - _LATELY),
    )
    return key


def get_body(key: Digest, connection: Connection) -> JsonValue:
    """Read a value back.

    Raises:
        MissingArtifact: there is none.
        DamagedArtifact: what is there is not what was put.
    """
    row = connection.execute("SELECT body FROM kintsugi_artifacts WHERE digest = ?", (key,)).fetchone()
    if row is None:
        raise MissingArtifact(key)
    return _verified(key, row[0])


def _verified(key: Digest, body: bytes) -> JsonValue:
    try:
        value = from_body(body)
    except ValueError as error:
        raise DamagedArtifact(key) from error
    if digest(value) != key:
        raise DamagedArtifact(key)
    return value


def _packed(body: bytes) -> dict[str, str]:
    # Readable in the store where it can be; stores on Postgres and JSON refuse lone surrogates.
    try:
        return {"json": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _unpacked(packed: dict[str, str]) -> bytes:
    if "json" in packed:
        return packed["json"].encode("utf-8", "surrogatepass")
    return base64.b64decode(packed.get("base64", ""))

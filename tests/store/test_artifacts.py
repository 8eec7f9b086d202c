import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from agent.core.value import Digest, JsonValue, canonical, digest
from agent.store.artifacts import (
    NAMESPACE,
    ArtifactStore,
    DamagedArtifact,
    DatabaseArtifacts,
    MemoryArtifacts,
    MissingArtifact,
    StoreArtifacts,
)
from agent.store.body import from_body, to_body
from agent.store.connection import Connection
from agent.store.database import Database, Place, open_database
from agent.store.postgres import Postgres

# Every string Python can hold, lone surrogates and NUL among them.
TEXTS = st.text(st.characters(exclude_categories=()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)

NASTY: dict[str, JsonValue] = {
    "NUL": "a\0b",
    "lone surrogate": "\ud800",
    "two surrogates that are no pair": "\ud83d\ude00",
    "huge int": 10**4000,
    "not a number": [float("nan"), float("inf"), float("-inf"), -0.0],
    "keys": {"": 1, "\udfff": {"\0": []}},
    "null": None,
    "large": "x" * 3_000_000,
}


@pytest.fixture(params=["sqlite", "postgres", "memory", "langgraph"])
def artifacts(request: pytest.FixtureRequest, path: Path) -> Iterator[ArtifactStore]:
    match request.param:
        case "memory":
            yield MemoryArtifacts()
        case "langgraph":
            yield StoreArtifacts(InMemoryStore())
        case _:
            with open_database(path if request.param == "sqlite" else request.getfixturevalue("postgres")) as database:
                yield DatabaseArtifacts(database)


@pytest.mark.parametrize("value", NASTY.values(), ids=NASTY.keys())
async def test_a_nasty_value_comes_back_as_it_was(artifacts: ArtifactStore, value: JsonValue) -> None:
    key = await artifacts.put(value)
    assert key == digest(value)
    assert canonical(await artifacts.get(key)) == canonical(value)


@given(VALUES)
def test_any_json_value_has_a_body_that_reads_back_as_itself(value: JsonValue) -> None:
    assert canonical(from_body(to_body(value))) == canonical(value)


@given(st.lists(VALUES, max_size=5))
def test_any_json_values_come_back_from_every_store(values: list[JsonValue]) -> None:
    async def round_trip(store: ArtifactStore) -> list[JsonValue]:
        keys = [await store.put(value) for value in values]
        return [await store.get(key) for key in keys]

    for store in (MEMORY, LANGGRAPH):
        assert canonical(asyncio.run(round_trip(store))) == canonical(values)


MEMORY = MemoryArtifacts()
LANGGRAPH = StoreArtifacts(InMemoryStore())


async def test_what_is_read_is_the_callers_own_copy(artifacts: ArtifactStore) -> None:
    key = await artifacts.put([1])
    first = await artifacts.get(key)
    assert isinstance(first, list)
    first.append(2)
    assert await artifacts.get(key) == [1]


async def test_an_artifact_that_is_not_there_is_reported_with_what_to_do(artifacts: ArtifactStore) -> None:
    with pytest.raises(MissingArtifact, match="open the store this run was made with"):
        await artifacts.get(Digest("0" * 32))


async def test_artifacts_survive_their_process(place: Place) -> None:
    with open_database(place) as database:
        key = await DatabaseArtifacts(database).put({"rows": 3})
    with open_database(place) as database:
        assert await DatabaseArtifacts(database).get(key) == {"rows": 3}


async def test_equal_values_are_stored_and_written_once(database: Database) -> None:
    def changes(connection: Connection) -> object:
        rows = "SELECT xmin::text, ctid::text FROM kintsugi_artifacts"
        sqlite = not isinstance(database.place, Postgres)
        return connection.execute("SELECT total_changes()" if sqlite else rows).fetchall()

    artifacts = DatabaseArtifacts(database)
    keys = [await artifacts.put({"a": 1, "b": 2})]
    before = await database.quick.run(changes)
    keys.append(await artifacts.put({"b": 2, "a": 1}))
    assert keys[0] == keys[1]
    assert await database.quick.run(changes) == before


@pytest.mark.parametrize("body", [b"[2]", b"[1", b"\xff", b"", b"[1 ]  "], ids=repr)
async def test_a_body_changed_on_disk_is_never_taken_for_the_work(database: Database, body: bytes) -> None:
    artifacts = DatabaseArtifacts(database)
    key = await artifacts.put([1, "\ud800"])
    statement = "UPDATE kintsugi_artifacts SET body = ?"
    await database.quick.run(lambda connection: connection.execute(statement, (body,)))
    with pytest.raises(DamagedArtifact, match="restore the store"):
        await artifacts.get(key)
    assert await artifacts.put([1, "\ud800"]) == key
    assert await artifacts.get(key) == [1, "\ud800"]


@pytest.mark.parametrize("packed", [{"json": "[2]"}, {"base64": "!"}, {}], ids=repr)
async def test_an_item_changed_in_a_store_is_never_taken_for_the_work(packed: dict[str, str]) -> None:
    store = InMemoryStore()
    key = await StoreArtifacts(store).put([1])
    await store.aput(NAMESPACE, key, packed)
    with pytest.raises(DamagedArtifact):
        await StoreArtifacts(store).get(key)


@pytest.mark.parametrize("value", NASTY.values(), ids=NASTY.keys())
async def test_items_in_a_store_are_plain_json_without_nul_or_surrogates(value: JsonValue) -> None:
    store = InMemoryStore()
    item = await store.aget(NAMESPACE, await StoreArtifacts(store).put(value))
    assert item is not None
    spelled = json.dumps(item.value, ensure_ascii=False, allow_nan=False).encode()
    assert b"\0" not in spelled


async def test_a_store_keeps_readable_json_readable() -> None:
    store = InMemoryStore()
    plain = await store.aget(NAMESPACE, await StoreArtifacts(store).put({"name": "é"}))
    other = await store.aget(NAMESPACE, await StoreArtifacts(store).put("\ud800"))
    assert plain is not None
    assert other is not None
    assert plain.value == {"json": '{"name":"é"}'}
    assert base64.b64decode(other.value["base64"]) == b'"\xed\xa0\x80"'

"""What no thread can reach is deleted, and nothing else; a forgotten thread still does nothing twice."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from agent.app import assemble, build_graph
from agent.store.artifacts import NAMESPACE, ArtifactStore, DatabaseArtifacts, StoreArtifacts, bodies_in
from agent.store.checkpoints import open_saver
from agent.store.collecting import Collected, collect, forget
from agent.store.database import Database, Place, open_database
from tests.builders import Calls, calm, goal, run, thread, values

LATER: dict[str, Any] = {"now": lambda: 1e12}


def big(calls: Calls, *letters: str) -> list[Any]:
    """Reads that give another large body each time, and a write that gives one as well."""
    bodies = list(letters)
    return [
        calls.tool("a", "", lambda: bodies.pop(0) * 9000 if len(bodies) > 1 else bodies[0] * 9000),
        calls.tool("w", "a", lambda a: {"of": a}, effect="mutating"),
    ]


def stored(database: Database) -> int:
    return int(database.quick.call(lambda c: c.execute("SELECT count(*) FROM kintsugi_artifacts").fetchone())[0])


def test_bodies_that_any_checkpoint_speaks_of_stay_and_those_of_a_forgotten_thread_go(place: Place) -> None:
    calls = Calls()
    with open_database(place) as database, closing((saver := open_saver(place)).conn):
        graph = build_graph(big(calls, "x", "y", "z"), settings=calm(), checkpointer=saver)
        run(graph, goal("w"), "one")
        run(graph, goal("w", again="a"), "one")
        run(graph, goal("w"), "two")
        assert stored(database) == 6
        assert collect(database, saver, **LATER) == Collected(0, 0)
        assert read_back(graph, DatabaseArtifacts(database)) == 4
        found = forget(database, saver, "one")
        assert (found.effects, found.kept, found.checkpoints > 10) == (2, True, True)
        assert graph.get_state(thread("one")).values == {}
        would = collect(database, saver, dry=True, **LATER)
        assert (would.bodies, would.size > 15_000, stored(database)) == (2, True, 6)  # what its writes gave stays
        assert collect(database, saver, **LATER) == would
        assert (stored(database), values(run(graph, goal("w"), "two"))["a"]) == (4, None)


def test_bodies_in_a_langgraph_store_go_when_it_is_named_and_nothing_reaches_them(tmp_path: Path) -> None:
    store, path = InMemoryStore(), tmp_path / "k.db"
    store.put(("theirs",), "0" * 32, {"json": "1"})
    with open_database(path) as database, closing((saver := open_saver(path)).conn):
        graph = build_graph(big(Calls(), "x"), settings=calm(), checkpointer=saver, store=store)
        bulky = build_graph(big(Calls(), "y"), settings=calm(), checkpointer=saver, store=store)
        run(graph, goal("a"), "one")
        run(bulky, goal("a"), "two")
        assert collect(database, saver, store=store, **LATER) == Collected(0, 0)
        forget(database, saver, "two")
        assert collect(database, saver, **LATER) == Collected(0, 0)
        assert collect(database, saver, store=store) == Collected(0, 0)  # put a moment ago
        assert collect(database, saver, store=store, dry=True, **LATER).bodies == 1
        assert collect(database, saver, store=store, **LATER) == Collected(1, 9002)
        assert (len(store.search(NAMESPACE)), len(store.search(("theirs",)))) == (1, 1)
        assert read_back(graph, StoreArtifacts(store)) == 1


async def test_a_store_that_holds_many_bodies_is_read_to_its_end() -> None:
    store = InMemoryStore()
    artifacts = StoreArtifacts(store)
    for number in range(230):
        await artifacts.put(number)
    assert len(bodies_in(store, 1e12)) == 230
    assert bodies_in(store, 0.0) == {}


def test_what_was_put_a_moment_ago_is_kept_though_no_checkpoint_speaks_of_it_yet(place: Place) -> None:
    clock = [1000.0]
    with open_database(place) as database, closing((saver := open_saver(place)).conn):
        artifacts = DatabaseArtifacts(database, now=lambda: clock[0])
        asyncio.run(artifacts.put("x" * 9000))
        at: Callable[[], float] = lambda: clock[0]  # noqa: E731
        clock[0] += 3000
        assert collect(database, saver, now=at).bodies == 0
        asyncio.run(artifacts.put("x" * 9000))  # the same body again, by another run
        clock[0] += 3000
        assert collect(database, saver, now=at).bodies == 0
        clock[0] += 3000
        assert collect(database, saver, now=at) == Collected(1, 9002)


def test_what_a_graph_has_put_whose_checkpoints_lie_elsewhere_is_never_collected(place: Place) -> None:
    with open_database(place) as database, closing((saver := open_saver(place)).conn):
        run(assemble(big(Calls(), "x"), database, calm()), goal("a"))
        assert stored(database) == 1
        assert collect(database, saver, **LATER).bodies == 0


def read_back(graph: Any, artifacts: ArtifactStore) -> int:
    """How many bodies any checkpoint of thread one has; each can be read."""
    worlds = [each.values["world"] for each in graph.get_state_history(thread("one")) if "world" in each.values]
    digests = {each.digest for world in worlds for each in world.artifacts.values() if each.stored}
    return len([asyncio.run(artifacts.get(each)) for each in digests])


@pytest.mark.parametrize("effects", [False, True], ids=["effects kept", "effects forgotten"])
def test_a_forgotten_thread_does_its_writes_again_only_if_they_were_forgotten_too(place: Place, effects: bool) -> None:
    calls = Calls()
    with open_database(place) as database, closing((saver := open_saver(place)).conn):
        graph = build_graph(big(calls, "x"), settings=calm(), checkpointer=saver)
        run(graph, goal("w"))
        assert forget(database, saver, "t", effects=effects, dry=True).effects == 1
        assert graph.get_state(thread()).values
        assert forget(database, saver, "t", effects=effects).kept is not effects
        assert collect(database, saver, **LATER).bodies == 1 + effects
        assert run(graph, goal("w"))["outcome"].status == "satisfied"
        assert (calls["make_a"], calls["make_w"]) == (2, 1 + effects)

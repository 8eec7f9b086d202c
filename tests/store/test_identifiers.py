"""A name that nothing can be kept under is refused in a sentence wherever it comes in, and nothing is written."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.app import assemble
from agent.core.identifier import LONGEST, BadIdentifier, identifier
from agent.store.checkpoints import async_saver, open_saver
from agent.store.collecting import forget
from agent.store.database import Database, Place
from agent.store.inbox import GoalInbox
from agent.store.leases import Leases
from agent.store.runs import RunIndex
from graphs.loop import LoopGraph
from tests.builders import Calls, calm, goal, run, thread

UNFIT = {
    "NUL": ("a\0b", r"'a\\x00b' holds a control character at position 2"),
    "an escape": ("\x1b[31m", r"'\\x1b\[31m' holds a control character at position 1"),
    "a lone surrogate": ("a\ud800", r"'a\\ud800' holds a lone surrogate at position 2"),
    "nothing": ("", "is empty"),
    "too much": ("x" * (LONGEST + 1), r"has 256 characters \('xxxxxxxxxxxxxxxxxxxx'...\)"),
}

unfit = pytest.mark.parametrize(("name", "says"), UNFIT.values(), ids=UNFIT)


@unfit
def test_it_is_said_what_is_wrong_and_what_is_needed(name: str, says: str) -> None:
    with pytest.raises(BadIdentifier, match=rf"^the id of a thread {says}; it needs 1 to 255 characters"):
        identifier(name)


@pytest.mark.parametrize("name", ["x" * LONGEST, "ä b/c", "日本", 7, "\U0001f3fa" * LONGEST])
def test_any_other_name_is_as_good_as_another(place: Place, name: object) -> None:
    config: Any = {"configurable": {"thread_id": name}}
    with closing((saver := open_saver(place)).conn):
        graph = build_graph([Calls().tool("a", effect="mutating")], settings=calm(), checkpointer=saver)
        assert graph.invoke({"goal": goal("a")}, config)["outcome"].status == "satisfied"
        assert graph.get_state(config).values["outcome"].status == "satisfied"


@pytest.fixture
def graph(database: Database) -> Iterator[LoopGraph]:
    with closing((saver := open_saver(database)).conn):
        yield assemble([Calls().tool("a", effect="mutating")], database, calm(), checkpointer=saver)


WAYS: dict[str, Callable[[LoopGraph, str], object]] = {
    "invoke": lambda graph, name: run(graph, goal("a"), name),
    "resume": lambda graph, name: graph.invoke(Command(resume={"choice": "abort"}), thread(name)),
    "get_state": lambda graph, name: graph.get_state(thread(name)),
    "get_state_history": lambda graph, name: list(graph.get_state_history(thread(name))),
    "update_state": lambda graph, name: graph.update_state(thread(name), {"facts": {"x": 1}}),
    "change_goal": lambda graph, name: graph.change_goal(name, goal("a")),
    "drain": lambda graph, name: graph.drain(name),
    "a checkpoint": lambda graph, name: graph.get_state(
        {"configurable": {"thread_id": "t", "checkpoint_id": name, "checkpoint_ns": ""}}
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_graph_refuses_it_and_writes_nothing(
    graph: LoopGraph, database: Database, way: Callable[[LoopGraph, str], object]
) -> None:
    before = rows(database)
    for name, says in UNFIT.values():
        with pytest.raises(BadIdentifier, match=says):
            way(graph, name)
    assert rows(database) == before


async def test_so_does_a_graph_that_is_called_asynchronously_or_without_a_saver(database: Database) -> None:
    before = rows(database)
    async with async_saver(database) as saver:
        graph = assemble([Calls().tool("a")], database, calm(), checkpointer=saver)
        bare = build_graph([Calls().tool("a")], settings=calm())
        memory = build_graph([Calls().tool("a")], settings=calm(), checkpointer=InMemorySaver())
        for name, says in UNFIT.values():
            for each in (graph, bare, memory):
                with pytest.raises(BadIdentifier, match=says):
                    await each.ainvoke({"goal": goal("a")}, thread(name))
            with pytest.raises(BadIdentifier, match=says):
                await graph.aget_state(thread(name))
            with pytest.raises(BadIdentifier, match=says):
                await graph.aupdate_state(thread(name), {"facts": {}})
            with pytest.raises(BadIdentifier, match=says):
                [each async for each in graph.aget_state_history(thread(name))]
    assert rows(database) == before


@unfit
def test_so_do_the_parts_beside_a_graph(database: Database, name: str, says: str) -> None:
    before = rows(database)
    with closing((saver := open_saver(database)).conn):
        for way in (
            lambda: RunIndex(database).started(name, goal="x", at=1.0),
            lambda: GoalInbox(database).put(name, goal("a")),
            lambda: Leases(database, 30.0).held(name).__enter__(),
            lambda: forget(database, saver, name, effects=True),
        ):
            with pytest.raises(BadIdentifier, match=says):
                way()
    assert rows(database) == before


@pytest.mark.parametrize("name", ["a\0b", "a\ud800", "x" * 256])
def test_a_tool_of_such_a_name_is_refused_when_the_graph_is_built(name: str) -> None:
    tool = Calls().tool("a").model_copy(update={"name": name})
    with pytest.raises(BadIdentifier, match="the name of a tool"):
        build_graph([tool], settings=calm())


def rows(database: Database) -> list[int]:
    tables = ("checkpoints", "kintsugi_leases", "kintsugi_effects", "kintsugi_runs", "kintsugi_inbox")
    query = " UNION ALL ".join(f"SELECT count(*) FROM {each}" for each in tables)
    return [each for (each,) in database.quick.call(lambda lane: lane.execute(query).fetchall())]

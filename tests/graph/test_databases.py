"""What a run promises, on SQLite and on Postgres: it recovers, asks, changes its goal and travels in time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.types import Command

from agent import build_graph
from agent.core.effect import EffectStatus
from agent.core.lease import Superseded
from agent.store.checkpoints import async_saver, open_saver
from agent.store.database import Place, open_database
from agent.store.journal import DatabaseJournal
from agent.store.postgres import Postgres
from graphs.loop import LoopGraph
from tests.builders import Calls, always, arun, calm, goal, once, questions, run, statuses, thread, values
from tests.test_boundary import http

Build = Callable[..., LoopGraph]

NASTY = "NUL \0 and a lone \ud800"


@pytest.fixture
def build(place: Place) -> Iterator[Build]:
    """Build a graph as another process would: over a saver of its own."""
    with ExitStack() as opened:

        def built(tools: list[Any], **settings: Any) -> LoopGraph:
            saver = open_saver(place)
            opened.enter_context(closing(saver.conn))
            return build_graph(tools, settings=calm(**settings), checkpointer=saver)

        yield built


def effects(place: Place) -> list[tuple[str, EffectStatus]]:
    with open_database(place) as database:
        entries = asyncio.run(DatabaseJournal(database).entries("t"))
    return [(each.identity.tool, each.status) for each in entries]


def test_a_run_recovers_and_another_process_finds_its_work_and_its_effects(build: Build, place: Place) -> None:
    calls = Calls()
    tools = [
        calls.tool("a", "", once(http(503, {"Retry-After": "0"}))),
        calls.tool("b", "a", effect="mutating"),
        calls.tool("big", "b", lambda b: "x" * 9000),
        calls.tool("n", "big", lambda big: len(big)),
    ]
    assert values(run(build(tools), goal("n")))["n"] == 9000
    assert values(run(build(tools), goal("n")))["n"] == 9000
    assert calls == {"make_a": 2, "make_b": 1, "make_big": 1, "make_n": 1}
    assert effects(place) == [("make_b", EffectStatus.DONE)]


def test_a_question_is_answered_in_another_process(build: Build, place: Place) -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(ConnectionResetError("hung up")), effect="mutating", idempotent=False)]
    assert questions(run(build(tools), goal("x")))
    end = build(tools).invoke(Command(resume={"choice": "answer", "value": 7}), thread())
    assert values(end)["x"] == 7
    assert calls == {"make_x": 1}


def test_another_goal_keeps_what_holds(build: Build) -> None:
    calls = Calls()
    tools = [calls.tool("a", "", effect="mutating"), calls.tool("b", "a"), calls.tool("c", "a")]
    run(build(tools), goal("b"))
    end = run(build(tools), goal("b c"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_b": 1, "make_c": 1}


def test_a_fork_from_an_earlier_state_repeats_no_write(build: Build) -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a", effect="mutating"), calls.tool("c", "b")]
    run(build(tools), goal("c"))
    graph = build(tools)
    early = next(each for each in reversed(list(graph.get_state_history(thread()))) if each.next == ("planner",))
    forked: Any = graph.invoke(None, early.config)
    assert forked["outcome"].status == "satisfied"
    assert calls["make_b"] == 1
    assert statuses(forked["plan"]) == {"a": "done", "b": "done", "c": "done"}


async def test_a_run_through_ainvoke_asks_goes_on_and_is_read_by_both_savers(build: Build, place: Place) -> None:
    calls = Calls()
    tools = [calls.tool("a", "", effect="mutating"), calls.tool("x", "a", always(RuntimeError("strange")))]
    async with async_saver(place) as saver:
        graph = build_graph(tools, settings=calm(), checkpointer=saver)
        assert questions(await arun(graph, goal("x")))
        end = await graph.ainvoke(Command(resume={"choice": "answer", "value": 7}), thread())
        assert values(end)["x"] == 7
    assert (await asyncio.to_thread(build(tools).get_state, thread())).values["outcome"].status == "satisfied"
    assert calls["make_a"] == 1


def test_no_text_that_a_run_meets_is_too_strange_to_store(build: Build, place: Place) -> None:
    tools = [
        Calls().tool("a", "", lambda: {NASTY: [NASTY]}, effect="mutating"),
        Calls().tool("x", "a", always(RuntimeError(NASTY))),
    ]
    stated = {"goal": goal("x", text=NASTY, given={NASTY: NASTY}), "facts": {"f": NASTY}}
    end = run(build(tools), stated)
    assert questions(end)
    end = build(tools).invoke(Command(resume={"choice": "answer", "value": "NUL \0"}), thread())
    assert end["outcome"].status == "satisfied"
    stored = build(tools).get_state(thread()).values
    assert stored["goal"] == end["goal"]
    assert stored["outcome"] == end["outcome"]
    assert effects(place) == [("make_a", EffectStatus.DONE)]


def usurped(place: Place) -> int:
    """Take the thread over, as another process does whose look shows a holder that is silent for too long."""
    with open_database(place) as database:
        database.quick.call(lambda each: each.execute("UPDATE kintsugi_leases SET token = token + 1"))
    return checkpoints(place)


def checkpoints(place: Place) -> int:
    with open_database(place) as database:
        query = "SELECT count(*) FROM checkpoints"
        return int(database.quick.call(lambda each: each.execute(query).fetchone())[0])


def test_a_run_that_has_lost_its_thread_writes_no_checkpoint(build: Build, place: Place) -> None:
    seen: list[int] = []
    tools = [Calls().tool("x", "", lambda: seen.append(usurped(place)))]
    with pytest.raises(Superseded):
        run(build(tools), goal("x"))
    assert [checkpoints(place)] == seen


async def test_a_run_through_ainvoke_that_has_lost_its_thread_writes_none_either(place: Place) -> None:
    seen: list[int] = []
    tools = [Calls().tool("x", "", lambda: seen.append(usurped(place)))]
    async with async_saver(place) as saver:
        with pytest.raises(Superseded):
            await arun(build_graph(tools, settings=calm(), checkpointer=saver), goal("x"))
        assert [await asyncio.to_thread(checkpoints, place)] == seen


def test_a_callers_own_postgres_saver_gets_journal_and_artifacts_beside_it(postgres: Postgres) -> None:
    calls = Calls()
    tools = [calls.tool("a", "", effect="mutating"), calls.tool("big", "a", lambda a: "x" * 9000)]
    with PostgresSaver.from_conn_string(postgres.url) as saver:
        graph = build_graph(tools, settings=calm(), checkpointer=saver)
        end = run(graph, goal("big"))
    assert end["world"].artifacts["big"].stored
    assert effects(postgres) == [("make_a", EffectStatus.DONE)]
    with open_database(postgres) as database:
        count = "SELECT count(*) FROM kintsugi_artifacts"
        assert database.quick.call(lambda each: each.execute(count).fetchone()) == (1,)


async def test_a_callers_own_async_postgres_saver_does_so_too(postgres: Postgres) -> None:
    async with AsyncPostgresSaver.from_conn_string(postgres.url) as saver:
        graph = build_graph([Calls().tool("a", "", effect="mutating")], settings=calm(), checkpointer=saver)
        assert (await arun(graph, goal("a")))["outcome"].status == "satisfied"
    assert await asyncio.to_thread(effects, postgres) == [("make_a", EffectStatus.DONE)]

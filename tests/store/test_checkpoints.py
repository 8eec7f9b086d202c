import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import aiosqlite
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.core.effect import EffectIdentity, Open
from agent.store.checkpoints import async_saver, backing_file, open_saver
from agent.store.database import Database, memory_database, open_database
from agent.store.journal import SqliteJournal

THREAD: Any = {"configurable": {"thread_id": "42"}}


class State(TypedDict):
    count: int


def counting(saver: Any) -> CompiledStateGraph[State]:
    graph = StateGraph(State)
    graph.add_node("count", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "count")
    return graph.compile(checkpointer=saver)


def test_checkpoints_share_the_file_and_survive_it_being_closed(database: Database, path: Path) -> None:
    counting(open_saver(database)).invoke({"count": 1}, THREAD, durability="sync")
    database.close()
    with open_database(path) as again:
        assert counting(open_saver(again)).get_state(THREAD).values == {"count": 2}
        tables = again.quick.call(lambda each: each.execute("SELECT name FROM sqlite_master").fetchall())
    assert {("checkpoints",), ("writes",), ("kintsugi_effects",)} <= set(tables)


async def test_the_async_saver_reads_what_the_sync_one_wrote(database: Database) -> None:
    counting(open_saver(database)).invoke({"count": 1}, THREAD, durability="sync")
    async with async_saver(database) as saver:
        graph = counting(saver)
        assert (await graph.aget_state(THREAD)).values == {"count": 2}
        assert await graph.ainvoke({"count": 5}, THREAD, durability="sync") == {"count": 6}


async def test_savers_survive_the_death_of_the_process_without_an_fsync_each(database: Database) -> None:
    query = "PRAGMA synchronous"
    assert open_saver(database).conn.execute(query).fetchone() == (1,)
    async with async_saver(database) as saver, saver.conn.execute(query) as cursor:
        assert tuple(await cursor.fetchone() or ()) == (1,)


def test_a_saver_may_be_opened_by_path_or_in_memory(path: Path) -> None:
    for place in (path, memory_database()):
        assert counting(open_saver(place)).invoke({"count": 1}, THREAD) == {"count": 2}


def test_our_own_savers_name_their_file(database: Database, path: Path) -> None:
    assert backing_file(open_saver(database)) == path


async def test_our_own_async_savers_name_their_file(database: Database, path: Path) -> None:
    async with async_saver(database) as saver:
        assert backing_file(saver) == path


def test_a_callers_saver_names_its_file_however_it_was_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteSaver.from_conn_string("mine.db") as saver:
        assert backing_file(saver) == tmp_path / "mine.db"
    with closing(sqlite3.connect(f"{(tmp_path / 'a b.db').as_uri()}?cache=private", uri=True)) as connection:
        assert backing_file(SqliteSaver(connection)) == tmp_path / "a b.db"


async def test_a_callers_async_saver_names_its_file_connected_or_not(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "mine.db")) as saver:
        assert backing_file(saver) == tmp_path / "mine.db"
    connection = aiosqlite.connect((tmp_path / "a b.db").as_uri() + "?mode=rwc", uri=True)
    assert backing_file(AsyncSqliteSaver(connection)) == tmp_path / "a b.db"


async def test_savers_in_memory_and_of_other_kinds_have_no_file() -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        assert backing_file(saver) is None
    async with AsyncSqliteSaver.from_conn_string(":memory:") as other:
        assert backing_file(other) is None
    assert [backing_file(each) for each in (InMemorySaver(), None, True, False)] == [None] * 4


async def test_the_journal_joins_the_file_of_a_callers_saver_while_it_is_in_use(path: Path) -> None:
    identity = EffectIdentity("42", "post", "0")  # type: ignore[arg-type]
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await counting(saver).ainvoke({"count": 1}, THREAD)
        file = backing_file(saver)
        assert file is not None
        with open_database(file) as database:
            await SqliteJournal(database).begin(identity, "s1")
        await counting(saver).ainvoke({"count": 1}, THREAD)
    with open_database(path) as database:
        assert await SqliteJournal(database).begin(identity, "s2") == Open("s1", 1)

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import aiosqlite
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from agent.core.effect import EffectIdentity, Open
from agent.store.checkpoints import Elsewhere, async_saver, lie_in, open_saver
from agent.store.connection import Connection, DatabaseRefused
from agent.store.database import Database, Place, memory_database, open_database
from agent.store.journal import DatabaseJournal
from agent.store.postgres import Postgres

THREAD: Any = {"configurable": {"thread_id": "42"}}


class State(TypedDict):
    count: int


def counting(saver: Any) -> CompiledStateGraph[State]:
    graph = StateGraph(State)
    graph.add_node("count", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "count")
    return graph.compile(checkpointer=saver)


def test_checkpoints_share_the_database_and_survive_it_being_closed(database: Database, place: Place) -> None:
    with closing((saver := open_saver(database)).conn):
        counting(saver).invoke({"count": 1}, THREAD, durability="sync")
    database.close()
    with open_database(place) as again, closing((saver := open_saver(again)).conn):
        assert counting(saver).get_state(THREAD).values == {"count": 2}
        for table in ("checkpoints", "kintsugi_effects"):
            assert again.quick.call(partial(count, table)) >= 0


def count(table: str, connection: Connection) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def test_the_async_saver_reads_what_the_sync_one_wrote(database: Database) -> None:
    with closing((saver := open_saver(database)).conn):
        counting(saver).invoke({"count": 1}, THREAD, durability="sync")
    async with async_saver(database) as other:
        graph = counting(other)
        assert (await graph.aget_state(THREAD)).values == {"count": 2}
        assert await graph.ainvoke({"count": 5}, THREAD, durability="sync") == {"count": 6}


async def test_savers_survive_the_death_of_the_process_without_an_fsync_each(path: Path) -> None:
    query = "PRAGMA synchronous"
    saver = open_saver(path)
    assert isinstance(saver, SqliteSaver)
    assert saver.conn.execute(query).fetchone() == (1,)
    async with async_saver(path) as other:
        assert isinstance(other, AsyncSqliteSaver)
        async with other.conn.execute(query) as cursor:
            assert tuple(await cursor.fetchone() or ()) == (1,)


def test_a_saver_may_be_opened_by_place_or_in_memory(place: Place) -> None:
    for each in (place, memory_database()):
        with closing((saver := open_saver(each)).conn):
            assert counting(saver).invoke({"count": 1}, THREAD) == {"count": 2}


async def test_our_own_savers_say_where_they_lie(database: Database, place: Place) -> None:
    with closing((saver := open_saver(database)).conn):
        assert same(lie_in(saver), place)
    async with async_saver(database) as other:
        assert same(lie_in(other), place)


async def test_a_callers_postgres_savers_say_where_they_lie_however_they_are_connected(postgres: Postgres) -> None:
    pool: Any
    many: Any
    kwargs: Any = {"autocommit": True, "row_factory": dict_row}
    with PostgresSaver.from_conn_string(postgres.url) as saver, ConnectionPool(postgres.url, kwargs=kwargs) as pool:
        assert same(lie_in(saver), postgres)
        assert same(lie_in(PostgresSaver(pool)), postgres)
    parts = conninfo_to_dict(postgres.url)
    async with (
        AsyncPostgresSaver.from_conn_string(postgres.url) as other,
        AsyncConnectionPool("", kwargs={**parts, **kwargs}) as many,
    ):
        assert same(lie_in(other), postgres)
        assert same(lie_in(AsyncPostgresSaver(many)), postgres)


def test_a_callers_closed_postgres_saver_is_refused(postgres: Postgres) -> None:
    with PostgresSaver.from_conn_string(postgres.url) as saver:
        pass
    with pytest.raises(DatabaseRefused, match="pass one that is open"):
        lie_in(saver)


def same(found: object, place: Place) -> bool:
    """Whether both lead to one database, password included."""
    if isinstance(found, Postgres) and isinstance(place, Postgres):
        one, other = (conninfo_to_dict(each.url) for each in (found, place))
        return all(one.get(name) == other.get(name) for name in ("host", "port", "user", "password", "dbname"))
    return found == place


def test_a_callers_saver_names_its_file_however_it_was_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteSaver.from_conn_string("mine.db") as saver:
        assert lie_in(saver) == tmp_path / "mine.db"
    with closing(sqlite3.connect(f"{(tmp_path / 'a b.db').as_uri()}?cache=private", uri=True)) as connection:
        assert lie_in(SqliteSaver(connection)) == tmp_path / "a b.db"


async def test_a_callers_async_saver_names_its_file_connected_or_not(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "mine.db")) as saver:
        assert lie_in(saver) == tmp_path / "mine.db"
    connection = aiosqlite.connect((tmp_path / "a b.db").as_uri() + "?mode=rwc", uri=True)
    assert lie_in(AsyncSqliteSaver(connection)) == tmp_path / "a b.db"


async def test_savers_in_memory_and_of_other_kinds_lie_in_no_database() -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        assert lie_in(saver) is Elsewhere.MEMORY
    async with AsyncSqliteSaver.from_conn_string(":memory:") as other:
        assert lie_in(other) is Elsewhere.MEMORY
    assert lie_in(InMemorySaver()) is Elsewhere.MEMORY
    assert lie_in(BaseCheckpointSaver()) is Elsewhere.UNKNOWN


async def test_the_journal_joins_the_database_of_a_callers_saver_while_it_is_in_use(place: Place) -> None:
    identity = EffectIdentity("42", "post", "0")  # type: ignore[arg-type]
    async with async_saver(place) as saver:
        await counting(saver).ainvoke({"count": 1}, THREAD)
        found = lie_in(saver)
        assert not isinstance(found, Elsewhere)
        with open_database(found) as database:
            await DatabaseJournal(database).begin(identity, "s1")
        await counting(saver).ainvoke({"count": 1}, THREAD)
    with open_database(place) as database:
        assert await DatabaseJournal(database).begin(identity, "s2") == Open("s1", 1)

"""An SQLite file that fails in the middle of a run: a sentence says what to do, and afterwards the run goes on."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agent import build_graph
from agent.store import checkpoints, sqlite
from agent.store.checkpoints import async_saver
from agent.store.connection import DatabaseLost
from agent.store.database import open_database
from agent.store.sqlite import connect
from graphs.loop import LoopGraph
from tests.builders import arun, calm, goal, run, thread
from tests.graph.test_outage import Shop, ended_well

HOLDS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""

Told = Callable[[str], None]
"""Has every connection to the file told something."""


Failing = Callable[[Path, Told], AbstractContextManager[None]]
"""A way to fail: begins at once, and is over when the context is left."""


@contextmanager
def full(path: Path, told: Told) -> Iterator[None]:
    told("PRAGMA max_page_count = 1")  # it is never less than what there is
    yield


@contextmanager
def read_only(path: Path, told: Told) -> Iterator[None]:
    told("PRAGMA query_only = ON")
    yield


@contextmanager
def locked(path: Path, told: Told) -> Iterator[None]:
    command = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield
        other.communicate()


@contextmanager
def gone(path: Path, told: Told) -> Iterator[None]:
    kept = path.with_name("kept")
    kept.mkdir()
    for each in path.parent.glob(f"{path.name}*"):
        shutil.copy(each, kept)
        each.unlink()
    yield
    for each in kept.iterdir():
        shutil.copy(each, path.parent)


FAILURES: dict[Failing, str] = {
    full: "the disk is full; free some space",
    read_only: "it cannot be written; check the permissions",
    locked: "another process is writing to it and does not finish",
    gone: "was moved or deleted",
}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (sqlite, checkpoints):
        monkeypatch.setattr(each, "BUSY_SECONDS", 0.1)


@contextmanager
def kept(path: Path, shop: Shop) -> Iterator[tuple[LoopGraph, Told]]:
    """A graph whose runs are kept in the file, and a way to tell all its connections something."""
    with open_database(path) as database, closing(connect(path, "NORMAL", "DEFERRED")) as connection:

        def told(pragma: str) -> None:
            for each in (database.quick, database.durable):
                each.call(lambda lane: lane.execute(pragma))
            connection.execute(pragma)

        yield build_graph(shop.tools(), settings=calm(), checkpointer=SqliteSaver(connection)), told


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("failing", FAILURES)
def test_a_file_that_fails_around_an_effect_ends_the_run_with_a_sentence_and_the_run_goes_on_afterwards(
    tmp_path: Path, failing: Failing, when: str
) -> None:
    path, shop = tmp_path / "kintsugi.db", Shop()
    with ExitStack() as failure, kept(path, shop) as (graph, told):
        setattr(shop, when, lambda: failure.enter_context(failing(path, told)))
        with pytest.raises(DatabaseLost, match=FAILURES[failing]):
            run(graph, goal("note"))
    setattr(shop, when, list)
    with kept(path, shop) as (graph, _):
        ended_well(shop, graph.invoke(None, thread()))


async def test_so_it_is_through_ainvoke(tmp_path: Path) -> None:
    path, shop = tmp_path / "kintsugi.db", Shop()
    async with async_saver(path) as saver:
        graph = build_graph(shop.tools(), settings=calm(), checkpointer=saver)
        with ExitStack() as failure:
            shop.after = lambda: failure.enter_context(locked(path, lambda _: None))
            with pytest.raises(DatabaseLost, match="another process is writing to it"):
                await arun(graph, goal("note"))
        shop.after = list
        ended_well(shop, await graph.ainvoke(None, thread()))

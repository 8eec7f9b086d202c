"""Field case 47: several callers on one thread. One runs; the others wait for it or are refused; none is lost."""

import asyncio
import os
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from agent import build_graph
from agent.core.lease import Busy
from agent.nodes.state import RunInput, RunState
from agent.store.checkpoints import async_saver, open_saver
from tests.builders import Calls, arun, calm, goal, run, thread, values
from tests.forks import Fork, Program

ROOT = Path(__file__).parents[2]
SECONDS = 60.0


class Desk:
    """A tool that works alone, or says so; and stops where a test wants it to."""

    def __init__(self, held=False):
        self.inside, self.most, self.made = 0, 0, 0
        self.entered, self.go = threading.Event(), threading.Event()
        if not held:
            self.go.set()

    def work(self, **_):
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        assert self.go.wait(SECONDS)
        self.made += 1
        self.inside -= 1
        return self.made

    def graph(self, saver, **settings):
        tool = Calls().tool("x", "", self.work, effect="mutating", observe=lambda: self.made or None)
        return build_graph([tool], settings=calm(**settings), checkpointer=saver)


@pytest.fixture(params=["memory", "sqlite"])
def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with closing((opened := open_saver(tmp_path / "kintsugi.db")).conn):
            yield opened


@asynccontextmanager
async def a_saver(kind, folder):
    if kind == "memory":
        yield InMemorySaver()
    else:
        async with async_saver(folder / "kintsugi.db") as opened:
            yield opened


GOAL = goal("x")


def test_three_threads_at_once_all_have_the_outcome_and_the_work_is_done_once(saver):
    desk = Desk()
    graph, together = desk.graph(saver), threading.Barrier(3)

    def call(_):
        together.wait(SECONDS)
        return run(graph, GOAL)

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(call, range(3)))
    assert [each["outcome"].status for each in ends] == ["satisfied"] * 3
    assert [values(each) for each in ends] == [{"x": 1}] * 3
    assert sorted(each["ledger"].run for each in ends) == [1, 2, 3]
    assert (desk.made, desk.most) == (1, 1)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_three_tasks_at_once_all_have_the_outcome_and_the_work_is_done_once(kind, tmp_path):
    desk = Desk()
    async with a_saver(kind, tmp_path) as saver:
        graph = desk.graph(saver)
        ends = await asyncio.gather(*(arun(graph, GOAL) for _ in range(3)))
    assert [each["outcome"].status for each in ends] == ["satisfied"] * 3
    assert sorted(each["ledger"].run for each in ends) == [1, 2, 3]
    assert (desk.made, desk.most) == (1, 1)


def test_a_second_caller_is_refused_when_that_is_set_and_told_whom_it_met(saver):
    desk = Desk(held=True)
    graph = desk.graph(saver, busy="refuse")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run, graph, GOAL)
        assert desk.entered.wait(SECONDS)
        for call in (lambda: run(graph, GOAL), lambda: graph.update_state(thread(), {"facts": {"a": 1}})):
            with pytest.raises(Busy, match=f"process {os.getpid()} is working on thread 't'"):
                call()
        desk.go.set()
        assert run(graph, GOAL, "another")["outcome"].status == "satisfied"
        assert first.result(SECONDS)["outcome"].status == "satisfied"
    assert run(graph, GOAL)["outcome"].status == "satisfied"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_second_task_is_refused_when_that_is_set_and_one_that_waits_can_be_cancelled(kind, tmp_path, caplog):
    desk = Desk(held=True)
    async with a_saver(kind, tmp_path) as saver:
        refusing, waiting = desk.graph(saver, busy="refuse"), desk.graph(saver)
        first = asyncio.create_task(arun(waiting, GOAL))
        assert await asyncio.to_thread(desk.entered.wait, SECONDS)
        with pytest.raises(Busy):
            await arun(refusing, GOAL)
        with pytest.raises(Busy):
            await refusing.aupdate_state(thread(), {"facts": {"a": 1}})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await arun(waiting, GOAL)
        desk.go.set()
        assert (await first)["outcome"].status == "satisfied"
    assert f"process {os.getpid()} is working on thread 't'; waiting for it" in caplog.messages


def test_an_edit_waits_for_the_run_and_counts(saver):
    desk = Desk(held=True)
    graph = desk.graph(saver)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, graph, GOAL)
        assert desk.entered.wait(SECONDS)
        edit = pool.submit(graph.update_state, thread(), {"facts": {"region": "eu"}})
        desk.go.set()
        first.result(SECONDS)
        edit.result(SECONDS)
    assert graph.get_state(thread()).values["facts"] == {"region": "eu"}
    assert run(graph, None)["world"].fact_values() == {"region": "eu"}


def test_a_graph_inside_another_holds_its_thread_with_it(saver):
    inner = Desk().graph(None)
    outer = StateGraph(RunState, input_schema=RunInput)
    outer.add_node("work", inner)
    outer.add_edge(START, "work")
    graph = outer.compile(checkpointer=saver)
    assert graph.invoke({"goal": GOAL}, thread())["outcome"].status == "satisfied"


@pytest.mark.parametrize("where", [None, "t", "u"], ids=["the same call", "the same thread", "another thread"])
def test_a_tool_that_runs_the_graph_itself_never_waits_for_its_own_run(saver, where):
    calls, seen = Calls(), list[str]()

    def nested(**_):
        try:
            end = graph.invoke({"goal": goal("y")}, thread(where) if where else None)
            return end["outcome"].status.value
        except Busy as error:
            seen.append(str(error))
            raise

    graph = build_graph([calls.tool("x", "", nested), calls.tool("y")], settings=calm(retry=0), checkpointer=saver)
    end = run(graph, GOAL)
    if where == "t":
        assert "it would wait for itself" in seen[0]
    else:
        assert values(end) == {"x": "satisfied"}


def test_threads_are_found_wherever_the_config_names_them(saver):
    desk = Desk(held=True)
    graph = desk.graph(saver, busy="refuse")
    bound = graph.with_config({"configurable": {"thread_id": "t"}})
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bound.invoke, {"goal": GOAL})
        assert desk.entered.wait(SECONDS)
        with pytest.raises(Busy):
            run(graph, GOAL)
        desk.go.set()
        first.result(SECONDS)


def test_a_run_without_a_thread_or_a_checkpointer_needs_no_lease():
    desk = Desk(held=True)
    graph = desk.graph(None, busy="refuse")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(run, graph, GOAL), pool.submit(graph.invoke, {"goal": GOAL})]
        desk.go.set()
        assert [each.result(SECONDS)["outcome"].status for each in both] == ["satisfied"] * 2


# --- several processes --------------------------------------------------------------------------------------------

CALLER = """
import asyncio, os, sys
from pathlib import Path
from agent import Goal, Settings, build_graph, contract
from agent.store.checkpoints import async_saver, open_saver

folder, way, busy, seconds, stop = Path(sys.argv[1]), *sys.argv[2:]
wait = lambda: (print("here", flush=True), sys.stdin.readline())

def paid():
    return len((folder / "book").read_text().split()) or None

@contract(effect="mutating", produces="x", ensures="artifacts.x == 1", observe=paid)
def pay() -> int:
    "Pay."
    if stop == "before":
        wait()
    with (folder / "book").open("a") as book:
        book.write("paid\\n")
    if stop == "after":
        wait()
    return 1

@contract(effect="mutating", produces="y", needs="x", observe=lambda: (folder / "told").exists() or None)
def tell(x: int) -> bool:
    "Tell."
    with (folder / "told").open("a") as told:
        told.write(f"{os.getpid()}\\n")
    return True

def build(saver):
    return build_graph([pay, tell], settings=Settings(busy=busy, lease_seconds=float(seconds)), checkpointer=saver)

given, config = {"goal": Goal(wants=["y"])}, {"configurable": {"thread_id": "t"}}
async def main():
    async with async_saver(folder / "kintsugi.db") as saver:
        return await build(saver).ainvoke(given, config)

try:
    end = build(open_saver(folder / "kintsugi.db")).invoke(given, config) if way == "sync" else asyncio.run(main())
    print(end["outcome"].status if end["outcome"] else "asks", end["ledger"].run, flush=True)
except RuntimeError as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.fixture
def caller(tmp_path):
    children = []
    (tmp_path / "book").touch()

    def start(way, busy="wait", seconds=30.0, stop="never"):
        words = ["caller", str(tmp_path), way, busy, str(seconds), stop]
        children.append(Fork(Program(CALLER), words, ROOT, dict(os.environ)))
        return children[-1]

    yield start
    for each in children:
        each.close()


def book(folder):
    return (folder / "book").read_text().split()


def test_three_processes_at_once_all_have_the_outcome_and_the_work_is_done_once(caller, tmp_path):
    three = [caller("sync"), caller("async"), caller("sync")]
    ends = sorted(each.communicate(timeout=SECONDS)[0] for each in three)
    assert ends == ["satisfied 1\n", "satisfied 2\n", "satisfied 3\n"]
    assert book(tmp_path) == ["paid"]


def test_of_three_processes_one_runs_and_two_are_refused_when_that_is_set(caller, tmp_path):
    first = caller("sync", "refuse", stop="after")
    assert first.stdout.readline() == "here\n"
    others = [caller("sync", "refuse"), caller("async", "refuse")]
    for each in others:
        assert f"Busy process {first.pid} is working on thread 't'" in each.communicate(timeout=SECONDS)[0]
    assert first.communicate("go\n", timeout=SECONDS)[0] == "satisfied 1\n"
    assert book(tmp_path) == ["paid"]


def test_a_process_that_was_stopped_in_a_call_and_wakes_up_after_a_takeover_changes_nothing(caller, tmp_path):
    """It had made its effect; the other has found it, and finished."""
    first = caller("async", seconds=0.2, stop="after")
    assert first.stdout.readline() == "here\n"
    first.stop()
    assert caller("sync", seconds=0.2).communicate(timeout=SECONDS)[0] == "satisfied 2\n"
    before = rows(tmp_path)
    first.stdin.write("go\n")
    first.send_signal(signal.SIGCONT)
    said = first.communicate(timeout=SECONDS)[0]
    assert said.startswith("Superseded this run of thread 't' was silent for too long")
    assert rows(tmp_path) == before
    assert book(tmp_path) == ["paid"]
    assert len((tmp_path / "told").read_text().split()) == 1


def test_what_a_stopped_process_may_still_do_is_not_done_again_and_its_end_counts(caller, tmp_path):
    """Nothing is to be seen of its effect, which proves nothing as long as it may wake up: a person is asked."""
    first = caller("sync", seconds=0.2, stop="before")
    assert first.stdout.readline() == "here\n"
    first.stop()
    assert caller("sync", seconds=0.2).communicate(timeout=SECONDS)[0] == "asks 2\n"
    first.stdin.write("go\n")
    first.send_signal(signal.SIGCONT)
    assert first.communicate(timeout=SECONDS)[0].startswith("Superseded")
    assert book(tmp_path) == ["paid"]
    assert caller("sync").communicate(timeout=SECONDS)[0] == "satisfied 3\n"
    assert book(tmp_path) == ["paid"]


def rows(folder):
    with closing(sqlite3.connect(folder / "kintsugi.db")) as connection:
        query = "SELECT (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM writes)"
        return connection.execute(query).fetchone()

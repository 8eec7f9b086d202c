"""Stop and go: cancelled, drained or out of time, a run keeps what it wrote, leaves nothing behind and can go on."""

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import boundary, build_graph
from agent.store.checkpoints import async_saver
from tests.builders import Calls, arun, calm, goal, run, thread, values

SECONDS = 60.0
GOAL = goal("written read")


class Place:
    """One tool that writes and one that reads, each held until a test lets it go."""

    def __init__(self):
        self.calls, self.began, self.written = Calls(), {"write": threading.Event(), "read": threading.Event()}, 0
        self.go = {"write": asyncio.Event(), "read": asyncio.Event()}
        self.ended = list[str]()
        self.loop: asyncio.AbstractEventLoop | None = None

    async def write(self, **_):
        await self._held("write")
        self.written += 1
        return self.written

    async def read(self, **_):
        await self._held("read")
        return "read"

    def graph(self, saver=None, **settings):
        tools = [
            self.calls.tool("written", "", self.write, effect="mutating", observe=lambda: self.written or None),
            self.calls.tool("read", "", self.read),
        ]
        return build_graph(tools, settings=calm(**settings), checkpointer=saver or InMemorySaver())

    def open(self, *which):
        for each in which or self.go:
            self.go[each].set()

    async def both_began(self):
        for each in self.began.values():
            assert await asyncio.to_thread(each.wait, SECONDS)

    async def _held(self, which):
        self.loop = asyncio.get_running_loop()
        self.began[which].set()
        try:
            await self.go[which].wait()
            self.ended.append(which)
        except asyncio.CancelledError:
            self.ended.append(f"{which} cancelled")
            raise


@pytest.fixture(autouse=True)
def leaves_nothing():
    """No thread of a call outlives it; lanes belong to the graph and end with it."""
    yield
    gc.collect()
    ours = ("kintsugi-loop", "kintsugi-lease", "kintsugi-tool")
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith(ours)])


def until(true):
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.01)


def others():
    return asyncio.all_tasks() - {asyncio.current_task()}


async def undisturbed():
    place = Place()
    place.open()
    return (await arun(place.graph(), GOAL))["outcome"]


async def goes_on(place, graph):
    """The thread goes on to the end that it would have had without a disturbance."""
    place.open()
    end = await arun(graph, None)
    assert end["outcome"].model_dump(exclude={"artifacts"}) == (await undisturbed()).model_dump(exclude={"artifacts"})
    assert values(end) == {"written": 1, "read": "read"}
    assert place.written == 1
    return end


# --- cancelled ----------------------------------------------------------------------------------------------------


async def cancel(place, task):
    task.cancel()
    asyncio.get_running_loop().call_soon(place.open, "write")


async def cancel_twice(place, task):
    task.cancel()
    while "read cancelled" not in place.ended:
        await asyncio.sleep(0)
    task.cancel()


@pytest.mark.parametrize("stop", [cancel, cancel_twice])
async def test_a_cancelled_run_lets_its_write_finish_drops_its_read_and_goes_on(stop):
    place = Place()
    graph = place.graph()
    task = asyncio.create_task(arun(graph, GOAL))
    await place.both_began()
    await stop(place, task)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "read cancelled" in place.ended
    assert ("write" if stop is cancel else "write cancelled") in place.ended
    await asyncio.sleep(0)
    assert others() == set()
    await goes_on(place, graph)
    assert place.calls["make_written"] == (1 if stop is cancel else 2)


async def test_a_run_out_of_the_callers_time_goes_on_from_its_checkpoint(tmp_path):
    place = Place()
    async with async_saver(tmp_path / "kintsugi.db") as saver:
        graph = place.graph(saver)
        place.open("write")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await arun(graph, GOAL)
        assert others() == set()
        await goes_on(place, graph)


async def test_a_stream_that_is_closed_early_or_whose_reader_fails_leaves_nothing_in_flight():
    place = Place()
    graph = place.graph()
    place.open("write")
    async with aclosing(graph.astream({"goal": GOAL}, thread(), stream_mode="updates")) as parts:
        async for part in parts:
            if "dispatcher" in part:
                break
    with pytest.raises(ZeroDivisionError):
        async with aclosing(graph.astream(None, thread(), stream_mode="updates")) as parts:
            async for _ in parts:
                raise ZeroDivisionError
    assert others() == set()
    await goes_on(place, graph)


def test_a_stream_that_is_read_halfway_and_dropped_gives_its_thread_back():
    calls = Calls()
    graph = build_graph([calls.tool("read", "")], settings=calm(busy="refuse"), checkpointer=InMemorySaver())
    parts = graph.stream({"goal": goal("read")}, thread())
    next(parts)
    del parts
    gc.collect()
    assert run(graph, None)["outcome"].status == "satisfied"


# --- tools that do not let themselves be stopped ------------------------------------------------------------------


class Deaf:
    """A tool that takes a cancellation for an answer, or for nothing."""

    def __init__(self, end):
        self.end, self.began, self.release = end, threading.Event(), asyncio.Event()

    async def work(self, **_):
        self.began.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                if self.end:
                    return "done, of course"
        return "done at last"


@pytest.mark.parametrize("end", [True, False], ids=["answers", "goes on for ever"])
@pytest.mark.parametrize("effect", ["read_only", "mutating"])
async def test_a_tool_that_swallows_its_time_out_has_not_succeeded(end, effect, monkeypatch):
    monkeypatch.setattr(boundary, "LAST_WORDS", 0.02)
    deaf = Deaf(end)
    tool = Calls().tool("x", "", deaf.work, effect=effect, seconds=0.02)
    graph = build_graph([tool], settings=calm(retry=0, patch=0, rewrite=0, replan=0, escalation="finish"))
    found = (await arun(graph, goal("x")))["outcome"]
    assert found.status == "handed_over"
    assert found.artifacts == {}
    deaf.release.set()


@pytest.mark.parametrize("end", [True, False], ids=["answers", "goes on for ever"])
async def test_a_tool_that_swallows_a_cancellation_neither_saves_the_run_nor_hangs_its_end(end, monkeypatch):
    monkeypatch.setattr(boundary, "LAST_WORDS", 0.02)
    deaf = Deaf(end)
    saver = InMemorySaver()
    graph = build_graph([Calls().tool("x", "", deaf.work)], settings=calm(), checkpointer=saver)
    task = asyncio.create_task(arun(graph, goal("x")))
    assert await asyncio.to_thread(deaf.began.wait, SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    state = await graph.aget_state(thread())
    assert state.next
    assert state.values["outcome"] is None
    deaf.release.set()
    assert (await arun(graph, None))["outcome"].artifacts["x"].value == "done at last"


def test_the_end_of_a_synchronous_call_does_not_wait_for_a_thread_that_cannot_be_stopped():
    release = threading.Event()
    tool = Calls().tool("x", "", lambda: release.wait(SECONDS), seconds=0.02)
    limits = {"retry": 0, "patch": 0, "rewrite": 0, "replan": 0, "escalation": "finish"}
    graph = build_graph([tool], settings=calm(**limits))
    assert run(graph, goal("x"))["outcome"].status == "handed_over"
    (left,) = (each for each in threading.enumerate() if each.name == "kintsugi-tool")
    assert left.daemon
    release.set()


# --- drained ------------------------------------------------------------------------------------------------------


async def test_a_drained_run_finishes_what_writes_says_so_and_goes_on_where_it_was():
    place = Place()
    graph = place.graph()
    assert not graph.drain("t")
    task = asyncio.create_task(arun(graph, GOAL))
    await place.both_began()
    assert graph.drain("t")
    asyncio.get_running_loop().call_later(0.1, place.open, "write")
    found = (await task)["outcome"]
    assert (found.status, found.reason) == ("cancelled", "drained on request; it can go on")
    assert [each.name for each in found.artifacts.values() if each.valid] == ["written"]
    assert place.ended == ["write", "read cancelled"]
    assert (await graph.aget_state(thread())).next == ("executor",)
    assert not graph.drain("t")
    end = await goes_on(place, graph)
    assert [each.event for each in end["trace"] if each.event in ("paused", "ended")] == ["paused", "ended"]
    assert end["ledger"].run == 1


def test_a_run_that_is_stopped_at_once_lets_its_write_finish_and_waits_for_nothing_else():
    place = Place()
    graph = place.graph()
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(run, graph, GOAL)
        assert place.began["write"].wait(SECONDS)
        assert place.began["read"].wait(SECONDS)
        assert place.loop is not None
        place.loop.call_soon_threadsafe(place.open, "write")
        assert graph.drain("t", now=True)
        found = task.result(SECONDS)["outcome"]
    assert found.status == "cancelled"
    assert "read cancelled" in place.ended
    place.go = {"write": asyncio.Event(), "read": asyncio.Event()}
    place.open()
    assert values(run(graph, None)) == {"written": 1, "read": "read"}
    assert (place.written, place.calls["make_written"]) == (1, 1)


async def test_a_drained_run_takes_another_goal_as_any_other():
    place = Place()
    graph = place.graph()
    task = asyncio.create_task(arun(graph, GOAL))
    await place.both_began()
    place.open("write")
    graph.drain("t")
    await task
    assert (await arun(graph, goal("written")))["outcome"].status == "satisfied"
    assert place.written == 1


# --- out of time --------------------------------------------------------------------------------------------------


async def test_a_run_out_of_time_cuts_its_reads_short_awaits_its_writes_and_ends_with_what_it_has():
    place = Place()
    graph = place.graph(seconds=0.3)
    task = asyncio.create_task(arun(graph, GOAL))
    await place.both_began()
    asyncio.get_running_loop().call_later(0.6, place.open, "write")
    found = (await task)["outcome"]
    assert (found.status, found.limit) == ("out_of_budget", "seconds")
    assert [each.name for each in found.artifacts.values() if each.valid] == ["written"]
    assert place.ended == ["write", "read cancelled"]


async def test_a_contract_says_how_long_its_own_calls_may_take():
    calls = Calls()

    async def is_slow(**_):
        await asyncio.sleep(0.2)
        return 1

    tools = [calls.tool("long", "", is_slow, seconds=SECONDS), calls.tool("short", "", is_slow)]
    settings = calm(retry=0, patch=0, rewrite=0, replan=0, escalation="finish", step_timeout=0.05)
    found = (await arun(build_graph(tools, settings=settings), goal("long short")))["outcome"]
    assert [each.name for each in found.artifacts.values()] == ["long"]


# --- said wrongly -------------------------------------------------------------------------------------------------


async def test_an_answer_that_is_none_is_refused_with_what_to_do():
    graph = Place().graph()
    for call in (graph.ainvoke, lambda *given: asyncio.to_thread(graph.invoke, *given)):
        with pytest.raises(ValueError, match="give an answer, or call with None to go on"):
            await call(Command(resume=None), thread())

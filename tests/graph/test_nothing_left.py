"""However a run ends, and however it was started, nothing of it is left: no thread, task, process, or open file."""

import asyncio
import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agent import build_graph, contract
from agent.store.checkpoints import async_saver
from agent.store.connection import DatabaseLost
from agent.store.database import open_database
from agent.store.sqlite import connect
from agent.tools.builtin.command import command_tools
from graphs.loop import LoopGraph
from tests.builders import Calls, always, arun, calm, goal, run

SECONDS = 60.0


def left() -> Counter[str]:
    """What this process has besides itself: threads, child processes, and files, pipes and connections."""
    gc.collect()
    found = Counter(f"thread {each.name}" for each in threading.enumerate())
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(f"process {each}" for each in task.read_text().split())
    for each in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            found[f"file {each.readlink()}"] += 1
    return found


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    asyncio.run(asyncio.sleep(0))
    before, deadline = left(), time.monotonic() + SECONDS
    yield
    while more := left() - before:
        assert time.monotonic() < deadline, more
        time.sleep(0.01)


class Desk:
    """Tools of every kind of end."""

    def __init__(self, folder: Path) -> None:
        self.path, self.counted, self.begun = folder / "kintsugi.db", Calls(), threading.Event()

    async def waits(self, **_: Any) -> None:
        self.begun.set()
        await asyncio.Event().wait()

    async def swallows(self, **_: Any) -> str:
        with suppress(asyncio.CancelledError):
            await self.waits()
        return "late"

    def interrupts(self, **_: Any) -> None:
        raise KeyboardInterrupt

    def removes(self, **_: Any) -> int:
        self.path.unlink()
        return 1

    def sleeps(self) -> list[Any]:
        (tool,) = command_tools([sys.executable], folder=self.path.parent, seconds=0.2)
        args: dict[str, Any] = {"program": sys.executable, "arguments": ["-c", "import time; time.sleep(600)"]}
        return [contract(effect="read_only", produces="y", needs="x", args=args)(tool)]


LOST: dict[str, Any] = {"effect": "mutating", "idempotent": False}
NO_MORE: dict[str, Any] = {"retry": 0, "patch": 0, "rewrite": 0, "replan": 0, "escalation": "finish"}

ENDS: dict[str, tuple[Callable[[Desk], Any], dict[str, Any], str]] = {
    "satisfied": (lambda desk: None, {}, "satisfied"),
    "handed over": (lambda desk: always(ValueError("no")), NO_MORE, "handed_over"),
    "a person is asked": (lambda desk: always(RuntimeError("lost")), {"retry": 0}, "None"),
    "out of time": (lambda desk: desk.waits, {"seconds": 0.2}, "out_of_budget"),
    "a step out of time": (lambda desk: desk.waits, {"step_timeout": 0.1, **NO_MORE}, "handed_over"),
    "a tool that swallows its time-out": (lambda desk: desk.swallows, {"step_timeout": 0.1, **NO_MORE}, "handed_over"),
    "Ctrl-C in a tool": (lambda desk: desk.interrupts, {}, "KeyboardInterrupt"),
    "a program that never ends": (Desk.sleeps, NO_MORE, "handed_over"),
    "drained": (lambda desk: desk.waits, {}, "cancelled"),
    "cancelled": (lambda desk: desk.waits, {}, "CancelledError"),
    "the file is gone": (lambda desk: desk.removes, {}, "DatabaseLost"),
}


def tools(desk: Desk, end: str) -> list[Any]:
    does, promised = ENDS[end][0](desk), LOST if end == "a person is asked" else {}
    made = does if isinstance(does, list) else [desk.counted.tool("y", "x", does, **promised)]
    return [desk.counted.tool("x"), *made]


def told(end: Any) -> str:
    return str(end["outcome"].status if end["outcome"] else None)


def disturbs(graph: LoopGraph, desk: Desk) -> None:
    assert desk.begun.wait(SECONDS)
    assert graph.drain("t", now=True)


@pytest.mark.parametrize("end", [each for each in ENDS if each != "cancelled"])
def test_a_synchronous_call_leaves_nothing_behind(end: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with open_database(desk.path), closing(connect(desk.path, "NORMAL", "DEFERRED")) as connection:
        settings = calm(**ENDS[end][1])
        graph = build_graph(tools(desk, end), settings=settings, checkpointer=SqliteSaver(connection))
        stops = threading.Thread(target=disturbs, args=(graph, desk)) if end == "drained" else None
        if stops:
            stops.start()
        try:
            found = told(run(graph, goal("y")))
        except (KeyboardInterrupt, DatabaseLost) as error:
            found = type(error).__name__
        if stops:
            stops.join()
        assert found == ENDS[end][2]


@pytest.mark.parametrize("end", [each for each in ENDS if each != "Ctrl-C in a tool"])  # it stops the event loop itself
def test_an_asynchronous_call_leaves_nothing_behind(end: str, tmp_path: Path) -> None:
    assert asyncio.run(_asynchronously(end, Desk(tmp_path))) == ENDS[end][2]


async def _asynchronously(end: str, desk: Desk) -> str:
    async with async_saver(desk.path) as saver:
        graph = build_graph(tools(desk, end), settings=calm(**ENDS[end][1]), checkpointer=saver)
        task = asyncio.ensure_future(arun(graph, goal("y")))
        try:
            if end in ("drained", "cancelled"):
                await asyncio.to_thread(desk.begun.wait, SECONDS)
            if end == "drained":
                graph.drain("t", now=True)
            if end == "cancelled":
                task.cancel()
            found = told(await task)
        except (DatabaseLost, asyncio.CancelledError) as error:
            found = type(error).__name__
        # asked before the loop ends, for that would cancel whatever is left
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

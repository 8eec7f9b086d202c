"""Drives a scenario through the graph, in this process or in one that is killed where a test wants it.

The product has no switch to be killed at: the tools are wrapped here.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from agent.app import assemble
from agent.core.limits import Limits
from agent.scenarios import SCENARIOS, Prepared
from agent.settings import Settings
from agent.store.checkpoints import async_saver, open_saver
from agent.store.database import Database, open_database
from graphs.loop import LoopGraph

SETTINGS = Settings(limits=Limits(backoff=0.05), escalation="finish")
THREAD: Any = {"configurable": {"thread_id": "42"}}

_PROCESSES = multiprocessing.get_context("forkserver")
# everything is imported once; each process to be killed is then forked in an instant
_PROCESSES.set_forkserver_preload(["tests.scenarios.driving"])

Wrap = Callable[[list[BaseTool]], list[BaseTool]]


@dataclass(frozen=True)
class Place:
    """Where to kill: the n-th time a tool is about to run, or has run and not yet said so."""

    tool: str
    when: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.tool}:{self.when}:{self.nth}"


def drive(
    name: str,
    folder: Path,
    *,
    event: str | None = None,
    faults: bool | None = None,
    wrap: Wrap = list,
    asynchronous: bool = False,
) -> dict[str, Any]:
    """Run a scenario to its end, or on from where it was killed, in a folder."""
    graphs: list[LoopGraph] = []

    def change(goal: Any) -> None:
        graphs[0].change_goal("42", goal)

    with (
        open_database(folder / "kintsugi.db") as database,
        SCENARIOS[name].prepare(folder / "world", event=event, faults=faults, change_goal=change) as prepared,
    ):
        if asynchronous:
            return asyncio.run(_adrive(prepared, database, wrap, graphs))
        saver = open_saver(database)
        with closing(saver.conn):
            graphs.append(assemble(wrap(prepared.tools), database, SETTINGS, checkpointer=saver))
            return graphs[0].invoke({"goal": prepared.goal}, THREAD)


async def _adrive(
    prepared: Prepared, database: Database, wrap: Wrap, graphs: list[LoopGraph]
) -> dict[str, Any]:
    async with async_saver(database) as saver:
        graphs.append(assemble(wrap(prepared.tools), database, SETTINGS, checkpointer=saver))
        return await graphs[0].ainvoke({"goal": prepared.goal}, THREAD)


def kill(name: str, folder: Path, place: Place, event: str | None = None) -> None:
    """Run a scenario in a process of its own, which dies by SIGKILL at the place."""
    process = _PROCESSES.Process(target=_die, args=(name, folder, place, event))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"not killed at {place}: exit code {process.exitcode}"


def _die(name: str, folder: Path, place: Place, event: str | None) -> None:
    state = drive(name, folder, event=event, wrap=_killed_at(place))
    print(f"{place} was never reached: {state['outcome']}")


def _killed_at(place: Place) -> Wrap:
    seen: list[str] = []

    def reach(tool: str, when: str) -> None:
        if (tool, when) == (place.tool, place.when):
            seen.append(tool)
            if len(seen) == place.nth:
                os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(tool: BaseTool) -> BaseTool:
        assert isinstance(tool, StructuredTool)
        original = tool.func
        assert original is not None

        def watched(**args: object) -> object:
            reach(tool.name, "before")
            result = original(**args)
            reach(tool.name, "after")
            return result

        return tool.model_copy(update={"func": watched})

    return lambda tools: [wrapped(each) for each in tools]

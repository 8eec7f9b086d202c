"""Drives a scenario through the graph, in this process or in one that is killed where a test wants it.

The product has no switch to be killed at: tools and checkpointer are wrapped here.
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


@dataclass(frozen=True)
class Place:
    """Where to die: the n-th time a tool is `before` or `after` its work, or a phase is in the `checkpoint`."""

    name: str
    when: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.name}:{self.when}:{self.nth}"


class Doom:
    """Kills its process by SIGKILL at a place; at none, it only lets everything through."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = place
        self._seen = 0

    def reach(self, name: str, when: str) -> None:
        if self._place is not None and (name, when) == (self._place.name, self._place.when):
            self._seen += 1
            if self._seen == self._place.nth:
                os.kill(os.getpid(), signal.SIGKILL)

    def tools(self, tools: list[BaseTool]) -> list[BaseTool]:
        return [each.model_copy(update={"func": self._tool(each)}) for each in tools]

    def saver(self, saver: Any) -> Any:
        original = saver.put

        def put(config: Any, checkpoint: Any, *rest: Any) -> Any:
            stored = original(config, checkpoint, *rest)
            self.reach(str(checkpoint["channel_values"].get("phase")), "checkpoint")
            return stored

        saver.put = put
        return saver

    def _tool(self, tool: BaseTool) -> Callable[..., object]:
        assert isinstance(tool, StructuredTool) and tool.func is not None
        original, name = tool.func, tool.name

        def watched(**args: object) -> object:
            self.reach(name, "before")
            result = original(**args)
            self.reach(name, "after")
            return result

        return watched


def drive(
    name: str,
    folder: Path,
    *,
    event: str | None = None,
    faults: bool | None = None,
    doom: Doom | None = None,
    resume: bool = False,
    asynchronous: bool = False,
) -> dict[str, Any]:
    """Run a scenario in a folder to its end.

    Args:
        name: the scenario.
        folder: its world, and the run's database.
        event: as for `prepare`.
        faults: as for `prepare`.
        doom: where the process dies.
        resume: go on from the last checkpoint, if there is one, rather than state the goal again.
        asynchronous: use `ainvoke`.
    """
    graphs: list[LoopGraph] = []

    def change(goal: Any) -> None:
        graphs[0].change_goal("42", goal)

    doom = doom or Doom()
    with (
        open_database(folder / "kintsugi.db") as database,
        SCENARIOS[name].prepare(folder / "world", event=event, faults=faults, change_goal=change) as prepared,
    ):
        tools = doom.tools(prepared.tools)
        if asynchronous:
            return asyncio.run(_adrive(prepared, tools, database, graphs))
        saver = doom.saver(open_saver(database))
        with closing(saver.conn):
            graphs.append(assemble(tools, database, SETTINGS, checkpointer=saver))
            begun = resume and graphs[0].get_state(THREAD).tasks
            return graphs[0].invoke(None if begun else {"goal": prepared.goal}, THREAD)


async def _adrive(
    prepared: Prepared, tools: list[BaseTool], database: Database, graphs: list[LoopGraph]
) -> dict[str, Any]:
    async with async_saver(database) as saver:
        graphs.append(assemble(tools, database, SETTINGS, checkpointer=saver))
        return await graphs[0].ainvoke({"goal": prepared.goal}, THREAD)


def kill(name: str, folder: Path, place: Place, event: str | None = None) -> None:
    """Run a scenario in a process of its own, which dies by SIGKILL at the place."""
    process = _PROCESSES.Process(target=_die, args=(name, folder, place, event))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"not killed at {place}: exit code {process.exitcode}"


def _die(name: str, folder: Path, place: Place, event: str | None) -> None:
    state = drive(name, folder, event=event, doom=Doom(place), resume=True)
    print(f"{place} was never reached: {state['outcome']}")

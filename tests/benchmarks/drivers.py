"""How a DAG is run: through our graph, synchronously and asynchronously, and in plain LangGraph waves."""

import asyncio
import operator
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from agent import Goal, build_graph, contract
from agent.store.checkpoints import async_saver, open_saver
from agent.store.database import open_database
from tests.benchmarks.dags import Task, ends

CONFIG: Any = {"configurable": {"thread_id": "bench"}}


def through_invoke(tasks: Sequence[Task], effect: str = "read_only") -> float:
    """Seconds of one run through `invoke`; SQLite as our command line opens it (WAL, NORMAL), durability sync."""
    with _file() as file:
        saver = open_saver(file)
        with closing(saver.conn):
            return _invoked(tasks, effect, saver)


def through_ainvoke(tasks: Sequence[Task], effect: str = "read_only") -> float:
    """Seconds of one run through `ainvoke`; SQLite likewise."""
    return asyncio.run(_ainvoked(tasks, effect))


def in_waves(tasks: Sequence[Task]) -> float:
    """Seconds of the same DAG in plain LangGraph: each wave of ready tasks is a `Send` fan-out."""
    by_name = {each.name: each for each in tasks}

    class Progress(TypedDict):
        done: Annotated[list[str], operator.add]

    def work(task: Task) -> dict[str, list[str]]:
        time.sleep(task.seconds)
        return {"done": [task.name]}

    def wave(state: Progress) -> list[Send] | str:
        done = set(state["done"])
        ready = [each for name, each in by_name.items() if name not in done and done.issuperset(each.needs)]
        return [Send("work", each) for each in ready] or END

    # mypy cannot see that a `Send` brings the node its own input
    builder: Any = StateGraph(Progress)
    builder.add_node("look", lambda state: {})
    builder.add_node("work", work)
    builder.add_edge(START, "look")
    builder.add_conditional_edges("look", wave, ["work", END])
    builder.add_edge("work", "look")
    with _file() as file:
        saver = open_saver(file)
        with closing(saver.conn):
            graph = builder.compile(checkpointer=saver)
            begun = time.perf_counter()
            final = graph.invoke({"done": []}, {**CONFIG, "max_concurrency": 64}, durability="sync")
            passed = time.perf_counter() - begun
    assert len(final["done"]) == len(tasks)
    return passed


def _invoked(tasks: Sequence[Task], effect: str, saver: BaseCheckpointSaver[Any]) -> float:
    graph = build_graph([tool(each, effect) for each in tasks], checkpointer=saver)
    begun = time.perf_counter()
    final = graph.invoke({"goal": Goal(wants=ends(tasks))}, CONFIG)
    passed = time.perf_counter() - begun
    _check(final, tasks)
    return passed


async def _ainvoked(tasks: Sequence[Task], effect: str) -> float:
    with _file() as file:
        async with async_saver(file) as saver:
            graph = build_graph([_async_tool(each, effect) for each in tasks], checkpointer=saver)
            begun = time.perf_counter()
            final = await graph.ainvoke({"goal": Goal(wants=ends(tasks))}, CONFIG)
            passed = time.perf_counter() - begun
    _check(final, tasks)
    return passed


def _check(final: Any, tasks: Sequence[Task]) -> None:
    outcome = final["outcome"]
    assert outcome.status == "satisfied", outcome.reason
    assert len(outcome.artifacts) == len(tasks)


def tool(task: Task, effect: str) -> BaseTool:
    def work() -> dict[str, str]:
        time.sleep(task.seconds)
        return {"made": task.name}

    return _promised(StructuredTool.from_function(work, name=task.name, description="Sleep."), task, effect)


def _async_tool(task: Task, effect: str) -> BaseTool:
    async def work() -> dict[str, str]:
        await asyncio.sleep(task.seconds)
        return {"made": task.name}

    tool = StructuredTool.from_function(coroutine=work, name=task.name, description="Sleep.")
    return _promised(tool, task, effect)


def _promised(tool: BaseTool, task: Task, effect: str) -> BaseTool:
    ensures = f"artifacts.{task.name}.made == '{task.name}'"
    return contract(needs=task.needs, produces=task.name, effect=effect, ensures=ensures)(tool)


@contextmanager
def _file() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        open_database(Path(folder) / "bench.db").close()
        yield Path(folder) / "bench.db"

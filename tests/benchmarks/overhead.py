"""What does the runtime cost per step, on top of the tool, and how much of it is LangGraph's own?

Beside each run, in the same process and over the same kind of saver: bare super-steps of a graph with one channel,
and rounds of a graph with our channels whose nodes decide nothing and return what ours return.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from rich.table import Table

from agent import Goal, build_graph
from agent.core.goal import Goal as Stated
from agent.core.limits import Ledger
from agent.core.move import Start
from agent.core.phase import Phase
from agent.core.plan import Call, Plan, Step, StepId, StepStatus
from agent.core.record import StepStarted
from agent.core.value import digest
from agent.core.world import Artifact, Verification, World, commit
from agent.nodes.state import RunState, RunUpdate
from agent.store.checkpoints import open_saver
from agent.store.database import memory_database, open_database
from agent.store.leases import Leases
from agent.store.packing import packing
from graphs.gate import Gate
from graphs.loop import draw
from tests.benchmarks.dags import Task, ends
from tests.benchmarks.drivers import CONFIG, tool

STEPS = 150
Saver = BaseCheckpointSaver[Any]


@dataclass(frozen=True)
class Cost:
    """Milliseconds per step, by the wall and of CPU."""

    wall: float
    cpu: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.wall - other.wall, self.cpu - other.cpu)

    def __str__(self) -> str:
        return f"{self.wall:.1f} ({self.cpu:.1f})"


def ours(saver: Saver, effect: str = "read_only", side_by_side: bool = False) -> Cost:
    """A step of our loop, with a tool that does nothing."""
    tasks = [Task(f"t{n}", 0.0, (f"t{n - 1}",) if n and not side_by_side else ()) for n in range(STEPS)]
    graph = build_graph([tool(each, effect) for each in tasks], checkpointer=saver)
    return _cost(lambda: graph.invoke({"goal": Goal(wants=ends(tasks))}, CONFIG), STEPS)


def bare(saver: Saver) -> Cost:
    """As many super-steps as ours takes, one for each step, of a graph with one channel that counts."""

    class Count(TypedDict):
        count: int

    builder: Any = StateGraph(Count)
    builder.add_node("next", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "next")
    builder.add_conditional_edges("next", lambda state: "next" if state["count"] < STEPS else END, ["next", END])
    graph = builder.compile(checkpointer=packing(saver))
    given = {**CONFIG, "recursion_limit": STEPS + 1}
    return _cost(lambda: graph.invoke({"count": 0}, given, durability="sync"), STEPS)


def thoughtless(saver: Saver) -> Cost:
    """The same super-steps with our channels, and updates like ours that nobody had to think of."""
    gate = Gate(Leases(memory_database(), 60.0), "wait")
    graph = draw({phase: _says(update) for phase, update in _updates().items()}, gate, saver)
    return _cost(lambda: graph.invoke({"goal": Stated(text="x")}, CONFIG), STEPS)


def by_itself() -> Cost:
    """LangChain's call of a tool that does nothing, in a thread as our loop makes it."""
    called = tool(Task("t", 0.0), "read_only")

    async def calls() -> None:
        for _ in range(STEPS):
            await called.ainvoke({})

    return _cost(lambda: asyncio.run(calls()), STEPS)


def _cost(run: Callable[[], object], steps: int) -> Cost:
    begun, spent = time.perf_counter(), time.process_time()
    run()
    return Cost((time.perf_counter() - begun) / steps * 1000, (time.process_time() - spent) / steps * 1000)


def _says(update: Callable[[RunState], RunUpdate]) -> Any:
    async def node(state: RunState, _config: RunnableConfig) -> RunUpdate:
        return update(state)

    return node


def _updates() -> dict[Phase, Callable[[RunState], RunUpdate]]:
    names = [f"t{each}" for each in range(STEPS)]
    steps = tuple(Step(id=StepId(each), intent=each, call=Call(tool=each), produces=(each,)) for each in names)
    record = StepStarted(at=1.5, step=StepId("t0"), intent="t0", attempt=1)

    def moved(state: RunState, status: StepStatus) -> Plan:
        return state["plan"].with_steps(state["plan"].steps[state["ledger"].verified].as_(status))

    def made(state: RunState) -> World:
        name = names[state["ledger"].verified]
        return commit(
            state["world"], Artifact(name=name, digest=digest(name), producer=name, verification=Verification(by=()))
        )

    def start(state: RunState) -> RunUpdate:
        plan, ledger = Plan(revision=1, steps=steps), Ledger()
        return {"plan": plan, "ledger": ledger, "phase": Phase.DISPATCHER, "attempts": ()}

    def dispatch(state: RunState) -> RunUpdate:
        return {"phase": Phase.FINISHER if state["ledger"].verified == STEPS else Phase.EXECUTOR}

    def round_(state: RunState) -> RunUpdate:
        ledger = state["ledger"].add(verified=1)
        return {
            "plan": moved(state, StepStatus.DONE),
            "world": made(state),
            "ledger": ledger,
            "move": Start(steps=(StepId(names[state["ledger"].verified]),)),
            "phase": Phase.DISPATCHER if ledger.verified == STEPS else Phase.EXECUTOR,
            "trace": [record] * 4,
        }

    return {
        Phase.INTAKE: start,
        Phase.DISPATCHER: dispatch,
        Phase.EXECUTOR: round_,
        Phase.FINISHER: lambda state: {"phase": Phase.END},
        **{
            phase: lambda state: {}
            for phase in (Phase.PLANNER, Phase.VERIFIER, Phase.CLASSIFIER, Phase.REPAIRER, Phase.ESCALATOR)
        },
    }


@contextmanager
def in_memory() -> Iterator[Saver]:
    """Checkpoints in memory."""
    yield InMemorySaver()


@contextmanager
def durable() -> Iterator[Saver]:
    """Checkpoints in a file as the command line opens it; each super-step waits for its own."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "overhead.db"
        open_database(file).close()
        saver = open_saver(file)
        with closing(saver.conn):
            yield saver


def least(kind: Callable[[], Any], run: Callable[[Saver], Cost], times: int = 3) -> Cost:
    """The cheapest of a few runs, each over a saver of its own: others may be at work on the machine."""
    costs = []
    for _ in range(times):
        with kind() as saver:
            costs.append(run(saver))
    return Cost(min(each.wall for each in costs), min(each.cpu for each in costs))


def report() -> Table:
    """Costs per completed step in a chain, milliseconds by the wall and (of CPU)."""
    idle = least(in_memory, lambda _: by_itself())
    heads = ("all of it", "bare super-steps", "LangGraph, our channels", "tool by itself", "on top of both")
    table = Table("per completed step, ms (CPU)", *heads)
    for name, kind in (("in memory", in_memory), ("SQLite, durable", durable)):
        single, same = (least(kind, each) for each in (bare, thoughtless))
        for effect in ("read_only", "mutating"):
            whole = least(kind, partial(ours, effect=effect))
            row = (whole, single, same, idle, whole - single - idle)
            table.add_row(f"{name}, {effect}", *(str(each) for each in row))
        table.add_row(f"{name}, side by side", str(least(kind, partial(ours, side_by_side=True))))
    return table

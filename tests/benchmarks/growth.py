"""Does a long run keep its pace and its size? Thousands of steps on SQLite: bytes on disk, and time by tenths."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain as joined
from itertools import pairwise, repeat
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from langchain_core.tools import BaseTool, StructuredTool
from rich.table import Table

from agent import Goal, Settings, build_graph, contract
from agent.store.checkpoints import open_saver
from agent.store.database import open_database
from tests.benchmarks.drivers import CONFIG

MEGABYTE = 1_000_000
SIDE_BY_SIDE = 60
"""Lanes of a wide plan."""


@dataclass(frozen=True)
class Growth:
    """What one run left behind."""

    steps: int
    seconds: float
    stored: int
    """Bytes on disk, after the last connection has closed."""
    wall: tuple[float, ...]
    """Seconds of each tenth of the steps; the first tenth has the planning in it only from its first step on."""
    cpu: tuple[float, ...]
    reading: float
    """Seconds to read the whole state back at the end."""
    tables: dict[str, int]
    """Bytes of what each table and its indices hold."""

    @property
    def flat(self) -> float:
        """CPU time of the last tenth over that of the first: 1 is a run that does not slow down."""
        return self.cpu[-1] / self.cpu[0]


def chain(steps: int) -> list[tuple[str, tuple[str, ...]]]:
    """Names of artifacts, each made from the one before."""
    return [(f"a{each}", (f"a{each - 1}",) if each else ()) for each in range(steps)]


def lanes(steps: int) -> list[tuple[str, tuple[str, ...]]]:
    """Names of artifacts in chains side by side."""
    return [(f"a{n}", (f"a{n - SIDE_BY_SIDE}",) if n >= SIDE_BY_SIDE else ()) for n in range(steps)]


def grown(plan: Sequence[tuple[str, tuple[str, ...]]], effect: str = "read_only", bodies: Sequence[str] = ()) -> Growth:
    """Run a plan of steps that do nothing; `bodies` are what the first of them make beside their names."""
    clocks: list[tuple[float, float]] = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "grown.db"
        with open_database(file):
            saver = open_saver(file)
            given = zip(plan, joined(bodies, repeat("")), strict=False)
            tools = [_tool(name, needs, effect, clocks, body) for (name, needs), body in given]
            graph = build_graph(tools, settings=Settings(), checkpointer=saver)
            needed = {each for _, needs in plan for each in needs}
            begun = time.perf_counter()
            end = graph.invoke({"goal": Goal(wants=tuple(name for name, _ in plan if name not in needed))}, CONFIG)
            passed = time.perf_counter() - begun
            assert end["outcome"].status == "satisfied", end["outcome"].reason
            begun = time.perf_counter()
            graph.get_state(CONFIG)
            reading = time.perf_counter() - begun
            del graph
            saver.conn.close()
        tables = _tables(file)
        stored = sum(each.stat().st_size for each in Path(folder).iterdir())
    walls, cpus = (_tenths([each[which] for each in clocks]) for which in (0, 1))
    return Growth(len(plan), passed, stored, walls, cpus, reading, tables)


def _tool(name: str, needs: tuple[str, ...], effect: str, clocks: list[tuple[float, float]], body: str) -> BaseTool:
    def work() -> dict[str, str]:
        clocks.append((time.perf_counter(), time.process_time()))
        return {"made": name, "body": body}

    tool = StructuredTool.from_function(work, name=f"make_{name}", description="Make it.")
    return contract(needs=needs, produces=name, effect=effect, ensures=f"artifacts.{name}.made == '{name}'")(tool)


def _tenths(moments: list[float]) -> tuple[float, ...]:
    at = [moments[len(moments) * tenth // 10] for tenth in range(10)] + [moments[-1]]
    return tuple(later - earlier for earlier, later in pairwise(at))


def _tables(file: Path) -> dict[str, int]:
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            rows = opened.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 4")
            return {str(name): int(size) for name, size in rows}
        except sqlite3.OperationalError:  # an SQLite built without it
            return {}


def report(steps: int) -> Table:
    """A line for each shape of a long run."""
    table = Table(
        "long run, SQLite", "steps", "on disk", "per step", "ms per step", "last tenth / first, CPU", "read back"
    )
    runs = {
        "chain": grown(chain(steps)),
        f"{SIDE_BY_SIDE} side by side": grown(lanes(steps)),
        "chain of writes": grown(chain(steps // 10), "mutating"),
    }
    for name, run in runs.items():
        table.add_row(
            name,
            str(run.steps),
            f"{run.stored / MEGABYTE:.1f} MB",
            f"{run.stored / run.steps / 1000:.1f} kB",
            f"{mean(run.wall) * 10 / run.steps * 1000:.1f}",
            f"{run.flat:.2f}",
            f"{run.reading:.2f} s",
        )
    large = grown(chain(50), bodies=["x" * MEGABYTE])
    table.add_row("50 steps over 1 MB", "50", f"{large.stored / MEGABYTE:.2f} MB", "", "", "", f"{large.reading:.2f} s")
    return table

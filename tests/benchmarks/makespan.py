"""How long does a run take against the critical path of its plan, and what does one step cost? Run by `make bench`.

Every ratio is of two measurements of one run of this program; times alone depend on the machine.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.dags import Task, critical_path, measured, ragged, scaled
from tests.benchmarks.drivers import (
    bare_superstep,
    in_memory,
    in_waves,
    through_ainvoke,
    through_invoke,
    through_stock_invoke,
)

SEEDS = range(1, 6)
WORKFLOW_SECONDS = 8.0
"""What the critical path of a measured workflow is scaled to."""

console = Console()


def main() -> None:
    options = _options()
    worst = _compare({f"seed {seed}": ragged(seed) for seed in options.seeds})
    console.print(f"worst makespan / critical path: {worst:.3f} (has to be <= 1.15; wanted: <= 1.05)\n")
    if options.workflows:
        files = sorted(options.workflows.glob("*.json"))
        _compare({file.stem: measured(file, options.seconds) for file in files})
    _costs()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--workflows", type=Path, help="folder of measured workflows in wfcommons format")
    parser.add_argument("--seconds", type=float, default=WORKFLOW_SECONDS, help="their critical path is scaled to it")
    return parser.parse_args()


def _compare(dags: dict[str, tuple[Task, ...]]) -> float:
    """Print one line for each DAG; returns the worst of our ratios."""
    table = Table("DAG", "steps", "critical path", "invoke", "ainvoke", "LangGraph Send waves")
    worst = 0.0
    for name, tasks in dags.items():
        shortest = critical_path(tasks)
        ours = [run(tasks) / shortest for run in (through_invoke, through_ainvoke)]
        waves = in_waves(tasks) / shortest
        table.add_row(name, str(len(tasks)), f"{shortest:.2f} s", *(f"{each:.3f}" for each in (*ours, waves)))
        worst = max(worst, *ours)
    console.print(table)
    return worst


def _costs() -> None:
    """Print what the runtime itself costs for each step, with tools that do nothing."""
    chain = tuple(Task(f"t{n}", 0.0, (f"t{n - 1}",) if n else ()) for n in range(30))
    bare = bare_superstep()
    table = Table("runtime cost per completed step", "30 side by side", "30 in a chain", "in bare super-steps")
    runs: dict[str, Callable[[Sequence[Task]], float]] = {
        "in memory": in_memory,
        "SQLite, invoke": through_invoke,
        "SQLite, ainvoke": through_ainvoke,
        "SQLite with LangGraph's pragmas": through_stock_invoke,
    }
    for name, run in runs.items():
        wide, long = (run(each) / 30 for each in (scaled(ragged(1), 0.0), chain))
        table.add_row(name, f"{wide * 1000:.1f} ms", f"{long * 1000:.1f} ms", f"{long / bare:.1f}")
    console.print(table)
    console.print(f"a bare LangGraph super-step in memory: {bare * 1000:.2f} ms")


if __name__ == "__main__":
    main()

"""How long does a run take against the critical path of its plan, what does a step cost, and what does it leave?

Run by `make bench`.

Every ratio is of two measurements of one run of this program; times alone depend on the machine.
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks import growth, overhead
from tests.benchmarks.dags import Task, critical_path, measured, ragged
from tests.benchmarks.drivers import in_waves, through_ainvoke, through_invoke

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
    console.print(overhead.report())
    console.print(growth.report(options.steps))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--workflows", type=Path, help="folder of measured workflows in wfcommons format")
    parser.add_argument("--seconds", type=float, default=WORKFLOW_SECONDS, help="their critical path is scaled to it")
    parser.add_argument("--steps", type=int, default=3000, help="steps of the long runs")
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


if __name__ == "__main__":
    main()

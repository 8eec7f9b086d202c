"""What does `kintsugi mutate` do? It replays a scenario, or a thread's tools and goal, and prints the matrix."""

from functools import partial
from pathlib import Path

from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from agent.cli.document import spelled
from agent.cli.exits import BadInput, Code, bad_input
from agent.cli.home import Home, open_home
from agent.cli.screen import console, errors, is_terminal
from agent.cli.supply import scenario_of, tools_of
from agent.core.contract import EffectClass
from agent.core.goal import Goal
from agent.core.identifier import identifier
from agent.mutation.ground import Open, ground_in, ground_of
from agent.mutation.kinds import KINDS
from agent.mutation.kit import mutate_ground
from agent.mutation.matrix import MATRIX
from agent.mutation.replay import built
from agent.mutation.report import Report, by_kind
from agent.scenarios import SCENARIOS
from agent.settings import Settings
from agent.store.database import place_of
from agent.tools.registry import Registry


def mutate(settings: Settings, name: str, json: bool, real: bool, most: int | None, seed: int, jobs: int) -> Code:
    """Replay, and tell what holds."""
    ground = _ground(settings, name, real)
    if real:
        jobs = 1  # a thread's own tools all write to one world, and would find each other's work there
    with bad_input(), Progress(console=errors(), transient=True, disable=json or not is_terminal()) as bar:
        task = bar.add_task(f"replaying {name}", total=None)
        watch = partial(_show, bar, task)
        report = mutate_ground(ground, built, KINDS, settings, seed, most, jobs, watch)
    if json:
        print(spelled(report.document()))
    else:
        tell(name, report)
    return Code.SATISFIED if report.holds else Code.UNSATISFIED


def tell(name: str, report: Report) -> None:
    """Print the matrix, what contradicts it, and the depth of repair for each kind of mutation."""
    screen = console()
    replays, unreached = len(report.verdicts), sum(not each.reached for each in report.verdicts)
    missed = f", {unreached} of them past the point" if unreached else ""
    screen.print(f"[bold]{name}[/]: {report.steps} steps, {report.points} points, {replays} replays{missed}\n")
    screen.print(_matrix(report), soft_wrap=False)
    for row in MATRIX:
        for said in list(report.failed(row))[:10]:
            screen.print(Text(f"  {row.name}: {said}", "red"))
    screen.print()
    screen.print(_kinds(report), soft_wrap=False)
    ratio = f"\nRepair depth over the oracle's: [bold]{report.ratio:.2f}[/]"
    screen.print(f"{ratio}; planner calls for a local break: [bold]{report.planner_calls}[/]")


def _show(bar: Progress, task: object, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)  # type: ignore[arg-type] # rich's TaskID, which is an int


def _ground(settings: Settings, name: str, real: bool) -> Open:
    """Where to replay: a scenario in a world of its own, else the tools and the goal of a thread.

    Raises:
        BadInput: there is neither, or the thread's tools write and nobody allowed that.
    """
    if name in SCENARIOS:
        return ground_in(SCENARIOS[name])
    known = f"there is no scenario or thread {name!r}; scenarios: {', '.join(SCENARIOS)}"
    place = place_of(settings)
    if isinstance(place, Path) and not place.exists():
        raise BadInput(known)
    with open_home(settings, make=False) as home:
        with bad_input():
            run = home.runs.get(identifier(name))
        if run is None:
            raise BadInput(known)
        scenario = scenario_of(run.tools)
        return ground_in(scenario) if scenario else _own(home, name, run.tools or settings.sources, real)


def _own(home: Home, thread: str, reference: str | None, real: bool) -> Open:
    """A thread's own tools, loaded anew for every replay."""
    goal: Goal | None = home.values(thread).get("goal")
    if reference is None or goal is None or not goal.stated:
        raise BadInput(f"thread {thread!r} has no tools or no stated goal to replay")
    writing = [
        name for name, each in Registry(tools_of(reference)).contracts.items() if each.effect is EffectClass.MUTATING
    ]
    if writing and not real:
        raise BadInput(
            f"the replays call {', '.join(writing)} for real, hundreds of times; say --real if they work on a world "
            "that is made for tests"
        )
    return ground_of(partial(tools_of, reference), goal)


def _matrix(report: Report) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("Claim", "It proves", "Checked", "Failed", "If it fails, fix"):
        table.add_column(name, justify="right" if name in ("Checked", "Failed") else "left")
    for row in MATRIX:
        failed = sum(row.name in each.failures for each in report.verdicts)
        mark = Text(str(failed), "bold red" if failed else "green")
        table.add_row(row.claim, row.proves, str(len(report.verdicts)), mark, Text(row.layer, "dim"))
    return table


def _kinds(report: Report) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("Mutation", "What happens", "Replays", "Satisfied", "Done again", "Had to be"):
        table.add_column(name, justify="left" if name in ("Mutation", "What happens") else "right")
    for kind, found in by_kind(report, KINDS):
        numbers = (
            len(found),
            sum(each.status == "satisfied" for each in found),
            sum(each.taken for each in found),
            sum(each.needed for each in found),
        )
        table.add_row(kind.name, Text(kind.says, "dim"), *map(str, numbers))
    return table

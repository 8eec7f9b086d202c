"""What does `kintsugi stats` print? How the runs of a home folder fared, by class of task, and what to mend."""

import asyncio
from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from agent.cli.document import spelled
from agent.cli.home import Home, open_home
from agent.cli.screen import COLOURS, console
from agent.core.failure import Origin
from agent.core.ladder import Rung
from agent.core.metrics import Metrics, diagnosis, measured, together
from agent.core.value import JsonValue
from agent.settings import Settings
from agent.store.journal import DatabaseJournal
from agent.store.runs import Run

ALL = "all"


def stats(settings: Settings, json: bool) -> None:
    """Measure all threads, and print the classes and the whole."""
    with open_home(settings, make=False) as home:
        classes = _classes(home)
    if json:
        found: dict[str, JsonValue] = {name: _document(each) for name, each in classes.items()}
        print(spelled({"all": _document(together(classes.values())), "classes": found}))
    else:
        _tell(classes)


def class_of(run: Run) -> str:
    """Tasks over the same tools are of one class: what breaks for them breaks alike."""
    return (run.tools or "no tools").removeprefix("scenario:")


def _classes(home: Home) -> dict[str, Metrics]:
    found: dict[str, Metrics] = {}
    for run in home.runs.list():
        effects = asyncio.run(DatabaseJournal(home.database).entries(run.thread))
        one = measured(home.values(run.thread).get("trace", []), effects)
        found[class_of(run)] = found.get(class_of(run), Metrics()).plus(one)
    return dict(sorted(found.items()))


def _document(metrics: Metrics) -> JsonValue:
    return {
        "runs": metrics.runs,
        "satisfied": metrics.satisfied,
        "repairs": metrics.repairs,
        "repair_rate": metrics.repair_rate,
        "repair_depth": metrics.repair_depth,
        "reused_artifact_rate": metrics.reuse_rate,
        "duplicate_effects": metrics.duplicate_effects,
        "rungs": {each.value: metrics.rungs.get(each, 0) for each in Rung},
        "origins": {each.value: metrics.origins.get(each, 0) for each in Origin},
        "diagnosis": list(diagnosis(metrics)),
    }


def _tell(classes: Mapping[str, Metrics]) -> None:
    screen, whole = console(), together(classes.values())
    screen.print(_table({**classes, ALL: whole} if len(classes) > 1 else classes), soft_wrap=False)
    screen.print()
    screen.print(_shares("Recoveries", {each.value: whole.rungs.get(each, 0) for each in Rung}))
    screen.print(_shares("Origins", {each.value: whole.origins.get(each, 0) for each in Origin}))
    for name, metrics in classes.items():
        for said in diagnosis(metrics):
            screen.print(Text.assemble((f"{name}: ", "bold"), said))


def _table(classes: Mapping[str, Metrics]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("Tasks", no_wrap=True)
    for name in ("Runs", "Satisfied", "Repairs per run", "Depth", "Reused", "Written twice"):
        table.add_column(name, justify="right")
    for name, each in classes.items():
        table.add_row(
            Text(name, "bold"),
            str(each.runs),
            str(each.satisfied),
            f"{each.repair_rate:.2f}",
            f"{each.repair_depth:.0%}",
            f"{each.reuse_rate:.0%}",
            Text(str(each.duplicate_effects), "bold red" if each.duplicate_effects else ""),
        )
    return table


def _shares(title: str, counts: Mapping[str, int]) -> Text:
    total = sum(counts.values())
    said = Text(f"{title}: ", "bold")
    for name, count in counts.items():
        if count:
            said.append(f"{name} {count} ({count / total:.0%})  ", COLOURS.get(name, ""))
    return said if total else said.append("none")

"""What do the commands that only read print? A thread's story, the list of threads, and the doctor's findings."""

from collections.abc import Sequence
from datetime import datetime
from json import dumps

from rich.table import Table
from rich.text import Text

from agent.cli.doctor import findings
from agent.cli.exits import Code
from agent.cli.home import STOPPED, Home, open_home
from agent.cli.screen import COLOURS, console, is_terminal
from agent.core.outcome import OutcomeStatus
from agent.core.plan import Plan
from agent.core.recompute import recomputed
from agent.core.record import TraceRecord
from agent.settings import Settings
from agent.store.runs import RUNNING, WAITING, Run
from agent.trace.story import story

_STATUS = {OutcomeStatus.SATISFIED: "green", RUNNING: "cyan", WAITING: "yellow", STOPPED: "yellow"}
_KEYWORDS = {"commit": "green", "failed": "red", "invalid": "yellow", "end": "bold", "run": "bold", "goal": "bold"}


def trace(settings: Settings, thread: str, json: bool) -> Code:
    """Print the records of a thread."""
    records, plan = _records(settings, thread)
    if json:
        for record in records:
            print(record.model_dump_json())
        return Code.SATISFIED
    screen = console()
    for seconds, keyword, said in story(records, plan):
        colour = _KEYWORDS.get(keyword) or COLOURS.get(keyword, "dim")
        screen.print(Text.assemble((f"{seconds:8.3f}  ", "dim"), (f"{keyword:<9}", colour), said))
    return Code.SATISFIED


def verify(settings: Settings, thread: str, json: bool) -> Code:
    """Make every decision of a thread once more, and print those that come out otherwise; with `json` all of them."""
    records, _ = _records(settings, thread)
    decisions = tuple(recomputed(records))
    wrong = [each for each in decisions if each.differs]
    for each in decisions if json else ():
        event = each.record.event
        print(dumps({"record": each.place, "event": event, "at": each.record.at, "differs": each.differs}))
    if not json:
        screen = console()
        for each in wrong:
            for said in each.differs:
                screen.print(Text.assemble((f"record {each.place} ({each.record.event}): ", "bold red"), said))
        differ = f"; of {len(wrong)} the record says otherwise" if wrong else ", and all follow from their records"
        screen.print(f"{len(decisions)} decisions were made once more{differ}", markup=False)
    return Code.BUG if wrong else Code.SATISFIED


def _records(settings: Settings, thread: str) -> tuple[Sequence[TraceRecord], Plan]:
    """The records of a thread, and its plan."""
    with open_home(settings, make=False) as home:
        home.run(thread)
        state = home.values(thread)
    return state.get("trace", []), state.get("plan", Plan())


def names(settings: Settings) -> tuple[str, ...]:
    """All threads, the one that changed last first."""
    with open_home(settings, make=False) as home:
        return tuple(each.thread for each in home.runs.list())


def threads(settings: Settings, json: bool = False) -> None:
    """Print the table of runs, or a line of JSON for each."""
    with open_home(settings, make=False) as home:
        if json:
            for each in home.runs.list():
                print(dumps({**each.model_dump(mode="json"), "status": home.status(each)}))
            return
        terminal = is_terminal()
        table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", expand=terminal)
        for name in ("thread", "status", "started", "updated"):
            table.add_column(name, no_wrap=True)
        # on a terminal the goal gives way; in a pipe nothing does
        table.add_column("goal", no_wrap=True, overflow="ellipsis", ratio=1 if terminal else None)
        for run in home.runs.list():
            table.add_row(*_row(home, run))
        console().print(table, soft_wrap=False)


def doctor(settings: Settings) -> Code:
    """Print what was found; anything configured that is broken makes it a failure."""
    screen, fine = console(), True
    for each in findings(settings):
        mark = Text("  ok    ", "green") if each.fine else Text("  BROKEN", "bold red")
        screen.print(Text.assemble(mark, f"  {each.what:<11}", each.said))
        fine = fine and each.fine
    return Code.SATISFIED if fine else Code.USAGE


def _row(home: Home, run: Run) -> tuple[Text, ...]:
    status = home.status(run)
    return (
        Text(run.thread, "bold"),
        Text(status.replace("_", " "), _STATUS.get(status, "red")),
        Text(_local(run.started_at)),
        Text(_local(run.updated_at)),
        Text(run.goal),
    )


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")

"""What is a person told at the end? Recoveries, marks, the outcome with what was achieved, and what to do next."""

import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent.cli.asking import show
from agent.cli.board import spent
from agent.cli.home import Home
from agent.cli.screen import COLOURS
from agent.cli.session import Standing
from agent.core.limits import Ledger, Limits
from agent.core.outcome import Outcome, OutcomeStatus
from agent.core.predicate import Verdict
from agent.scenarios import Scenario
from agent.scenarios.marking import Marking
from agent.trace.costs import paid
from agent.trace.recoveries import recoveries, worth_telling


def tell_recoveries(console: Console, standing: Standing) -> None:
    """Print every recovery of the last run: what went wrong, and what was done about it."""
    state = standing.state
    taken = worth_telling(recoveries(state["trace"], state["plan"]), state["ledger"].run) if state else ()
    if not taken:
        return
    console.print("\n[bold]Recoveries[/]")
    table = Table.grid(padding=(0, 2))
    for each in taken:
        error = Text(each.error, overflow="ellipsis", no_wrap=True)
        table.add_row(Text(f"  {each.rung}", COLOURS[each.rung]), Text(each.about), error)
        table.add_row("", "", Text(f"-> {each.done}", "dim"))
    console.print(table, soft_wrap=False)


def tell_marking(console: Console, scenario: Scenario, standing: Standing) -> None:
    """Print what each event marked, as the table of the planning loop's own description."""
    for each in scenario.marking(standing.state):
        console.print(f"\n[bold]Marked:[/] {each.cause}")
        console.print(_marking(each), soft_wrap=False)


def tell_outcome(console: Console, home: Home, thread: str, standing: Standing) -> None:
    """Print how it ended, what there is, and how to go on."""
    console.print()
    outcome = standing.outcome
    if outcome is None:
        _tell_waiting(console, home, thread, standing)
    elif outcome.status is OutcomeStatus.SATISFIED:
        console.print(f"[bold green]Satisfied[/]: {_satisfied(outcome, standing)}")
    else:
        _tell_unsatisfied(console, home, thread, outcome)


def tell_spent(console: Console, limits: Limits, standing: Standing) -> None:
    """Print what the last run used: attempts and rungs, and of each role its models, turns and tokens."""
    if not standing.state:
        return
    ledger: Ledger = standing.state["ledger"]
    roles = paid(ledger)
    console.print(Text(f"\nSpent: {spent(ledger, limits)}" + ("" if roles else " · no model was asked"), "dim"))
    if roles:
        table = Table.grid(padding=(0, 2))
        for each in roles:
            called = _counted(each.calls, "turn" if each.role == "executor" else "call")
            read, written = f"{each.tokens_in:,} tokens read", f"{each.tokens_out:,} written"
            table.add_row(
                *(Text(said, "dim") for said in (f"  {each.role}", each.models or "unnamed", called, read, written))
            )
        console.print(table, soft_wrap=False)


def tell_check(console: Console, differences: list[str]) -> None:
    """Print what a scenario's world is like, compared with an undisturbed run."""
    if not differences:
        console.print("[bold green]Checked[/]: the end state is that of an undisturbed run.")
    for each in differences:
        console.print("[bold red]Differs[/]: ", end="")
        console.print(each, markup=False)


def _marking(marking: Marking) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("  Step", "Status before", "Status after", "Artifact", "Reusable?"):
        table.add_column(name, no_wrap=name != "Reusable?")
    for row in marking.rows:
        reusable = Text(f"{'Yes' if row.reusable else 'No'}: {row.why}", "" if row.reusable else "yellow")
        before, after = (Text(each, COLOURS.get(each, "")) for each in (row.before, row.after))
        table.add_row(f"  {row.label}", before, after, row.artifact, reusable)
    return table


def _satisfied(outcome: Outcome, standing: Standing) -> str:
    held = sum(each.valid for each in outcome.artifacts.values())
    artifacts = _counted(held, "artifact")
    if standing.idle:
        return f"nothing was done again, for all of it still holds ({artifacts})."
    return f"{outcome.reason} ({artifacts}, {_counted(standing.started, 'attempt')})."


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _tell_waiting(console: Console, home: Home, thread: str, standing: Standing) -> None:
    console.print("[bold yellow]Waiting[/] for a person.")
    for each in standing.questions.values():
        show(console, each)
    first = {each.id: each.choices[0].value for each in standing.questions.values()}
    example = json.dumps(first) if len(first) > 1 else next(iter(first.values()))
    command = home.command("resume", thread, "--answer", example)
    console.print(f"\nAnswer with: {command}", markup=False)


def _tell_unsatisfied(console: Console, home: Home, thread: str, outcome: Outcome) -> None:
    console.print(f"[bold red]{str(outcome.status).replace('_', ' ').capitalize()}[/]: ", end="")
    console.print(outcome.reason, markup=False)
    for grade in outcome.grades:
        verified = grade.verdict is Verdict.VERIFIED
        line = f"  {grade.verdict:<12} {grade.predicate}" + (f" ({grade.reason})" if grade.reason else "")
        console.print(Text(line, "green" if verified else "red"))
    for each in outcome.artifacts.values():
        if each.valid:
            console.print(Text(f"  kept         {each.name} (version {each.version})"))
    for step, why in outcome.unfinished.items():
        console.print(Text(f"  not done     {step}: {why}", "dim"))
    console.print(f"\nWhy, step by step: {home.command('trace', thread)}", markup=False)

"""What do all commands that run a thread have in common? Who watches, who answers, and what is told at the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from langgraph.types import Command
from rich.console import Console
from rich.text import Text

from agent.cli.asking import AtTerminal, Given, Nobody, Person
from agent.cli.board import Board
from agent.cli.document import document, spelled
from agent.cli.driving import Interrupted, drive, title
from agent.cli.exits import BadInput, Code, bad_input, code_of
from agent.cli.report import tell_check, tell_marking, tell_outcome, tell_recoveries, tell_spent
from agent.cli.screen import console, errors, is_conversation, is_terminal
from agent.cli.session import Session, Standing
from agent.cli.watching import LineWatch, LiveWatch, NoWatch, Watch
from agent.core.goal import Goal
from agent.core.limits import Ledger
from agent.core.plan import Plan
from agent.goal_file import load_goal
from agent.store.connection import DatabaseLost
from agent.trace.durations import usual


@dataclass(frozen=True)
class Manner:
    """How a command talks."""

    json: bool = False
    answer: str | None = None
    """Given on the command line, for the question that is open."""
    reason: str = ""


def work(session: Session, given: object, manner: Manner, source: str | None = None) -> Code:
    """Run a thread on, and tell what came of it.

    Args:
        session: the thread.
        given: what the graph is called with; None: go on where it stopped.
        manner: how to talk.
        source: goal file or scenario, for the index.
    """
    screen = console()
    if not manner.json:
        _tell_start(screen, session, given)
    try:
        standing = drive(session, given, _watch(screen, session, manner), _person(screen, manner), source)
    except (Interrupted, DatabaseLost) as stopped:
        again = session.home.command("resume", session.thread)
        kept = "; the state is kept" if isinstance(stopped, Interrupted) else ""
        errors().print(f"{stopped}{kept}. Go on with: {again}", markup=False)
        return Code.INTERRUPTED
    return tell(session, standing, manner)


def resume(session: Session, manner: Manner) -> Code:
    """Go on with a thread: after a kill, after Ctrl-C, with an answer, or not at all when it has ended."""
    standing = session.standing()
    if standing.questions:
        answers = _person(console(), manner, answering=True).ask(standing.questions, standing.state["plan"])
        return tell(session, standing, manner) if answers is None else work(session, Command(resume=answers), manner)
    if manner.answer is not None:
        raise BadInput(f"thread {session.thread!r} asks nothing; resume it without --answer")
    if standing.unfinished:
        return work(session, None, manner)
    left = session.home.left_goal(session.thread, standing.state)
    goal = left or (None if standing.state else _accepted(session))
    return tell(session, standing, manner) if goal is None else work(session, {"goal": goal}, manner)


def tell(session: Session, standing: Standing, manner: Manner) -> Code:
    """Print how a thread stands, as a document or in words."""
    scenario, workspace = session.supply.scenario, session.supply.workspace
    code, differences = code_of(standing.outcome), None
    if scenario and workspace and code is Code.SATISFIED:
        differences = scenario.check(workspace)
    if manner.json:
        limits = session.home.settings.limits
        made = document(session.thread, standing.state, standing.questions, limits, scenario, differences)
        print(spelled(made))
    else:
        _tell_in_words(session, standing, differences)
    return Code.BUG if differences else code


def _tell_in_words(session: Session, standing: Standing, differences: list[str] | None) -> None:
    screen = console()
    if not standing.idle:
        tell_recoveries(screen, standing)
    if session.supply.scenario and not standing.idle:
        tell_marking(screen, session.supply.scenario, standing)
    if not standing.idle:
        tell_spent(screen, session.home.settings.limits, standing)
    tell_outcome(screen, session.home, session.thread, standing)
    if differences is not None:
        tell_check(screen, differences)


def _tell_start(screen: Console, session: Session, given: object) -> None:
    goal = given["goal"] if isinstance(given, dict) else session.standing().state.get("goal", Goal())
    screen.print(Text(title(goal), "bold"))
    screen.print(Text(" · ".join([f"thread {session.thread}", *session.supply.notes]), "dim"))
    screen.print()


def _watch(screen: Console, session: Session, manner: Manner) -> Watch:
    if manner.json:
        return NoWatch()
    state = session.standing().state
    plan, ledger = state.get("plan", Plan()), state.get("ledger", Ledger())
    if not is_terminal():
        return LineWatch(screen, plan)
    known = {**_before(session), **usual(state.get("trace", ()), plan)}
    return LiveWatch(screen, Board(session.home.settings.limits, plan, ledger, known))


def _before(session: Session) -> Mapping[str, float]:
    """Seconds that the tools took on the last other thread that used them."""
    runs = (each for each in session.home.runs.list() if each.tools == session.reference)
    other = next((each.thread for each in runs if each.thread != session.thread), None)
    if other is None:
        return {}
    try:
        state = session.home.values(other)
    except BadInput:  # of a later release; this run is another matter
        return {}
    return usual(state.get("trace", ()), state.get("plan", Plan()))


def _person(screen: Console, manner: Manner, answering: bool = False) -> Person:
    """Who answers: the command line, for what is open already; then whoever sits at the terminal."""
    present: Person = AtTerminal(screen) if is_conversation() and not manner.json else Nobody()
    given = answering and manner.answer is not None
    return Given(manner.answer or "", manner.reason, present) if given else present


def _accepted(session: Session) -> Goal:
    """The goal of a run that was killed before its first checkpoint, from where it was stated."""
    run = session.home.run(session.thread)
    if session.supply.goal is not None:
        return session.supply.goal
    with bad_input():
        return load_goal(Path(run.source)) if run.source else Goal(text=run.goal)

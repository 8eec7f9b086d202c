"""What happens between accepting a run and its end? Calls of the graph, answers, changed goals, and the index."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from langgraph.types import Command

from agent.cli.asking import Person
from agent.cli.screen import errors
from agent.cli.session import Session, Standing
from agent.cli.watching import Watch
from agent.core.goal import Goal
from agent.core.lease import Halt
from agent.core.record import StepStarted
from agent.store.hold import Hold
from agent.store.runs import WAITING


class Interrupted(Exception):
    """The run was stopped, by Ctrl-C or on request; the state is kept. The message says how."""


def drive(session: Session, given: object, watch: Watch, person: Person, source: str | None = None) -> Standing:
    """Run a thread on until it ends or waits.

    Args:
        session: the thread.
        given: what the graph is called with: a goal, a command, or None to go on where it stopped.
        watch: who looks on.
        person: who answers questions.
        source: goal file or scenario, for the index.

    Raises:
        Interrupted: by Ctrl-C, SIGTERM or `kintsugi stop`. Everything that was verified is in the checkpoint.
    """
    before = _attempts(session.standing())
    while True:
        _accept(session, given, source)
        _call(session, given, watch)
        standing = session.standing()
        if standing.outcome and standing.unfinished:
            raise Interrupted("Stopped on request")
        status = standing.outcome.status if standing.outcome else WAITING
        session.home.runs.ended(session.thread, status, at=time.time())
        given = _next(session, person, standing)
        if given is None:
            return replace(standing, started=_attempts(standing) - before, ran=True)


def title(goal: Goal) -> str:
    """A goal in a line: its text, or what it wants."""
    criteria = [each.text or each.predicate or each.id for each in goal.criteria]
    return " ".join((goal.text or ", ".join(goal.wants) or "; ".join(criteria)).split())


def _accept(session: Session, given: object, source: str | None) -> None:
    """Put the run into the index, before anything is done."""
    goal = given["goal"] if isinstance(given, dict) else session.standing().state.get("goal")
    name = title(goal) if goal else session.home.run(session.thread).goal
    session.home.runs.started(session.thread, goal=name, at=time.time(), tools=session.reference, source=source)


def _call(session: Session, given: object, watch: Watch) -> None:
    with _interruptible(session.hold), watch:
        for part in session.graph.stream(given, session.config, stream_mode="updates"):
            for update in part.values():
                if isinstance(update, Mapping):
                    watch.take(update)


def _next(session: Session, person: Person, standing: Standing) -> object:
    """What to call the graph with again: answers, or a goal that arrived too late for the run; None: neither."""
    if standing.questions:
        answers = person.ask(standing.questions, standing.state["plan"])
        return None if answers is None else Command(resume=answers)
    goal = session.home.left_goal(session.thread, standing.state)
    return None if goal is None else {"goal": goal}


def _attempts(standing: Standing) -> int:
    return sum(isinstance(each, StepStarted) for each in standing.state.get("trace", ()))


@contextmanager
def _interruptible(hold: Hold) -> Iterator[None]:
    """Ctrl-C cancels, SIGTERM drains; a second one of either leaves at once."""

    def cancel(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        errors().print("\nStopping. Writes in flight are finished first; Ctrl-C again stops at once.", style="yellow")
        raise KeyboardInterrupt

    def drain(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, before[signal.SIGTERM])
        errors().print("\nDraining: what writes is finished first; a second signal stops at once.", style="yellow")
        hold.ask(Halt.DRAIN)

    stops = {signal.SIGINT: cancel, signal.SIGTERM: drain}
    before = {number: signal.signal(number, stop) for number, stop in stops.items()}
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("Interrupted") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

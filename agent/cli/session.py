"""What does it take to work on a thread? Its lease, tools, checkpoints, model and graph, all open at once."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from agent.app import assemble
from agent.cli.exits import BadInput, bad_input
from agent.cli.home import Home, config_of, snapshot_of
from agent.cli.supply import Supply, supplied
from agent.core.control import Question, Questions
from agent.core.goal import Goal
from agent.core.lease import Busy
from agent.core.outcome import Outcome
from agent.models.local.serving import ServerFailed, with_local
from agent.models.roles import named
from agent.settings import Settings
from agent.store.checkpoints import open_saver
from agent.store.hold import Hold
from graphs.loop import LoopGraph

NEEDS_MODEL = (
    "a goal that is only text needs a model to plan it: name one with --model or KINTSUGI_MODEL, and its key in "
    "OPENAI_API_KEY. A goal that states `wants` and `criteria` needs neither model nor key"
)


@dataclass(frozen=True)
class Standing:
    """How a thread stands after it was driven, or where it was found."""

    state: Mapping[str, Any]
    questions: dict[str, Question] = field(default_factory=dict)
    started: int = 0
    """Attempts that this command started."""
    ran: bool = False
    """It was driven by this command, not only found."""
    unfinished: bool = False
    """It was stopped in the middle and can go on."""

    @property
    def idle(self) -> bool:
        """It was driven, and there was nothing to do."""
        return self.ran and not self.started and not self.questions

    @property
    def outcome(self) -> Outcome | None:
        """How the run ended; None while it waits."""
        found: Outcome | None = None if self.questions else self.state.get("outcome")
        return found


@dataclass(frozen=True)
class Session:
    """One thread, open to be worked on."""

    home: Home
    thread: str
    reference: str
    """Where its tools come from."""
    supply: Supply
    graph: LoopGraph
    hold: Hold
    """The thread, held from before its world is prepared until all is told, between two calls of the graph too."""

    @property
    def config(self) -> RunnableConfig:
        """How LangGraph is told which thread is meant."""
        return config_of(self.thread, self.hold)

    def standing(self) -> Standing:
        """The thread as it was last written."""
        snapshot = snapshot_of(self.graph, self.config)
        # not `next`: that leaves out a node that has written, and whose process died before its checkpoint
        return Standing(snapshot.values, questions_of(snapshot), unfinished=bool(snapshot.tasks))


def is_plannable(goal: Goal) -> bool:
    """Whether the goal names what to make, so that no model has to read it."""
    return bool(goal.wants) or any(each.predicate for each in goal.criteria)


@contextmanager
def open_session(home: Home, thread: str, reference: str, event: str | None = None) -> Iterator[Session]:
    """Open a thread, and hold it against other processes.

    Raises:
        BadInput: tools, scenario, event, model or key cannot be used, or another process works on the thread.
    """
    with (
        _held(home, thread) as hold,
        supplied(reference, home.folder, thread, partial(home.inbox.put, thread), event) as supply,
        closing((saver := open_saver(home.database)).conn),
        _served(home.settings) as settings,
    ):
        with bad_input():
            models = named(settings)
        with bad_input("--tools: "):
            graph = assemble(supply.tools, home.database, home.settings, models=models, checkpointer=saver)
        yield Session(home, thread, reference, supply, graph, hold)


def questions_of(snapshot: StateSnapshot) -> dict[str, Question]:
    """What a person is asked, by id."""
    asked: dict[str, Question] = {}
    for interrupt in snapshot.interrupts:
        asked |= Questions.model_validate(interrupt.value).questions
    return asked


@contextmanager
def _served(settings: Settings) -> Iterator[Settings]:
    """The settings with the model on this machine at work, if they name it."""
    with ExitStack() as stack:
        try:
            settings = stack.enter_context(with_local(settings))
        except (ValueError, ServerFailed) as error:
            raise BadInput(str(error)) from error
        yield settings


@contextmanager
def _held(home: Home, thread: str) -> Iterator[Hold]:
    try:
        with home.leases.held(thread) as hold:
            yield hold
    except Busy as error:
        raise BadInput(f"{error}; change its goal with `kintsugi goal`, or wait for it") from error

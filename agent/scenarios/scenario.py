"""What a scenario is: a goal, tools over a small real world, and a check of that world afterwards.

The world lies in a workspace on disk. After a kill, `prepare` over the same workspace finds everything as it
was left: files and databases are kept, threads and servers are started again.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from agent.core.goal import Goal
from agent.scenarios.marking import Marking, markings
from agent.scenarios.tally import Tally

ChangeGoal = Callable[[Goal], None]
"""Hands a new goal to the running graph; may be called from any thread."""


@dataclass(frozen=True)
class Conditions:
    """Under what a scenario runs. They are kept in the workspace, so that a resume finds them."""

    event: str | None = None
    """What happens to the world in the middle of the run."""
    faults: bool = True
    """False: an undisturbed world, to compare with."""


@dataclass(frozen=True)
class Prepared:
    """A world that is ready to be worked on."""

    goal: Goal
    """As it stands now: after a change of goal, the changed one."""
    tools: list[BaseTool]
    notes: tuple[str, ...] = ()
    """What a person should know about this world: addresses, files."""


Open = Callable[[Path, Conditions, ChangeGoal], AbstractContextManager[Prepared]]


@dataclass(frozen=True)
class Scenario:
    """A packaged, runnable example."""

    name: str
    description: str
    open: Open
    """Builds the world, or finds it again, and tends it while the context lasts."""
    check: Callable[[Path], list[str]]
    """What differs from the end state of an undisturbed run, one sentence each; empty when nothing does."""
    events: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Tool name -> short label of its step in the marking table, in the order of its rows."""

    @contextmanager
    def prepare(
        self,
        workspace: Path,
        *,
        event: str | None = None,
        faults: bool | None = None,
        change_goal: ChangeGoal | None = None,
    ) -> Iterator[Prepared]:
        """Build the world in a workspace, or find it there again.

        Args:
            workspace: folder of this world; made when it is not there.
            event: what happens in the middle of the run; default: as when the workspace was last prepared.
            faults: whether the world misbehaves; default: likewise, and true for a new workspace.
            change_goal: how an event reaches the running graph with a new goal.

        Raises:
            ValueError: when the scenario has no such event.
        """
        if event is not None and event not in self.events:
            known = ", ".join(self.events) or "none"
            raise ValueError(f"scenario {self.name!r} has no event {event!r}; it has: {known}")
        workspace.mkdir(parents=True, exist_ok=True)
        conditions = _kept(workspace, event, faults)
        with self.open(workspace, conditions, change_goal or _nobody_listens) as prepared:
            yield prepared

    def marking(self, state: Mapping[str, Any]) -> tuple[Marking, ...]:
        """What each event of the run marked, one table each; `state` is what the graph returned."""
        return markings(state["plan"], state["trace"], self.labels)

    def counts(self, workspace: Path) -> dict[str, int]:
        """How often each thing happened in this world."""
        return tally_in(workspace).counts()


def tally_in(workspace: Path) -> Tally:
    """The counters of a workspace."""
    return Tally(workspace / "counts.db")


def conditions_in(workspace: Path) -> Conditions:
    """The conditions a workspace was last prepared under."""
    path = workspace / "conditions.json"
    return Conditions(**json.loads(path.read_text())) if path.exists() else Conditions()


def _kept(workspace: Path, event: str | None, faults: bool | None) -> Conditions:
    old = conditions_in(workspace)
    new = Conditions(
        event=old.event if event is None else event,
        faults=old.faults if faults is None else faults,
    )
    write_whole(workspace / "conditions.json", json.dumps(asdict(new)))
    return new


def write_whole(path: Path, text: str) -> None:
    """Put a file in place at once: a reader, or a kill, never finds half of it."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


def _nobody_listens(goal: Goal) -> None:
    """The run will be started with the goal as it stands; nobody has to be told."""

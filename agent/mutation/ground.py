"""What does one replay work on? Fresh tools and a goal, opened for it alone and closed after it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.core.goal import Goal
from agent.scenarios.scenario import Scenario

Supply = Sequence[Any] | Callable[[], Sequence[Any] | AbstractContextManager[Sequence[Any]]]
"""Tools; or what makes fresh ones for every replay, as a list or as a context that tends their world."""


@dataclass(frozen=True)
class Ground:
    """Tools over a world of their own, the goal, and how to look at that world past all tools."""

    tools: Sequence[Any]
    goal: Goal
    check: Callable[[], list[str]] = list
    """What differs from the end state of an undisturbed run; a sentence each."""


Open = Callable[[], AbstractContextManager[Ground]]


def ground_of(supply: Supply, goal: Goal) -> Open:
    """How to open a ground over somebody's own tools."""

    @contextmanager
    def opened() -> Iterator[Ground]:
        made = supply() if callable(supply) else supply
        if isinstance(made, AbstractContextManager):
            with made as tools:
                yield Ground(tools, goal)
        else:
            yield Ground(made, goal)

    return opened


def ground_in(scenario: Scenario) -> Open:
    """How to open a packaged scenario in a folder that is thrown away; its own faults stay out of it."""

    @contextmanager
    def opened() -> Iterator[Ground]:
        with TemporaryDirectory(prefix="kintsugi-mutation-", ignore_cleanup_errors=True) as folder:
            workspace = Path(folder)
            with scenario.prepare(workspace, faults=False) as prepared:
                yield Ground(prepared.tools, prepared.goal, lambda: scenario.check(workspace))

    return opened

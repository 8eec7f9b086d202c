"""Where do a thread's tools come from? A list in a module, or the prepared world of a packaged scenario."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.cli.exits import BadInput, bad_input
from agent.core.goal import Goal
from agent.scenarios import SCENARIOS, Scenario
from agent.settings import Settings
from agent.tools.loading import load_tools, settled

_PREFIX = "scenario:"
"""In the run index: `scenario:NAME` stands for the tools of a packaged scenario."""


@dataclass(frozen=True)
class Supply:
    """What a run works with."""

    tools: Sequence[Any]
    goal: Goal | None = None
    """As the scenario states it; None for tools from a module."""
    notes: tuple[str, ...] = ()
    scenario: Scenario | None = None
    workspace: Path | None = None


def scenario_named(name: str) -> Scenario:
    """The packaged scenario of that name.

    Raises:
        BadInput: listing those there are.
    """
    if name not in SCENARIOS:
        raise BadInput(f"there is no scenario {name!r}; there are: {', '.join(SCENARIOS)}")
    return SCENARIOS[name]


def reference_of(scenario: Scenario) -> str:
    """How the run index names the tools of a scenario."""
    return f"{_PREFIX}{scenario.name}"


def scenario_of(reference: str | None) -> Scenario | None:
    """The packaged scenario that a reference of the run index stands for, if it stands for one."""
    named = reference is not None and reference.startswith(_PREFIX)
    return scenario_named(str(reference).removeprefix(_PREFIX)) if named else None


@contextmanager
def supplied(
    reference: str, home: Path, thread: str, change_goal: Callable[[Goal], None], event: str | None = None
) -> Iterator[Supply]:
    """Load the tools, or build the scenario's world, or find it again, and tend it while the context lasts.

    Raises:
        BadInput: there is no such list, scenario or event.
    """
    scenario = scenario_of(reference)
    if scenario is None:
        yield Supply(tools_of(reference))
        return
    if event is not None and event not in scenario.events:
        known = ", ".join(scenario.events) or "none"
        raise BadInput(f"scenario {scenario.name!r} has no event {event!r}; it has: {known}")
    workspace = workspace_of(home, thread)
    with scenario.prepare(workspace, event=event, change_goal=change_goal) as prepared:
        yield Supply(prepared.tools, prepared.goal, prepared.notes, scenario, workspace)


def workspace_of(home: Path, thread: str) -> Path:
    """The folder of a demo's world.

    Raises:
        BadInput: the thread cannot name a folder.
    """
    if not re.fullmatch(r"\w[\w.-]*", thread):
        raise BadInput(f"a demo's thread names a folder: use letters, digits, '.', '_' and '-', not {thread!r}")
    return home / "demo" / thread


def asked_for(settings: Settings, tools: list[str], mcp: Path | None) -> str | None:
    """What the command line says of tools, its files named from the top; None when it says nothing.

    Either option alone leaves the other one's setting as it is.

    Raises:
        BadInput: it cannot be split into words.
    """
    if not tools and mcp is None:
        return None
    named = {"tools": " ".join(tools) or settings.tools, "mcp": mcp or settings.mcp}
    with bad_input("--tools: "):
        return settled(settings.model_copy(update=named).sources or "")


def tools_of(reference: str) -> Sequence[Any]:
    """The tools of a module.

    Raises:
        BadInput: there is no such list, its module cannot be imported, or the index of runs could not keep the name.
    """
    if reference.encode(errors="ignore").decode() != reference:
        raise BadInput(
            f"--tools: {reference!r} cannot be kept, for it is no valid text: give it another name, or a link"
        )
    try:
        with bad_input("--tools: "):
            return load_tools(reference)
    except (ImportError, SyntaxError) as error:
        raise BadInput(f"--tools: {reference!r} cannot be imported: {error}") from error

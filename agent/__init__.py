"""Kintsugi: an agent runtime that never loses finished work.

from agent import Goal, build_graph, contract
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.app import build_graph
    from agent.core.failure import NothingDone
    from agent.core.goal import Criterion, Goal
    from agent.core.limits import Limits
    from agent.core.outcome import Outcome, OutcomeStatus
    from agent.settings import RunContext, Settings
    from agent.tools.contracts import contract

__all__ = [
    "Criterion",
    "Goal",
    "Limits",
    "NothingDone",
    "Outcome",
    "OutcomeStatus",
    "RunContext",
    "Settings",
    "build_graph",
    "contract",
]

_HOME = {
    "Criterion": "agent.core.goal",
    "Goal": "agent.core.goal",
    "Limits": "agent.core.limits",
    "NothingDone": "agent.core.failure",
    "Outcome": "agent.core.outcome",
    "OutcomeStatus": "agent.core.outcome",
    "RunContext": "agent.settings",
    "Settings": "agent.settings",
    "build_graph": "agent.app",
    "contract": "agent.tools.contracts",
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the graphs import the core, the composition imports the graphs, and the command
    # line answers --help without either.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)

"""Kintsugi: an agent runtime that never loses finished work.

    from agent import Goal, build_graph, contract
"""

from typing import TYPE_CHECKING, Any

from agent.core.goal import Criterion, Goal
from agent.core.limits import Limits
from agent.core.outcome import Outcome, OutcomeStatus
from agent.settings import Settings
from agent.tools.contracts import contract

if TYPE_CHECKING:
    from agent.app import build_graph

__all__ = ["Criterion", "Goal", "Limits", "Outcome", "OutcomeStatus", "Settings", "build_graph", "contract"]


def __getattr__(name: str) -> Any:
    # the graphs import the core, and the composition imports the graphs: it is loaded when it is asked for
    if name == "build_graph":
        from agent.app import build_graph

        return build_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

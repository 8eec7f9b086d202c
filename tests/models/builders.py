"""Tools and requests that the tests of planners share."""

import json
from typing import Any

from langchain_core.tools import tool

from agent.core.failure import Trigger
from agent.core.goal import Goal
from agent.core.move import PlanOrder
from agent.ports import PlanRequest
from agent.tools.contracts import contract
from agent.tools.registry import Registry


@contract(effect="read_only", produces="export", cost=2)
@tool
def fetch_export() -> dict[str, Any]:
    """Fetch the export."""
    return {}


@contract(effect="read_only", produces="rows", ensures="artifacts.rows.size() > 0")
@tool
def read_rows(export: dict[str, Any], limit: int = 10) -> list[Any]:
    """Read the rows of the export. They come in the order of the file."""
    return []


@contract(produces="summary", idempotent=True)
@tool
def post_summary(rows: list[Any], title: str = "Summary") -> str:
    """Post a summary of the rows."""
    return ""


@tool
def search(query: str, kind: str | None = None) -> str:
    """Search the web."""
    return ""


REGISTRY = Registry([fetch_export, read_rows, post_summary, search])


def request(text: str = "", wants: str = "", **more: Any) -> PlanRequest:
    """A request for a goal, as the planner node makes it."""
    goal = Goal(text=text, wants=tuple(wants.split()), **more.pop("goal", {}))
    order = more.pop("order", PlanOrder(trigger=Trigger.INITIAL))
    return PlanRequest(goal=goal, order=order, contracts=REGISTRY.contracts, wants=goal.wants, **more)


def searching(name: str = "found", **more: Any) -> dict[str, Any]:
    """A step of a draft that searches."""
    step = {"id": "s", "intent": "Search", "tool": "search", "args": {"query": "q"}, "produces": [name]}
    return {**step, **more}


def drafted(*steps: dict[str, Any], **more: Any) -> str:
    """A draft as a model writes it."""
    return json.dumps({"steps": steps, **more})

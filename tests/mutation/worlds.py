"""A small world in memory, made anew for every replay, and a goal over it: two branches that share their source."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool

from agent.core.goal import Goal
from agent.mutation.kinds import KINDS, Kind
from tests.builders import Calls

GOAL = Goal(wants=("db", "report"))


def shop() -> list[BaseTool]:
    """raw -> settings -> report; layout, settings -> db."""
    there: dict[str, Any] = {}
    calls = Calls()

    def provision(settings: int, layout: dict[str, Any]) -> dict[str, Any]:
        assert "db" not in there, "already exists"
        there["db"] = {"size": settings, "tables": layout["tables"]}
        return there["db"]

    def write(settings: int) -> dict[str, Any]:
        there["report"] = {"says": settings}
        return there["report"]

    raw, layout = {"size": 3}, {"tables": ["users"], "owner": "team"}
    return [
        calls.tool("raw", "", lambda: raw, observe=lambda: raw),
        calls.tool("settings", "raw", lambda raw: raw["size"]),
        calls.tool("layout", "", lambda: layout, observe=lambda: layout),
        calls.tool(
            "db",
            "settings layout",
            provision,
            effect="mutating",
            observe=lambda: there.get("db"),
            ensures="artifacts.db.size > 0",
        ),
        calls.tool(
            "report",
            "settings",
            write,
            effect="mutating",
            idempotent=True,
            observe=lambda: there.get("report"),
            ensures="artifacts.report.says == artifacts.settings",
        ),
    ]


def kinds(*names: str) -> Sequence[Kind]:
    """Some kinds of mutation, by name."""
    found = [each for each in KINDS if each.name in names]
    assert len(found) == len(names)
    return found

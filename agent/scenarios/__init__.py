"""Packaged, runnable examples: each a goal, tools, and a small real world that misbehaves on purpose."""

from agent.scenarios.backfill import BACKFILL
from agent.scenarios.closing import CLOSING
from agent.scenarios.config_report import CONFIG_REPORT
from agent.scenarios.memo import MEMO
from agent.scenarios.scenario import ChangeGoal, Conditions, Prepared, Scenario

__all__ = ["SCENARIOS", "ChangeGoal", "Conditions", "Prepared", "Scenario"]

SCENARIOS: dict[str, Scenario] = {each.name: each for each in (BACKFILL, CONFIG_REPORT, CLOSING, MEMO)}
"""All scenarios by name."""

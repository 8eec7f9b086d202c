"""SIGKILL in the middle of a scenario, then the same thread again: nothing is lost, nothing happens twice."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.record import Committed
from agent.scenarios import SCENARIOS
from tests.scenarios.driving import Place, drive, kill

AGAIN, RESUME = False, True
"""How it goes on: the goal is stated again, or the last checkpoint is taken up."""

CONFIG = [
    (Place("fetch_schema", "after"), None, RESUME),
    (Place("generate_report", "after"), None, AGAIN),
    (Place("fetch_schema", "before", 2), None, RESUME),
    (Place("provision_db", "after"), None, RESUME),
    (Place("provision_db", "after"), None, AGAIN),
    (Place("repairer", "checkpoint"), None, AGAIN),
    (Place("repairer", "checkpoint", 2), "config-changed", RESUME),
    (Place("generate_report", "after"), "criteria-changed", RESUME),
    (Place("generate_report", "after"), "criteria-changed", AGAIN),
]
BACKFILL = [
    (Place("load_week", "after"), RESUME),
    (Place("load_week", "after", 3), AGAIN),
    (Place("read_schema", "before", 2), RESUME),
    (Place("load_week", "after", 6), AGAIN),
    (Place("recompute_aggregates", "after"), RESUME),
    (Place("post_summary", "before"), AGAIN),
    (Place("post_summary", "after"), RESUME),
    # a replan has just been decided, while other weeks are being loaded
    (Place("repairer", "checkpoint", 3), AGAIN),
    (Place("repairer", "checkpoint", 3), RESUME),
]


def made_again(state: dict[str, Any]) -> list[str]:
    """Artifacts that came out the same when they were made a second time."""
    return [each.name for each in state["trace"] if isinstance(each, Committed) and each.unchanged]


def check(name: str, folder: Path) -> list[str]:
    return SCENARIOS[name].check(folder / "world")


@pytest.mark.parametrize(("place", "event", "resume"), CONFIG, ids=str)
def test_a_killed_config_report_ends_where_it_would_have(tmp_path, place, event, resume):
    kill("config-report", tmp_path, place, event)
    state = drive("config-report", tmp_path, resume=resume)
    assert state["outcome"].status == "satisfied"
    assert check("config-report", tmp_path) == []
    assert SCENARIOS["config-report"].counts(tmp_path / "world")["provision_db"] == 1


@pytest.mark.parametrize(("place", "resume"), BACKFILL, ids=str)
def test_a_killed_backfill_ends_where_it_would_have(tmp_path, place, resume):
    kill("backfill", tmp_path, place)
    state = drive("backfill", tmp_path, resume=resume)
    assert state["outcome"].status == "satisfied"
    assert check("backfill", tmp_path) == []
    assert SCENARIOS["backfill"].counts(tmp_path / "world")["POST /summaries"] == 1


def test_a_run_that_is_killed_twice_ends_as_well(tmp_path):
    kill("backfill", tmp_path, Place("load_week", "after", 2))
    kill("backfill", tmp_path, Place("post_summary", "after"))
    assert drive("backfill", tmp_path)["outcome"].status == "satisfied"
    assert check("backfill", tmp_path) == []


def test_work_that_was_verified_before_the_kill_is_not_made_again(tmp_path):
    kill("config-report", tmp_path, Place("provision_db", "before"))
    before = SCENARIOS["config-report"].counts(tmp_path / "world")
    state = drive("config-report", tmp_path)
    assert SCENARIOS["config-report"].counts(tmp_path / "world") == {**before, "provision_db": 1}
    assert made_again(state) == []

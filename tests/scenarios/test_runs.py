"""Both scenarios from end to end: which rung answered what, what was kept, and where it ends."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.core.record import AttemptEnded, Committed, Recovered
from agent.scenarios import SCENARIOS
from agent.scenarios.export_data import WEEKS
from agent.scenarios.marking import Row
from tests.scenarios.driving import Doom, drive

BOTH_WAYS = pytest.mark.parametrize("asynchronous", [False, True], ids=["invoke", "ainvoke"])
EVENTS = [None, "config-changed", "criteria-changed"]


def rungs(state: dict[str, Any]) -> list[str]:
    """Rungs that were charged; a failure that joined a replan under way was not."""
    choices = [each.choice for each in state["trace"] if isinstance(each, Recovered)]
    return [str(each.rung) for each in choices if not each.joined]


def counts(name: str, folder: Path) -> dict[str, int]:
    return SCENARIOS[name].counts(folder / "world")


def problems(name: str, folder: Path) -> list[str]:
    return SCENARIOS[name].check(folder / "world")


def table(rows: tuple[Row, ...]) -> list[tuple[str, str, str, str, bool]]:
    return [(row.label, row.before, row.after, row.artifact, row.reusable) for row in rows]


MISSING_TABLE = [
    ("S1", "done", "done", "config_raw", True),
    ("S2", "done", "done", "settings", True),
    ("S3", "done", "done", "schema", True),
    ("S4", "pending", "invalid", "db_handle", False),
    ("S5", "pending", "pending", "report", True),
]
CHANGED_CONFIG = [
    ("S1", "done", "invalid", "config_raw", False),
    ("S2", "done", "invalid", "settings", False),
    ("S3", "done", "done", "schema", True),
    ("S4", "pending", "pending", "db_handle", True),
    ("S5", "done", "invalid", "report", False),
]
WRITING = ("S5", "running", "running", "report", True)
"""Its report is written and read back when the config changes; that it is committed by then is likely."""


def as_committed(rows: tuple[Row, ...]) -> list[tuple[str, str, str, str, bool]]:
    return [CHANGED_CONFIG[-1] if row == WRITING else row for row in table(rows)]


@BOTH_WAYS
def test_a_missing_table_invalidates_one_step_and_only_the_schema_is_fetched_again(tmp_path, asynchronous):
    state = drive("config-report", tmp_path, asynchronous=asynchronous)
    assert state["outcome"].status == "satisfied"
    assert problems("config-report", tmp_path) == []
    assert rungs(state) == ["rewrite"]
    (marked,) = SCENARIOS["config-report"].marking(state)
    assert table(marked.rows) == MISSING_TABLE
    assert {row.label: row.why for row in marked.rows} == {
        "S1": "untouched",
        "S2": "depends only on config_raw",
        "S3": "but flagged as the cause",
        "S4": "precondition false: artifacts.schema.tables.exists(t, t == 'users')",
        "S5": "depends only on settings",
    }
    assert counts("config-report", tmp_path) == {
        "fetch_config": 1,
        "parse_config": 1,
        "fetch_schema": 2,
        "provision_db": 1,
        "generate_report": 1,
    }


@BOTH_WAYS
def test_a_changed_config_takes_down_what_was_made_from_it_and_keeps_the_schema(tmp_path, asynchronous):
    state = drive("config-report", tmp_path, event="config-changed", asynchronous=asynchronous)
    assert state["outcome"].status == "satisfied"
    assert problems("config-report", tmp_path) == []
    assert "USD" in (tmp_path / "world" / "report.md").read_text()
    first, second = SCENARIOS["config-report"].marking(state)
    assert table(first.rows) == MISSING_TABLE
    assert second.cause == "config_raw changed since it was verified"
    assert as_committed(second.rows) == CHANGED_CONFIG
    found = counts("config-report", tmp_path)
    assert (found["fetch_config"], found["parse_config"], found["generate_report"]) == (2, 2, 2)
    assert (found["fetch_schema"], found["provision_db"]) == (2, 1)


class Slow(Doom):
    """Dies nowhere; one tool is slow before or after its work, as on a machine with too much to do."""

    def __init__(self, tool: str, when: str) -> None:
        super().__init__()
        self._slow = (tool, when)

    def reach(self, name: str, when: str) -> None:
        if (name, when) == self._slow:
            time.sleep(0.3)


@pytest.mark.parametrize(
    ("tool", "when"),
    [
        ("fetch_schema", "before"),
        ("fetch_config", "before"),
        ("fetch_config", "after"),
        ("parse_config", "after"),
        ("generate_report", "before"),
        ("generate_report", "after"),
    ],
)
def test_the_order_of_events_is_the_same_whatever_is_slow(tmp_path, tool, when):
    state = drive("config-report", tmp_path, event="config-changed", doom=Slow(tool, when))
    marked = SCENARIOS["config-report"].marking(state)
    assert [as_committed(each.rows) for each in marked] == [MISSING_TABLE, CHANGED_CONFIG]


@BOTH_WAYS
def test_changed_criteria_add_what_is_missing_and_keep_what_still_serves(tmp_path, asynchronous):
    state = drive("config-report", tmp_path, event="criteria-changed", asynchronous=asynchronous)
    assert state["outcome"].status == "satisfied"
    assert state["goal"].revision == 2
    assert problems("config-report", tmp_path) == []
    missing, changed = SCENARIOS["config-report"].marking(state)
    assert table(missing.rows) == MISSING_TABLE
    assert changed.cause == "the goal changed (revision 2)"
    # whether the schema has been fetched again by then is as it comes
    assert {row.label for row in changed.rows if row.reusable} - {"S3"} == {"S1", "S2", "S5"}
    assert table(changed.rows)[-1] == ("S6", "-", "pending", "checklist", False)
    found = counts("config-report", tmp_path)
    assert all(found[tool] == 1 for tool in ("fetch_config", "parse_config", "generate_report", "provision_db"))
    assert (found["write_checklist"], found["fetch_schema"]) == (1, 2)


def test_a_config_that_changes_after_the_run_is_noticed_by_the_next_one(tmp_path):
    drive("config-report", tmp_path)
    state = drive("config-report", tmp_path, event="config-changed")
    assert problems("config-report", tmp_path) == []
    fallen = {row.label for row in SCENARIOS["config-report"].marking(state)[-1].rows if not row.reusable}
    assert fallen >= {"S1", "S2", "S5"} and "S3" not in fallen
    assert counts("config-report", tmp_path)["provision_db"] == 1


@pytest.mark.parametrize("event", EVENTS)
def test_a_second_run_of_the_thread_does_no_work_again(tmp_path, event):
    drive("config-report", tmp_path, event=event)
    before = counts("config-report", tmp_path)
    again = drive("config-report", tmp_path)
    assert again["outcome"].status == "satisfied"
    assert counts("config-report", tmp_path) == before


def test_a_disturbed_run_leaves_the_files_of_an_undisturbed_one(tmp_path):
    folders = {faults: tmp_path / str(faults) for faults in (True, False)}
    for faults, folder in folders.items():
        folder.mkdir()
        state = drive("config-report", folder, faults=faults)
        assert rungs(state) == (["rewrite"] if faults else [])
    files = ("report.md", "config.toml", "schema.json")
    one, other = ([(each / "world" / file).read_text() for file in files] for each in folders.values())
    assert one == other


@BOTH_WAYS
def test_the_backfill_retries_patches_and_replans_and_loads_nothing_twice(tmp_path, asynchronous):
    state = drive("backfill", tmp_path, asynchronous=asynchronous)
    assert state["outcome"].status == "satisfied"
    assert problems("backfill", tmp_path) == []
    assert list(dict.fromkeys(rungs(state))) == ["retry", "patch", "replan"]
    assert rungs(state).count("patch") == rungs(state).count("replan") == 1
    found = counts("backfill", tmp_path)
    assert (found["GET /export"], found["GET /schema"], found["POST /summaries"]) == (1, 2, 1)


def test_weeks_that_were_loaded_before_the_format_changed_are_kept_by_looking(tmp_path):
    state = drive("backfill", tmp_path)
    how = Counter(each.how for each in state["trace"] if isinstance(each, AttemptEnded) and each.ok)
    assert how["adopted"] == 4
    loads = [each for each in state["trace"] if isinstance(each, Committed) and each.name.startswith("loaded_")]
    assert Counter(each.unchanged for each in loads) == {False: len(WEEKS), True: 4}
    served = {name: count for name, count in counts("backfill", tmp_path).items() if name.startswith("served")}
    assert set(served.values()) == {1}


def test_an_undisturbed_backfill_needs_no_recovery_and_ends_in_the_same_place(tmp_path):
    for faults in (True, False):
        (tmp_path / str(faults)).mkdir()
    calm = drive("backfill", tmp_path / "False", faults=False)
    assert rungs(calm) == []
    rough = drive("backfill", tmp_path / "True")
    for name in ("aggregates", "summary"):
        assert calm["world"].artifacts[name].digest == rough["world"].artifacts[name].digest


def test_a_second_backfill_of_the_thread_does_no_work_again(tmp_path):
    drive("backfill", tmp_path)
    before = counts("backfill", tmp_path)
    again = drive("backfill", tmp_path)
    assert again["outcome"].status == "satisfied"
    assert counts("backfill", tmp_path) == before

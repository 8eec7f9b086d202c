"""The config-report scenario's files, publisher, event and tools, with no graph around them."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from agent.core.goal import Goal
from agent.scenarios import SCENARIOS
from agent.scenarios import config_world as world_module
from agent.scenarios.publisher import COMPLETE, DRAFT
from agent.tools.contracts import contract_of

SCENARIO = SCENARIOS["config-report"]


def named(tools: list[BaseTool]) -> dict[str, BaseTool]:
    return {each.name: each for each in tools}


def work(tools: list[BaseTool]) -> None:
    """What the runtime does when nothing goes wrong, by hand."""
    by = named(tools)
    settings = by["parse_config"].invoke({"config_raw": by["fetch_config"].invoke({})})
    schema = by["fetch_schema"].invoke({})
    wanted = {name: settings[name] for name in ("title", "currency", "budget")}
    by["generate_report"].invoke(wanted)
    by["provision_db"].invoke({"database": settings["database"], "tables": schema["tables"]})


def tables(workspace: Path) -> set[str]:
    return set(json.loads((workspace / "schema.json").read_text())["tables"])


def look(tool: BaseTool, **args: object) -> Any:
    probe = contract_of(tool).observe
    assert probe is not None
    return probe(**args)


REPORT = {"title": "t", "currency": "EUR", "budget": {"north": 1}}


def test_an_undisturbed_world_needs_no_recovery(tmp_path):
    with SCENARIO.prepare(tmp_path, faults=False) as prepared:
        work(prepared.tools)
    assert SCENARIO.check(tmp_path) == []
    assert SCENARIO.counts(tmp_path) == {
        "fetch_config": 1,
        "fetch_schema": 1,
        "generate_report": 1,
        "parse_config": 1,
        "provision_db": 1,
    }


def test_the_schema_lacks_users_until_the_report_is_finished_and_it_is_looked_at_again(tmp_path):
    with SCENARIO.prepare(tmp_path) as prepared, ThreadPoolExecutor() as threads:
        by = named(prepared.tools)
        assert "users" not in by["fetch_schema"].invoke({})["tables"]
        assert "users" not in look(by["fetch_schema"])["tables"]
        again = threads.submit(look, by["fetch_schema"])
        by["generate_report"].invoke(REPORT)
        assert "users" not in tables(tmp_path)
        look(by["generate_report"])
        assert "users" in again.result()["tables"]
        assert "users" in by["fetch_schema"].invoke({})["tables"]


def test_the_config_comes_after_the_schema_was_fetched(tmp_path):
    with SCENARIO.prepare(tmp_path) as prepared, ThreadPoolExecutor() as threads:
        by = named(prepared.tools)
        config = threads.submit(by["fetch_config"].invoke, {})
        assert SCENARIO.counts(tmp_path) == {}
        by["fetch_schema"].invoke({})
        assert "EUR" in config.result()


def test_a_plan_may_do_without_the_schema_or_without_the_report(tmp_path, monkeypatch):
    monkeypatch.setattr(world_module, "PATIENCE", 0.01)
    with SCENARIO.prepare(tmp_path) as prepared:
        by = named(prepared.tools)
        assert "EUR" in by["fetch_config"].invoke({})
        by["fetch_schema"].invoke({})
        assert [look(by["fetch_schema"])["tables"].keys() for _ in range(2)] == [DRAFT.keys(), COMPLETE.keys()]


def test_what_was_done_before_a_kill_is_not_waited_for_in_the_next_process(tmp_path):
    with SCENARIO.prepare(tmp_path) as prepared:
        named(prepared.tools)["fetch_schema"].invoke({})
    (tmp_path / "report.md").write_text("written before the kill")
    with SCENARIO.prepare(tmp_path) as prepared:
        by = named(prepared.tools)
        assert "EUR" in by["fetch_config"].invoke({})
        assert "users" in by["fetch_schema"].invoke({})["tables"]


def finish(tools: list[BaseTool]) -> None:
    """Up to the moment of the event: the report is written, and read back."""
    by = named(tools)
    by["fetch_schema"].invoke({})
    by["generate_report"].invoke(REPORT)
    look(by["generate_report"])


@pytest.mark.parametrize("faults", [True, False])
def test_the_config_changes_when_the_report_is_finished_and_only_once(tmp_path, faults):
    with SCENARIO.prepare(tmp_path, event="config-changed", faults=faults) as prepared:
        by = named(prepared.tools)
        assert "EUR" in look(by["fetch_config"])
        finish(prepared.tools)
        assert "USD" in by["fetch_config"].invoke({})
        (tmp_path / "config.toml").write_text("currency = 'GBP'")
        finish(prepared.tools)
        assert "GBP" in by["fetch_config"].invoke({})


@pytest.mark.parametrize("faults", [True, False])
def test_the_goal_changes_when_the_report_is_finished_and_stays_changed(tmp_path, faults):
    heard: list[Goal] = []
    with SCENARIO.prepare(tmp_path, event="criteria-changed", faults=faults, change_goal=heard.append) as prepared:
        assert prepared.goal.wants == ("db_handle", "report")
        finish(prepared.tools)
    with SCENARIO.prepare(tmp_path) as again:
        assert heard == [again.goal]
        assert again.goal.wants == ("db_handle", "report", "checklist")


def test_an_event_that_a_kill_kept_from_happening_happens_in_the_next_process(tmp_path):
    with SCENARIO.prepare(tmp_path, event="config-changed"):
        (tmp_path / "report.md").write_text("written before the kill")
    with SCENARIO.prepare(tmp_path) as prepared:
        assert "USD" in named(prepared.tools)["fetch_config"].invoke({})


def test_an_unknown_event_is_refused_with_those_that_exist(tmp_path):
    with (
        pytest.raises(ValueError, match=r"no event 'earthquake'; it has: config-changed, criteria-changed"),
        SCENARIO.prepare(tmp_path / "new", event="earthquake"),
    ):
        pass
    assert not (tmp_path / "new").exists()


def test_a_database_is_provisioned_whole_once_and_never_silently_twice(tmp_path):
    with SCENARIO.prepare(tmp_path) as prepared:
        provision = named(prepared.tools)["provision_db"]
        args = {"database": "r.db", "tables": {"users": ["id"], "orders": ["id", "amount"]}}
        assert look(provision, database="r.db") is None
        assert provision.invoke(args) == look(provision, database="r.db") == {"file": "r.db", "tables": args["tables"]}
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            provision.invoke(args)


def test_a_check_names_what_is_wrong(tmp_path):
    with SCENARIO.prepare(tmp_path):
        pass
    assert SCENARIO.check(tmp_path) == [
        "the schema was not published complete",
        "the database does not have the tables of the schema",
        "the report is not what the config asks for",
    ]


def test_a_goal_that_nobody_heard_of_before_the_kill_is_told_when_the_world_is_looked_at_again(tmp_path):
    with SCENARIO.prepare(tmp_path, event="criteria-changed"):
        (tmp_path / "report.md").write_text("written before the kill")
    heard: list[Goal] = []
    with SCENARIO.prepare(tmp_path, change_goal=heard.append) as prepared:
        assert heard == []
        look(named(prepared.tools)["fetch_config"])
        look(named(prepared.tools)["fetch_config"])
    assert heard == [prepared.goal]

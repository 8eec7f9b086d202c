"""`demo`: the packaged scenarios, with their tables and the check of their worlds."""

import pytest

from tests.cli.conftest import JOBS


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """The worlds of the scenarios move at their own pace, which the usual backoff is made for."""
    monkeypatch.delenv("KINTSUGI_LIMITS__BACKOFF")


def test_without_a_name_the_scenarios_and_their_events_are_listed(cli):
    said = cli("demo").stdout
    for each in ("backfill", "config-report", "--event config-changed", "--event criteria-changed"):
        assert each in said


def test_the_backfill_shows_one_recovery_on_each_of_three_rungs_and_its_check(cli):
    said = cli("demo", "backfill").stdout
    recoveries = said.split("\nRecoveries\n")[1]
    for rung in ("retry", "patch", "replan"):
        assert f"  {rung} " in recoveries
    assert "Satisfied: " in said
    assert "Checked: the end state is that of an undisturbed run." in said


def test_a_second_demo_of_the_thread_does_no_work_again(cli, document):
    cli("demo", "config-report")
    before = document("demo", "config-report")["ledger"]
    said = cli("demo", "config-report").stdout
    assert before["steps"] == 0
    assert "nothing was done again" in said


def test_a_fresh_demo_has_a_thread_and_a_world_of_its_own(cli, folder):
    cli("demo", "config-report")
    said = cli("demo", "config-report", "--fresh").stdout
    assert "thread config-report-2" in said
    assert "9 attempts" not in said
    assert "nothing was done again" not in said
    assert sorted(each.name for each in (folder / ".kintsugi" / "demo").iterdir()) == [
        "config-report",
        "config-report-2",
    ]


REWRITTEN = ["S4"]
EVENTS = {
    None: [REWRITTEN],
    "config-changed": [REWRITTEN, ["S1", "S2", "S5"]],
    "criteria-changed": [REWRITTEN, []],
}


@pytest.mark.parametrize(("event", "fallen"), EVENTS.items(), ids=str)
def test_each_event_marks_exactly_what_it_proves_false_in_words_and_in_the_document(cli, document, event, fallen):
    args = ["demo", "config-report", *(["--event", event] if event else [])]
    said = cli(*args).stdout
    tables = document(*args)["marking"]
    assert [[row["label"] for row in each["rows"] if row["after"] == "invalid"] for each in tables] == fallen
    assert said.count("Reusable?") == len(tables)
    for row in (row for each in tables for row in each["rows"]):
        cells = [row["label"], row["before"], row["after"], row["artifact"]]
        assert any(line.split()[:4] == cells for line in said.splitlines())


def test_the_document_of_a_demo_carries_recoveries_and_the_check(document):
    found = document("demo", "config-report")
    (recovery,) = found["recoveries"]
    assert (recovery["trigger"], recovery["scope"], recovery["rung"]) == (
        "precondition_violation",
        "precondition",
        "rewrite",
    )
    assert recovery["origin"] == "environment"
    assert recovery["rule"] == "a precondition that does not hold"
    assert recovery["invalidated"] == ["schema"]
    assert found["differences"] == []


def test_an_unknown_scenario_or_event_is_refused_with_those_there_are(cli):
    assert "there are: backfill, config-report" in cli("demo", "backfil", code=2).stderr
    said = cli("demo", "config-report", "--event", "flood", code=2).stderr
    assert "it has: config-changed, criteria-changed" in said


def test_a_thread_of_another_run_is_not_taken_over(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert "is of another run" in cli("demo", "config-report", "--thread", "42", code=2).stderr


@pytest.mark.parametrize("thread", ["../outside", "a/b", "", "."])
def test_a_demo_thread_that_cannot_name_a_folder_is_refused(cli, folder, thread):
    cli("demo", "config-report", "--thread", thread, code=2)
    assert not (folder / "outside").exists()

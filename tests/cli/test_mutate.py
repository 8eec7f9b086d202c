"""`mutate`: a scenario, a thread of one, or a thread over one's own tools; the table, the document, the exit code."""

import pytest

from agent.core.ladder import choose_rung
from agent.nodes import classifier
from tests.cli.conftest import JOBS


def test_a_scenario_is_replayed_and_the_matrix_printed(cli):
    said = cli("mutate", "config-report", "--most", 4).stdout
    assert "config-report: 5 steps, 10 points, 4 replays" in said
    assert "an independent branch stays available" in said
    assert "executor: the guard against re-running is missing" in said
    assert "Repair depth over the oracle's: 1.00; planner calls for a local break: 0" in said


def test_the_document_says_the_same(document):
    found = document("mutate", "backfill", "--most", 3, "--seed", 5)
    assert (found["holds"], found["replays"], found["points"]) == (True, 3, 20)
    assert [each["holds"] for each in found["rows"]] == [True] * 7


def test_the_thread_of_a_demo_stands_for_its_scenario(cli, document):
    cli("demo", "config-report", "--thread", "mine")
    assert document("mutate", "mine", "--most", 2)["steps"] == 5


def test_a_row_that_does_not_hold_makes_the_exit_code_and_is_told(cli, monkeypatch):
    def whimsical(*args, **more):
        return choose_rung(*args, **more).model_copy(update={"delay": 0.25})

    monkeypatch.setattr(classifier, "choose_rung", whimsical)
    said = cli("mutate", "config-report", "--most", 12, code=3).stdout
    assert "recomputable: " in said


def test_ones_own_writing_tools_are_called_only_when_that_is_said(cli, document):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert "call write_total, post_notice" in cli("mutate", "42", code=2).stderr.replace("charge_card, ", "")
    assert document("mutate", "42", "--real", "--most", 3)["steps"] == 2


@pytest.mark.parametrize("before", [False, True], ids=["no home", "a home"])
def test_an_unknown_name_is_refused_with_the_scenarios_there_are(cli, before):
    if before:
        cli("demo", "config-report")
    assert "scenarios: backfill, config-report, closing, memo" in cli("mutate", "nothing", code=2).stderr

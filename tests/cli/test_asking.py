"""A run that waits for a person: what is asked, what can be answered, and what an answer does."""

import pytest

from tests.cli.conftest import JOBS, calls


@pytest.fixture
def waiting(cli, folder):
    """A run whose card may or may not have been charged."""
    (folder / "pay.toml").write_text('wants = "receipt"')
    (folder / "bank-is-down").touch()
    return cli("run", "pay.toml", "--tools", JOBS, "--thread", "7", code=4).stdout


def test_a_run_that_cannot_decide_prints_the_question_and_exits_with_4(waiting, folder, cli):
    assert "Waiting for a person." in waiting
    assert "Charge the card" in waiting
    assert "the bank hung up" in waiting
    assert "Tried: retry, patch, rewrite, replan: the effect of the call is unknown" in waiting
    for choice in ("retry", "answer", "skip", "goal", "abort"):
        assert f"\n  {choice} " in waiting
    assert "kintsugi resume 7 --answer retry" in waiting
    assert calls(folder) == ["charge_card"]
    assert cli("threads").stdout.splitlines()[1].split()[:2] == ["7", "waiting"]


def test_resuming_without_an_answer_asks_again_and_runs_nothing(waiting, folder, cli, document):
    assert "Charge the card" in cli("resume", "7", code=4).stdout
    found = document("resume", "7", code=4)
    assert found["outcome"] is None
    (question,) = found["questions"]
    assert question["choices"] == ["retry", "answer", "edit", "raise", "skip", "goal", "abort"]
    assert calls(folder) == ["charge_card"]


def test_the_result_can_be_given_by_a_person(waiting, folder, document):
    found = document("resume", "7", "--answer", '{"choice": "answer", "value": "paid by hand"}')
    assert found["outcome"]["status"] == "satisfied"
    (receipt,) = found["artifacts"]
    assert (receipt["value"], receipt["verified_by"]) == ("paid by hand", ["person"])
    assert calls(folder) == ["charge_card"]


def test_a_step_can_be_skipped_for_a_reason(waiting, cli):
    assert "needs a reason" in cli("resume", "7", "--answer", "skip", code=2).stderr
    said = cli("resume", "7", "--answer", "skip", "--reason", "paid in cash", code=3).stdout
    assert "Handed over: " in said
    assert "paid in cash" in said


def test_a_run_can_be_ended_with_its_partial_results(waiting, cli, document):
    said = cli("resume", "7", "--answer", "abort", code=3).stdout
    assert "Cancelled: " in said
    assert "refuted      has receipt" in said
    assert document("resume", "7", code=3)["outcome"]["status"] == "cancelled"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("perhaps", "'raise', 'skip', 'goal' or 'abort'"),
        ('{"choice": "answer"}', "needs a value"),
        ('{"choice": "goal"}', "needs a goal"),
        ('{"choice": "retry", "mood": "good"}', "Extra inputs"),
        ("[1]", "does not fit"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(waiting, cli, answer, problem):
    assert problem in cli("resume", "7", "--answer", answer, code=2).stderr
    assert "Waiting for a person." in cli("resume", "7", code=4).stdout


def test_an_answer_without_a_question_is_refused(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert "asks nothing" in cli("resume", "42", "--answer", "retry", code=2).stderr


def test_another_goal_can_be_stated_instead_of_an_answer(waiting, folder, cli):
    assert "Satisfied: " in cli("goal", "7", "goal.toml").stdout
    assert calls(folder) == ["charge_card", "write_total"]


def test_a_goal_can_be_the_answer(waiting, folder, cli):
    cli("resume", "7", "--answer", '{"choice": "goal", "goal": {"wants": ["total"]}}')
    assert calls(folder) == ["charge_card", "write_total"]

"""The budgets in a line: what is used and of how much, and nothing that is not."""

from agent.cli.board import spent
from agent.core.limits import Ledger, Limits


def test_a_run_without_a_model_shows_attempts_and_rungs() -> None:
    line = spent(Ledger(steps=3, retry={"x": 2, "y": 1}), Limits(steps=10))
    assert line == "attempts 3/10 \u00b7 retries 3 \u00b7 replans 0/1"


def test_calls_tokens_and_money_are_shown_once_they_are_used() -> None:
    ledger = Ledger(planner_calls=2, executor_turns=5, tokens=1200, money=0.5)
    line = spent(ledger, Limits(planner_calls=20, executor_turns=50, tokens=5000, money=10.0))
    for part in ("planner calls 2/20", "executor turns 5/50", "tokens 1,200/5,000", "money 0.50/10"):
        assert part in line
    assert "classifier" not in line


def test_an_estimate_is_shown_as_one() -> None:
    assert "tokens about 1,200/" in spent(Ledger(tokens=1200, tokens_estimated=1), Limits())

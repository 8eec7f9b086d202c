"""The budgets in a line: what is used and of how much, and nothing that is not."""

from rich.console import Console

from agent.cli.board import Board, lasting, spent
from agent.core.limits import Ledger, Limits
from agent.core.record import StepStarted
from tests.builders import plan, step


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


def test_steps_say_what_they_take_and_what_is_to_be_expected() -> None:
    drawn = plan(step("x", status="running"), step("y"), step("z", status="done"))
    board = Board(Limits(), drawn, Ledger(), {"make_x": 40.0, "make_y": 90.0, "make_z": 1.0})
    board.take({"trace": [StepStarted(at=0, step=drawn.steps[0].id, intent="make x", attempt=1)]})
    console = Console(width=120)
    with console.capture() as captured:
        console.print(board)
    running, pending, done, below = captured.get().splitlines()
    assert " s of about 40.0 s" in running
    assert "about 90.0 s" in pending
    assert "about" not in done
    assert "1/3 done" in below


def test_durations_are_said_in_the_unit_that_fits() -> None:
    said = ["0.0 s", "99.9 s", "1 min 40 s", "59 min 59 s", "2 h 1 min"]
    assert [lasting(each) for each in (0.04, 99.9, 100, 3599, 7260)] == said

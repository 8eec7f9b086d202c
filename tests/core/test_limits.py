"""What a run may use, what it has used, and when that is the end."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.core.limits import HARD as BOUNDS
from agent.core.limits import Ledger, Limits, stopped

HARD = [
    *("planner_calls", "classifier_calls", "repairer_calls", "executor_turns", "judge_calls", "tool_calls", "tokens"),
    *(
        f"{role}_tokens_{way}"
        for role in ("planner", "classifier", "repairer", "executor", "judge")
        for way in ("in", "out")
    ),
    *("money", "seconds", "steps", "moves", "supersteps", "barren"),
]


@pytest.mark.parametrize("name", HARD)
def test_a_bound_that_is_reached_is_the_end_and_names_itself(name: str) -> None:
    limits = Limits.model_validate({name: 3})
    assert stopped(limits, Ledger.model_validate({name: 2})) is None
    stop = stopped(limits, Ledger.model_validate({name: 3}))
    assert stop is not None
    assert str(stop) == f"{name} limit reached: 3 of 3"


def test_a_fresh_run_is_not_at_its_end() -> None:
    assert stopped(Limits(), Ledger()) is None


def test_rungs_have_budgets_of_their_own_and_stop_nothing() -> None:
    assert (
        stopped(Limits(), Ledger(retry={"x": 99}, patch={"x": 99}, rewrite={"x": 99}, replan=99, escalate=99)) is None
    )


def test_amounts_are_added_to_the_named_counters() -> None:
    ledger = Ledger(tokens=5).add(tokens=2, seconds=0.5)
    assert (ledger.tokens, ledger.seconds) == (7, 0.5)


@pytest.mark.parametrize(
    "wrong", [{"retry": -1}, {"steps": 0}, {"replan_breadth": 1.5}, {"retrys": 3}, {"backoff": -1}]
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Limits.model_validate(wrong)


def test_the_page_on_running_lists_every_hard_bound() -> None:
    assert set(BOUNDS) == set(HARD)
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text()
    assert [name for name in HARD if f"`{name}`" not in page] == []

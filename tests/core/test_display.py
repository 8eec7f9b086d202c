"""A plan and an outcome show themselves in a notebook, with nothing in them taken for markup."""

from agent.core.outcome import Delivered, Outcome, OutcomeStatus
from tests.builders import plan, step


def test_a_plan_is_shown_step_by_step() -> None:
    shown = plan(step("report", intent="say <b>so</b>", status="done"))._repr_html_()
    assert "Plan 1" in shown
    assert "say &lt;b&gt;so&lt;/b&gt;</td><td>done" in shown


def test_a_long_plan_is_cut_and_says_so() -> None:
    shown = plan(*(step(f"a{number}") for number in range(250)))._repr_html_()
    assert shown.count("<tr>") == 201
    assert "and 50 more" in shown


def test_an_outcome_shows_what_holds_and_what_is_missing() -> None:
    made = Delivered(name="db", digest="0", version=2, size=1, verified_by=(), valid=True, value="<script>")
    fallen = made.model_copy(update={"name": "gone", "valid": False})
    outcome = Outcome(
        status=OutcomeStatus.OUT_OF_BUDGET,
        reason="no money left",
        artifacts={each.name: each for each in (made, fallen)},
        missing=("report is not there",),
    )
    shown = outcome._repr_html_()
    assert "out_of_budget: no money left" in shown
    assert "<td>db</td><td>version 2</td><td>&lt;script&gt;</td>" in shown
    assert "report is not there" in shown
    assert "gone" not in shown

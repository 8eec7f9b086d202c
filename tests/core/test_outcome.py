"""How a run ended, and whether it may say that it is complete."""

from agent.core.goal import Goal
from agent.core.outcome import OutcomeStatus, completion, conclude
from tests.builders import artifact, goal, plan, step, view, world


def test_all_steps_done_and_all_grades_verified_is_complete() -> None:
    state = world(artifact("x", 3))
    assert completion(goal("x", "artifacts.x == 3"), plan(step("x", status="done")), state, view(state)).complete


def test_an_empty_plan_with_an_unmet_goal_is_not_complete() -> None:
    found = completion(goal("x"), plan(), world(), {})
    assert not found.complete
    assert found.missing == ("has x: refuted",)


def test_an_empty_plan_is_complete_when_the_goal_is_met() -> None:
    assert completion(goal("x"), plan(), world("x"), {}).complete


def test_a_goal_that_states_nothing_is_never_complete() -> None:
    found = completion(Goal(text="do something"), plan(step("x", status="done")), world("x"), {})
    assert found.missing == ("the goal states nothing that could be verified",)


def test_an_unfinished_step_is_missing_whatever_the_goal_says() -> None:
    for status in ("pending", "running", "invalid", "failed"):
        found = completion(goal("x"), plan(step("x", status=status)), world("x"), {})
        assert found.missing == (f"step X is {status}",)


def test_a_superseded_step_is_nobodys_concern() -> None:
    assert completion(goal("x"), plan(step("y", status="superseded")), world("x"), {}).complete


def test_a_skipped_step_needs_a_reason() -> None:
    assert completion(goal("x"), plan(step("y", status="skipped", reason="not needed")), world("x"), {}).complete
    for reason in ("", "  "):
        found = completion(goal("x"), plan(step("y", status="skipped", reason=reason)), world("x"), {})
        assert found.missing == ("step Y was skipped without a reason",)


def test_a_skipped_step_does_not_make_its_artifact() -> None:
    found = completion(goal("y"), plan(step("y", status="skipped", reason="no access")), world(), {})
    assert found.missing == ("has y: refuted",)


def test_a_criterion_that_cannot_be_verified_is_missing() -> None:
    found = completion(goal("x", "artifacts.y == 1"), plan(), world("x"), {"x": 1})
    assert found.missing == ("artifacts.y == 1: unverifiable",)


def test_an_outcome_always_has_the_partial_results() -> None:
    state = world(artifact("x", 3, version=2), artifact("y", mark="root"), artifact("n", producer="goal"))
    steps = plan(
        step("x", status="done"),
        step("y", status="failed", reason="no access"),
        step("z"),
        step("w", status="skipped", reason="not needed"),
    )
    end = conclude(
        OutcomeStatus.OUT_OF_BUDGET, "seconds", goal("x z", given={"n": 1}), steps, state, view(state), ("proof",)
    )
    assert {name: (each.value, each.valid) for name, each in end.artifacts.items()} == {"x": (3, True), "y": (1, False)}
    assert end.unfinished == {"Y": "failed: no access", "Z": "pending"}
    assert end.skipped == {"W": "not needed"}
    assert [each.verdict for each in end.grades] == ["verified", "refuted"]
    assert end.proof == ("proof",)

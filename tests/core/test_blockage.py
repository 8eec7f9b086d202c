"""What keeps a plan from going on is named by its cause, never by what only waits for it."""

from typing import Any

import pytest

from agent.core.blockage import blockage
from agent.core.failure import Trigger
from agent.core.plan import Plan, StepId
from agent.core.world import World
from tests.builders import artifact, goal, plan, step, view, world


def told(steps: Plan, state: World, wants: str = "z") -> str:
    failure = blockage(goal(wants), steps, state, view(state))
    assert failure.trigger is Trigger.BLOCKED
    assert failure.step is None
    return failure.error.message.removeprefix("nothing is ready, nothing is running: ")


CASES: list[Any] = [
    pytest.param(
        plan(step("x", "y"), step("y", "x")),
        world(),
        "steps wait for each other: X (x) -> Y (y) -> X (x)",
        id="a circle of needs",
    ),
    pytest.param(
        plan(step("x", after=("Y",)), step("y", after=("X",))),
        world(),
        "steps wait for each other: X (x) -> Y (y) -> X (x)",
        id="a circle of explicit edges",
    ),
    pytest.param(
        plan(step("x", "y", status="done"), step("y", "x", status="done"), step("z", "w")),
        world("x", "y"),
        "step Z (z) needs w, which no step makes",
        id="a circle of what is done is in nobody's way",
    ),
    pytest.param(
        plan(step("a", status="failed", reason="no"), step("b", "a"), step("z", "b")),
        world(),
        "step B (b) needs a, which is for step A (a), which is failed: no",
        id="the cause, and not what waits for a step that waits",
    ),
    pytest.param(
        plan(step("a", status="skipped", reason="not now"), step("z", "a")),
        world(),
        "step Z (z) needs a, which is for step A (a), which is skipped: not now",
        id="a skipped maker",
    ),
    pytest.param(
        plan(step("a", status="done"), step("z", "a")),
        world(artifact("a", mark="root")),
        "step Z (z) needs a, which step A (a) has made: test",
        id="a marked product",
    ),
    pytest.param(
        plan(step("z", after=("A",)), step("a", status="superseded")),
        world("z"),
        "step Z is pending",
        id="a superseded predecessor is in nobody's way",
    ),
    pytest.param(
        plan(step("z", after=("A", "B", "C")), step("a", status="failed"), step("b"), step("c", status="skipped")),
        world(),
        "step Z (z) comes after A (a), which is failed",
        id="a failed predecessor",
    ),
    pytest.param(plan(step("y", status="done")), world("y"), "has z: refuted", id="nothing is planned for a want"),
]


@pytest.mark.parametrize(("steps", "state", "why"), CASES)
def test_what_is_in_the_way_is_named(steps: Plan, state: World, why: str) -> None:
    assert why in told(steps, state)


def test_a_done_step_whose_product_is_not_there_is_named() -> None:
    assert told(plan(step("a", status="done"), step("z", "a")), world()).endswith("has made: it is gone")


def test_everything_in_the_way_is_named_once() -> None:
    steps = plan(step("x", "w", after=("GHOST",)), step("y", "w", id=StepId("Y")))
    assert told(steps, world()) == (
        "step X (x) needs w, which no step makes; step X (x) comes after 'GHOST', which is no step of the plan; "
        "step Y (y) needs w, which no step makes"
    )


def test_budgets_are_kept_under_the_first_step_that_is_left() -> None:
    steps = plan(step("a", status="done"), step("x", "w"), step("y", "w"))
    assert blockage(goal("y"), steps, world("a"), {}).key == "x"
    assert blockage(goal("y"), plan(step("a", status="done")), world("a"), {}).key == "goal"

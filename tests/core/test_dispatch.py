"""The top of the loop: every way next_move can decide, and which of two comes first."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.contract import EffectClass
from agent.core.dispatch import next_move, readers
from agent.core.failure import Trigger
from agent.core.goal import Goal
from agent.core.lease import Halt
from agent.core.limits import Ledger, Limits
from agent.core.move import Ask, Broken, Draw, Finish, Look, Move, Pause, PlanOrder, Start, Wait
from agent.core.plan import Plan, StepStatus
from agent.core.value import digest
from agent.core.world import Assumption, World
from tests.builders import READ, WRITE, artifact, goal, plan, step, view, world

ORDER = PlanOrder(trigger=Trigger.TASK_FAILURE, reason="the format changed")


def decide(
    steps: Plan,
    state: World | None = None,
    want: Goal | None = None,
    limits: Limits | None = None,
    ledger: Ledger | None = None,
    **more: Any,
) -> Move:
    state = state or world()
    return next_move(want or goal("x"), state, steps, view(state), limits or Limits(), ledger or Ledger(), **more)


def started(move: Move) -> tuple[str, ...]:
    assert isinstance(move, Start), move
    return move.steps


def mirrored(name: str, at: int = 0, **more: Any) -> Any:
    return artifact(name, seen=digest(1), seen_at=at, **more)


def later(*artifacts: Any, ticks: int = 1) -> World:
    return world(*artifacts).model_copy(update={"tick": ticks})


def test_without_a_plan_one_is_drawn() -> None:
    move = decide(Plan())
    assert isinstance(move, Draw)
    assert move.order.trigger is Trigger.INITIAL


def test_a_changed_goal_is_planned_for_before_anything_else() -> None:
    move = decide(plan(step("x", status="done")), world("x"), goal("x", revision=2))
    assert isinstance(move, Draw)
    assert move.order.trigger is Trigger.INTENT_CHANGE


def test_an_ordered_replan_is_drawn() -> None:
    assert decide(plan(step("x")), order=ORDER) == Draw(order=ORDER)


@pytest.mark.parametrize("effect", ["read_only", "mutating"])
def test_nothing_is_drawn_while_something_is_in_flight(effect: str) -> None:
    move = decide(plan(step("x", status="running", effect=effect)), order=ORDER)
    assert move == Wait(reason="in flight: X")


def test_a_met_goal_with_every_step_done_is_satisfied() -> None:
    move = decide(plan(step("x", status="done")), world("x"))
    assert isinstance(move, Finish)
    assert move.status == "satisfied"


def test_a_met_goal_is_satisfied_although_a_limit_is_reached_just_now() -> None:
    move = decide(plan(step("x", status="done")), world("x"), limits=Limits(steps=1), ledger=Ledger(steps=1))
    assert isinstance(move, Finish)
    assert move.status == "satisfied"


@pytest.mark.parametrize(
    ("halt", "effect", "waits"),
    [
        (Halt.DRAIN, WRITE, True),
        (Halt.DRAIN, READ, False),
        (Halt.NOW, WRITE, False),
        (Halt.NOW, READ, False),
    ],
)
def test_a_run_that_is_asked_to_stop_starts_nothing_and_waits_for_writes_alone(
    halt: Halt, effect: EffectClass, waits: bool
) -> None:
    move = decide(plan(step("x", status="running", effect=effect), step("y")), want=goal("x y"), halt=halt)
    assert isinstance(move, Wait if waits else Pause)


def test_a_run_that_is_asked_to_stop_draws_no_plan_and_one_that_is_done_ends() -> None:
    assert isinstance(decide(Plan(), halt=Halt.DRAIN), Pause)
    move = decide(plan(step("x", status="done")), world("x"), halt=Halt.NOW)
    assert isinstance(move, Finish)


def test_a_mirrored_artifact_is_looked_at_before_success_is_claimed() -> None:
    state = later(mirrored("x"), mirrored("beside"))
    assert decide(plan(step("x", status="done")), state) == Look(names=("x",))
    assert isinstance(decide(plan(step("x", status="done")), later(mirrored("x", at=1))), Finish)


def test_what_the_goal_itself_gave_need_not_be_looked_at() -> None:
    state = later(mirrored("x", producer="goal"))
    assert isinstance(decide(plan(step("x", status="done")), state), Finish)


def test_ready_steps_start_together() -> None:
    assert started(decide(plan(step("x"), step("y"), step("z", "x")))) == ("X", "Y")


def test_only_as_many_steps_start_as_there_is_room_for() -> None:
    steps = plan(step("a", status="running"), step("x"), step("y"), step("z"))
    assert started(decide(steps, limits=Limits(parallel=3))) == ("X", "Y")
    assert decide(steps, limits=Limits(parallel=1)) == Wait()


def test_only_as_many_steps_start_as_the_budget_allows() -> None:
    steps = plan(step("x"), step("y"), step("z"))
    assert started(decide(steps, limits=Limits(steps=5), ledger=Ledger(steps=3))) == ("X", "Y")


def test_everything_a_step_stands_on_is_looked_at_before_it_starts() -> None:
    state = later(mirrored("a"), artifact("b", inputs={"a": digest(1)}), mirrored("c"))
    assert decide(plan(step("x", "b")), state) == Look(names=("a",))
    assert decide(plan(step("x", "b c")), state) == Look(names=("a", "c"))


def test_what_nobody_stands_on_is_not_looked_at() -> None:
    assert isinstance(decide(plan(step("x", "b")), later(artifact("b"), mirrored("c"))), Start)


def test_a_broken_precondition_is_reported_when_nothing_else_can_start() -> None:
    move = decide(plan(step("x", "a", preconditions=["artifacts.a == 2"])), world("a"))
    assert isinstance(move, Broken)
    (only,) = move.failures
    assert (only.step, only.predicate, only.reads) == ("X", "artifacts.a == 2", ("a",))
    assert only.error.message.startswith("refuted")


def test_a_precondition_nobody_observed_is_broken_as_well() -> None:
    move = decide(plan(step("x", preconditions=["facts.region == 'eu'"])))
    assert isinstance(move, Broken)
    assert move.failures[0].error.message.startswith("unverifiable")


def test_a_broken_precondition_does_not_hold_up_the_others() -> None:
    steps = plan(step("x", preconditions=["1 == 2"]), step("y"))
    move = decide(steps)
    assert started(move) == ("Y",)
    assert isinstance(move, Start)
    assert not move.wait


def test_a_precondition_may_look_at_the_arguments() -> None:
    call = {"tool": "make_x", "args": {"n": 3}}
    assert isinstance(decide(plan(step("x", call=call, preconditions=["args.n == 3"]))), Start)
    assert isinstance(decide(plan(step("x", call=call, preconditions=["args.n == 4"]))), Broken)


def test_an_artifact_whose_facts_changed_is_reported_before_anything_is_built_on_it() -> None:
    assumed = artifact("a", assumptions=(Assumption(predicate="facts.region == 'eu'"),))
    move = decide(plan(step("x", "a")), world(assumed, region="us"))
    assert isinstance(move, Broken)
    assert (move.failures[0].error.kind, move.failures[0].reads) == ("stale", ("a",))


def test_while_steps_run_there_is_nothing_to_do_but_wait() -> None:
    assert decide(plan(step("a", status="running"), step("x", "a"))) == Wait()
    assert decide(plan(step("a", status="running"), step("x", status="failed")), unresolved=True) == Wait()


def test_a_person_is_asked_when_nothing_else_can_be_done() -> None:
    assert decide(plan(step("x", status="failed")), unresolved=True) == Ask()
    steps = plan(step("x", status="failed"), step("y"))
    assert started(decide(steps, unresolved=True)) == ("Y",)


def test_a_skipped_step_without_which_the_goal_is_not_met_hands_over() -> None:
    move = decide(plan(step("x", status="skipped", reason="no access")))
    assert isinstance(move, Finish)
    assert (move.status, "no access" in move.reason) == ("handed_over", True)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        pytest.param(plan(step("x", "ghost")), "step X (x) needs ghost, which no step makes", id="a need"),
        pytest.param(
            plan(step("x", "y"), step("y", "x")), "steps wait for each other: X (x) -> Y (y) -> X (x)", id="a circle"
        ),
        pytest.param(plan(), "has x: refuted", id="no steps"),
        pytest.param(plan(step("x", status="failed")), "step X is failed", id="a failed step nobody asks about"),
        pytest.param(plan(step("x", status="invalid")), "step X is invalid", id="an invalid step"),
    ],
)
def test_a_plan_that_cannot_go_on_says_what_is_in_the_way(steps: Plan, says: str) -> None:
    move = decide(steps)
    assert isinstance(move, Broken)
    (only,) = move.failures
    assert (only.trigger, only.step) == (Trigger.BLOCKED, None)
    assert says in only.error.message


@pytest.mark.parametrize(("limit", "status"), [("steps", "out_of_budget"), ("barren", "no_progress")])
def test_a_reached_limit_is_the_end(limit: str, status: str) -> None:
    move = decide(plan(step("x")), limits=Limits.model_validate({limit: 3}), ledger=Ledger.model_validate({limit: 3}))
    assert isinstance(move, Finish)
    assert (move.status, move.reason) == (status, f"{limit} limit reached: 3 of 3")


def test_what_was_started_within_a_limit_is_awaited() -> None:
    steps = plan(step("a", status="running"), step("x"))
    assert decide(steps, limits=Limits(steps=3), ledger=Ledger(steps=3)) == Wait(reason="in flight: A")


def test_when_time_is_up_only_writes_are_awaited() -> None:
    over: dict[str, Any] = {"limits": Limits(seconds=1), "ledger": Ledger(seconds=2)}
    assert isinstance(decide(plan(step("a", status="running")), **over), Finish)
    writing = plan(step("a", status="running", effect=WRITE))
    assert decide(writing, **over) == Wait(reason="in flight: A")


def test_a_limit_ends_the_run_before_an_ordered_replan_is_drawn() -> None:
    move = decide(plan(step("x")), order=ORDER, limits=Limits(steps=1), ledger=Ledger(steps=1))
    assert isinstance(move, Finish)


def test_only_what_is_needed_for_the_decision_is_read() -> None:
    assumed = artifact(
        "a", assumptions=(Assumption(predicate="facts.f == artifacts.big"), Assumption(predicate="artifacts.c == 1"))
    )
    steps = plan(
        step("x", preconditions=["artifacts.p == 1"]),
        step("y", status="done", preconditions=["artifacts.q == 1"]),
        step("z", "p missing", preconditions=["artifacts.r == 1"]),
    )
    assert readers(steps, goal("x", "artifacts.g == 1"), world(assumed, "p")) == {"big", "p", "g"}


STATUS = st.sampled_from([each.value for each in StepStatus])


@given(
    st.lists(st.tuples(STATUS, st.booleans(), st.booleans()), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 3]),
)
def test_there_is_always_a_next_move_and_it_never_starts_what_is_not_ready(
    made: list[tuple[str, bool, bool]], unresolved: bool, ordered: bool, used: int
) -> None:
    steps = plan(
        *(
            step(f"a{index}", f"a{index - 1}" if chained and index else "", status=status)
            for index, (status, chained, _) in enumerate(made)
        )
    )
    state = world(*(f"a{index}" for index, (_, _, held) in enumerate(made) if held))
    move = decide(
        steps,
        state,
        goal(f"a{len(made) - 1}"),
        Limits(steps=3),
        Ledger(steps=used),
        order=ORDER if ordered else None,
        unresolved=unresolved,
    )
    running = steps.with_status(StepStatus.RUNNING)
    if isinstance(move, Start):
        assert not ordered and not used
        for each in move.steps:
            assert steps.step(each).status is StepStatus.PENDING
            assert all(state.holds(name) for name in steps.step(each).reads())
    if isinstance(move, Wait):
        assert running
    if isinstance(move, Ask):
        assert unresolved and not running
    if isinstance(move, Finish) and move.status == "satisfied":
        assert all(each.status in ("done", "skipped") for each in steps.live())

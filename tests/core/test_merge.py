"""A new draft over the old plan: finished work is matched by what it makes, whatever the planner calls it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.merge import PlanDelta, delayed, delta, replan, rewrite, same_work
from agent.core.plan import Call, Plan, Step, StepId, StepStatus
from agent.core.world import World, commit
from tests.builders import artifact, plan, statuses, step, world


def renumbered(*steps: Step) -> tuple[Step, ...]:
    """The same steps, as a planner draws them anew: its own ids, everything to do."""
    return tuple(
        each.model_copy(update={"id": StepId(str(index)), "status": StepStatus.PENDING, "attempts": 0})
        for index, each in enumerate(steps)
    )


def laid(old: Plan | None, *draft: Step, over: World | None = None, wants: str = "", goal: int = 1) -> Any:
    return replan(old, draft, over or world(), wants.split(), goal, "test")


def test_the_first_plan_gets_runtime_ids_and_ordering_edges_follow_them() -> None:
    new, change = laid(None, step("a", id="1"), step("b", id="2", after=["1", "elsewhere"]))
    assert [each.id for each in new.steps] == ["s1.1", "s1.2"]
    assert new.steps[1].after == ("s1.1", "elsewhere")
    assert (new.revision, new.goal_revision, new.planner) == (1, 1, "test")
    assert change.added == ("s1.1", "s1.2")


def test_finished_work_is_reused_though_every_step_has_a_new_number() -> None:
    old = plan(step("a", status="done"), step("b", "a", status="done"), step("c", "b"))
    new, change = laid(old, *renumbered(*old.steps), over=world("a", "b"), wants="c")
    assert statuses(new) == {"a": "done", "b": "done", "c": "pending"}
    assert [each.id for each in new.live()] == ["A", "B", "C"]
    assert (change.kept, change.added, change.superseded) == (("A", "B", "C"), (), ())


def test_finished_work_stays_though_the_draft_does_not_mention_it() -> None:
    old = plan(step("a", status="done"), step("b", "a", status="done"), step("c", "b", status="failed"))
    draft = step("c", "b", id="1", call={"tool": "other", "args": {}})
    new, change = laid(old, draft, over=world("a", "b"), wants="c")
    assert statuses(new) == {"a": "done", "b": "done", "c": "pending"}
    assert (change.kept, change.added, change.superseded) == (("A", "B"), ("s2.1",), ("C",))


def test_finished_work_that_serves_nothing_any_more_is_superseded_and_keeps_its_artifact() -> None:
    old = plan(step("a", status="done"), step("b", status="done"))
    new, change = laid(old, over=world("a", "b"), wants="b", goal=2)
    assert statuses(new) == {"b": "done"}
    assert change.superseded == ("A",)
    assert new.step(StepId("A")).reason == "not in the new plan"


def test_finished_work_that_does_not_hold_is_done_again() -> None:
    old = plan(step("a", status="invalid"), step("b", "a", status="invalid"))
    fallen = world(artifact("a", mark="root"), artifact("b", mark="derived"))
    new, change = laid(old, *renumbered(*old.steps), over=fallen, wants="b")
    assert statuses(new) == {"a": "pending", "b": "pending"}
    assert change.reopened == ("A", "B")


def test_a_running_step_is_never_taken_out_of_the_plan() -> None:
    old = plan(step("a", status="running"), step("b", status="running"))
    new, _ = laid(old, *renumbered(old.steps[0]), wants="x")
    assert statuses(new) == {"a": "running", "b": "running"}


@pytest.mark.parametrize("tool", ["make_b", "another"], ids=["the same way", "another way"])
def test_what_a_person_left_out_comes_back_with_another_goal_and_not_with_a_replan(tool: str) -> None:
    old = plan(step("a", status="done"), step("b", "a", status="skipped", reason="not needed"), step("c", "b"))
    draft = (step("b", "a", call=Call(tool=tool)), step("c", "b"))
    new, _ = laid(old, *renumbered(*draft), over=world("a"))
    assert (statuses(new)["b"], new.producer("b").reason) == ("skipped", "not needed")
    assert statuses(new)["c"] == "pending"
    other, _ = laid(old, *renumbered(*draft), over=world("a"), goal=2)
    assert statuses(other)["b"] == "pending"


def test_the_same_work_takes_over_what_the_new_draft_says_about_it() -> None:
    old = plan(step("a", serves=["x"], attempts=2))
    drawn = step("a", id="1", intent="anew", serves=["y"], effects=["result == 1"], preconditions=["facts.f == 1"])
    new, _ = laid(old, drawn, wants="a")
    (only,) = new.live()
    assert (only.id, only.intent, only.serves, only.attempts) == ("A", "anew", ("y",), 2)
    assert (only.effects, only.preconditions) == (("result == 1",), ("facts.f == 1",))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param({"id": "z", "intent": "other words", "status": "failed", "attempts": 3}, True, id="names"),
        pytest.param({"needs": "q", "serves": ["c"]}, True, id="what it waits for"),
        pytest.param({"produces": "other"}, False, id="another product"),
        pytest.param({"call": {"tool": "other"}}, False, id="another tool"),
        pytest.param({"call": {"tool": "make_a", "args": {"n": 2}}}, False, id="other arguments"),
        pytest.param({"call": None, "instruction": "do it"}, False, id="an instruction"),
    ],
)
def test_ids_and_words_do_not_make_other_work(other: dict[str, Any], same: bool) -> None:
    one = step("a")
    assert same_work(one, Step.model_validate({**one.model_dump(), **other})) is same


def test_a_rewrite_replaces_its_region_and_touches_nothing_else() -> None:
    old = plan(
        step("a", status="done"), step("b", "a", status="invalid"), step("c", "b", status="invalid"), step("d", "a")
    )
    region = frozenset({StepId("B"), StepId("C")})
    draft = [step("b", "a", id="1"), step("c", "b", id="2", call={"tool": "other"})]
    new, change = rewrite(old, region, draft, world("a"))
    assert statuses(new) == {"a": "done", "b": "pending", "c": "pending", "d": "pending"}
    assert new.revision == 2
    assert change.kept == ("A", "D")
    assert (change.reopened, change.added, change.superseded) == (("B",), ("s2.2",), ("C",))
    assert new.step(StepId("C")).reason == "rewritten"


def test_a_rewrite_does_not_draw_twice_what_is_in_the_plan_outside_its_region() -> None:
    old = plan(step("a", status="done"), step("b", "a", status="invalid"), step("c", "b", status="failed"))
    draft = renumbered(*old.steps)  # of a planner that saw neither a nor b, which is made from it
    new, change = rewrite(old, frozenset({StepId("A"), StepId("C")}), draft, world())
    assert [each.id for each in new.live()] == ["A", "B", "C"]
    assert statuses(new) == {"a": "pending", "b": "invalid", "c": "pending"}
    assert (change.reopened, change.kept, change.added) == (("A", "C"), ("B",), ())


def test_every_step_is_in_exactly_one_list_of_the_delta() -> None:
    old = plan(step("a", status="done"), step("b", status="failed"), step("c"), step("gone", status="superseded"))
    new = plan(
        step("a", status="done"),
        step("b", status="pending"),
        step("c", status="superseded"),
        step("gone", status="superseded"),
        step("d"),
    )
    change = delta(old, new)
    assert (change.kept, change.reopened, change.added, change.superseded) == (("A",), ("B",), ("D",), ("C",))


def test_who_looks_again_and_who_is_new_waits_and_nobody_else_does() -> None:
    steps = plan(step("a"), step("b"), step("c"), step("d"))
    change = PlanDelta(reopened=(StepId("A"), StepId("B")), added=(StepId("C"),), kept=(StepId("D"),))
    after = delayed(steps, change, frozenset({StepId("A"), StepId("D")}), 2.0)
    assert [each.delay for each in after.steps] == [2.0, 0.0, 2.0, 0.0]


# --- any plan, any draft ----------------------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d", "e"]
STATES = st.sampled_from(["pending", "running", "done", "invalid", "failed", "skipped"])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Plan, tuple[Step, ...], World, list[str]]:
    """An old plan in any state and a new draft that repeats some of it and changes the rest."""
    state = world()
    steps, drawn = [], []
    for index, name in enumerate(NAMES):
        needs = " ".join(draw(st.lists(st.sampled_from(NAMES[:index]), unique=True, max_size=2))) if index else ""
        status = draw(STATES)
        if draw(st.booleans()):
            steps.append(step(name, needs, status=status))
            if status == "done":
                state = commit(state, artifact(name))
        choice = draw(st.sampled_from(["same", "other", "left out"]))
        if choice != "left out":
            again = step(name, needs)
            drawn.append(again if choice == "same" else again.model_copy(update={"call": Call(tool="other")}))
    return plan(*steps), renumbered(*drawn), state, draw(st.lists(st.sampled_from(NAMES), unique=True))


@given(pairs())
def test_the_delta_accounts_for_every_step_once(case: tuple[Plan, tuple[Step, ...], World, list[str]]) -> None:
    old, draft, state, wants = case
    new, change = replan(old, draft, state, wants, 1, "test")
    lists = [change.kept, change.reopened, change.added, change.superseded]
    everything = [each for ids in lists for each in ids]
    assert len(everything) == len(set(everything))
    assert set(everything) == {each.id for each in new.live()} | set(change.superseded)
    assert {each.id for each in old.steps} <= {each.id for each in new.steps}
    assert set(change.added) == {each.id for each in new.steps} - {each.id for each in old.steps}


@given(pairs())
def test_a_replan_never_makes_again_what_holds_and_never_drops_what_runs(
    case: tuple[Plan, tuple[Step, ...], World, list[str]],
) -> None:
    old, draft, state, wants = case
    new, _ = replan(old, draft, state, wants, 1, "test")
    for was in old.live():
        now = new.step(was.id)
        if was.status is StepStatus.RUNNING:
            assert now.status is StepStatus.RUNNING
        if was.status is StepStatus.DONE:
            assert now.status in (StepStatus.DONE, StepStatus.SUPERSEDED)
        if was.status is StepStatus.DONE and any(same_work(was, each) for each in draft):
            assert now.status is StepStatus.DONE
    for drawn in draft:
        assert any(same_work(each, drawn) for each in new.live())


@given(pairs())
def test_the_same_draft_again_changes_nothing_but_the_revision(
    case: tuple[Plan, tuple[Step, ...], World, list[str]],
) -> None:
    old, draft, state, wants = case
    new, _ = replan(old, draft, state, wants, 1, "test")
    again, change = replan(new, draft, state, wants, 1, "test")
    assert {each.id: each for each in again.live()} == {each.id: each for each in new.live()}
    assert (change.reopened, change.added, change.superseded) == ((), (), ())


@given(pairs(), st.data())
def test_a_rewrite_leaves_everything_outside_its_region_as_it_was(
    case: tuple[Plan, tuple[Step, ...], World, list[str]], data: st.DataObject
) -> None:
    old, draft, state, _ = case
    region = frozenset(data.draw(st.sets(st.sampled_from([each.id for each in old.steps]))) if old.steps else ())
    inside = tuple(
        each for each in draft if any(set(each.produces) == set(o.produces) for o in old.steps if o.id in region)
    )
    new, _ = rewrite(old, region, inside, state)
    for was in old.steps:
        if was.id not in region:
            assert new.step(was.id) == was
    assert len({each.id for each in new.steps}) == len(new.steps)

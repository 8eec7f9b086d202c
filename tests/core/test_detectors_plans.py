"""Thrash, over-decomposition, drift and premature completion, each as a decision over values."""

from typing import Any

import pytest

from agent.core.acceptance import astray, same_inputs, stuck
from agent.core.decomposition import Split, as_large, deepened, split_faults, split_in_place
from agent.core.drift import idle, restated, unspoken
from agent.core.goal import Criterion, completed
from agent.core.limits import Ledger
from agent.core.outcome import OutcomeStatus, completion, conclude, lacking, untold
from agent.core.plan import Call, Step, StepId
from agent.core.thrash import SHAPE, broken_step, drawn_again, equivalent, repeats, unchanged
from agent.core.ways import remember
from tests.builders import artifact, failure, goal, plan, step, view, world


def instruction(produces: str, text: str = "look", tools: str = "a b", **more: Any) -> Step:
    return step(produces, call=None, instruction=text, tools=tuple(tools.split()), **more)


# --- thrash -----------------------------------------------------------------------------------------------------

X = step("x", "a", id="old")


@pytest.mark.parametrize(
    "other",
    [
        step("x", "a", id="new", intent="in other words"),
        step("x", "a", id="new", serves=("x",)),
    ],
)
def test_the_same_work_under_another_id_is_the_same_work(other: Step) -> None:
    assert equivalent(X, other)


@pytest.mark.parametrize(
    "other",
    [
        step("y", "a"),
        step("x", "a", call=Call(tool="other", args={"a": "{{a}}"})),
        step("x", "a", call=Call(tool="make_x", args={"a": "{{b}}"})),
        step("x", "a", call=Call(tool="make_x", args={"a": "{{A}}"})),
        step("x", "a", effects=("result > 1",)),
        instruction("x"),
    ],
)
def test_another_end_or_another_way_is_other_work(other: Step) -> None:
    assert not equivalent(X, other)


def test_instructions_are_the_same_when_words_and_tools_are() -> None:
    assert equivalent(instruction("x"), instruction("x", "Look ", "b a"))
    assert not equivalent(instruction("x"), instruction("x", "look closer"))
    assert not equivalent(instruction("x"), instruction("x", "look", "a"))


def test_the_failed_step_alone_is_no_other_plan() -> None:
    assert unchanged((step("a"), step("x", "a", id="new")), X, ["a"]) == step("x", "a", id="new")
    assert unchanged((step("y"),), X, ["a"]) is None


def test_the_failed_step_after_one_that_is_to_do_is_another_plan() -> None:
    again = step("x", "a", id="new")
    assert unchanged((step("a"), again), X, []) is None
    helped = step("x", "a", id="new", after=(StepId("B"),))
    assert unchanged((step("a"), step("b"), helped), X, ["a"]) is None
    assert unchanged((step("a"), step("b"), again), X, ["a"]) == again


def test_a_call_that_failed_by_itself_fails_under_another_name_too() -> None:
    renamed = step("z", "a", call=X.call, effects=("result > 1",))
    thrown, judged = failure("x", step="old"), failure("x", kind="verdict", step="old")
    assert drawn_again((renamed,), thrown, [X], ["a"]) == renamed
    assert drawn_again((renamed,), judged, [X], ["a"]) is None
    assert drawn_again((step("a"), renamed), thrown, [X], []) is None
    assert drawn_again((renamed,), None, [X], ["a"]) is None


def test_a_step_that_failed_is_found_in_the_plan_it_failed_in() -> None:
    failed = failure("x", step="old")
    assert broken_step(failed, [X]) == X
    assert broken_step(failed, [step("y")]) is None
    assert broken_step(failure("x", step=None), [X]) is None
    assert broken_step(None, [X]) is None


def test_a_step_that_a_person_has_spoken_about_is_another_try() -> None:
    assert broken_step(failure("x", step="old"), [X.model_copy(update={"hint": "use the other door"})]) is None


def test_inputs_that_changed_make_another_try() -> None:
    state = world(artifact("a", 1))
    digest = state.artifacts["a"].digest
    assert same_inputs(failure("x", inputs={"a": digest}), state)
    assert same_inputs(failure("x"), state)
    assert not same_inputs(failure("x", inputs={"a": "other"}), state)
    assert not same_inputs(failure("x", inputs={"a": digest}), world(artifact("a", 1, mark="root")))
    assert not same_inputs(None, state)


def test_no_progress_is_said_with_what_would_be() -> None:
    wrong = remember(Ledger(), X)
    assert stuck((X,), wrong, None, (), ()) == f"the new plan repeats make_x for x, which was proven wrong; {SHAPE}"
    again = step("x", "a", id="new")
    assert stuck((again,), Ledger(), failure("x", step="old"), [X], ["a"]) == repeats(again)
    assert "Make x in another way" in repeats(again)
    assert stuck((again,), Ledger(), failure("x", step="old"), [], ["a"]) == ""
    assert stuck((step("y"),), Ledger(), failure("x", step="old"), [X], ["a"]) == ""


# --- over-decomposition -----------------------------------------------------------------------------------------


def parts(*into: Step, of: Step | None = None, depth: int = 1, redrawn: bool = False) -> list[str]:
    whole = of or instruction("x", "do it all")
    return list(split_faults(Split(of=whole, into=into, depth=depth, redrawn=redrawn), 2))


def test_parts_that_are_simpler_are_a_plan() -> None:
    assert parts(instruction("y", "first", "a"), step("x", "y")) == []


def test_each_of_the_three_stops_is_named() -> None:
    two = (instruction("y", "first", "a"), step("x", "y"))
    assert parts(*two, depth=3) == ["step 'X' is split 3 levels deep; at most 2: do it in one step"]
    assert parts(step("x")) == ["step 'X' is split into the one step 'X', which changes nothing; give that alone"]
    large = instruction("x", "Do  it all", "a", id="p")
    assert parts(two[0], large) == ["step 'p' is as large as 'X', of which it is a part; the parts have to be simpler"]


def test_a_group_is_no_step_and_loses_nothing() -> None:
    assert parts(step("y"), step("z")) == ["step 'X' makes 'x', and none of its sub-steps does"]
    assert parts(step("y"), step("x"), of=step("x", id="w", call=Call(tool="t"))) == [
        "step 'w' has a tool and sub-steps; give one of them"
    ]


def test_what_takes_the_place_of_a_broken_step_is_held_to_the_depth_alone() -> None:
    assert parts(step("y"), depth=2, redrawn=True) == []
    assert len(parts(step("y"), depth=3, redrawn=True)) == 1


def test_a_part_is_as_large_as_the_whole_by_words_by_reach_or_by_the_same_call() -> None:
    whole = instruction("x", "look", "a b")
    assert as_large(instruction("x", "other words", "a b c"), whole)
    assert not as_large(instruction("x", "other words", "a"), whole)
    assert not as_large(instruction("x", "other words", ""), instruction("x", "look", ""))
    assert not as_large(step("x"), whole)
    assert as_large(step("x"), step("x", id="y"))


def test_a_redrawn_step_is_split_when_several_new_steps_make_what_it_made() -> None:
    broken = step("x", "a", depth=1)
    draft = (step("a"), step("y", "a"), step("x", "y", call=Call(tool="other")))
    split = split_in_place(broken, draft, ["a"])
    assert split is not None
    assert ([each.key for each in split.into], split.depth) == (["y", "x"], 2)
    assert [each.depth for each in deepened(draft, split)] == [0, 2, 2]
    assert deepened(draft, None) == draft


def test_a_redrawn_step_that_stays_one_or_is_only_prepared_is_not_split() -> None:
    broken = step("x", "a")
    assert split_in_place(broken, (step("a"), step("x", "a", call=Call(tool="other"))), ["a"]) is None
    assert split_in_place(broken, (step("y"), step("x", "a", after=(StepId("Y"),))), ["a"]) is None


# --- drift ------------------------------------------------------------------------------------------------------

AIM = goal("x", "artifacts.x > 1", text="Make x")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (
            {"text": "Make y"},
            "the goal is 'Make x', and the draft words it as 'Make y'; plan the goal as it was stated",
        ),
        ({"wants": ["y"]}, "the goal wants x, and the draft says y; leave `wants` out"),
        ({"wants": ["x", "y"]}, "the goal wants x, and the draft says x, y; leave `wants` out"),
        (
            {"predicates": ["artifacts.x > 0"]},
            "the criterion 'artifacts.x > 0' is none of the goal's; leave `criteria` out",
        ),
    ],
)
def test_a_goal_that_is_worded_anew_is_named(said: dict[str, Any], fault: str) -> None:
    assert restated(AIM, ["x"], **said) == (fault,)


def test_a_goal_that_is_said_again_is_the_goal() -> None:
    assert restated(AIM, ["x"], "make  X", ["x"], ["artifacts.x>1"]) == ()
    assert restated(AIM, ["x"]) == ()
    assert restated(goal("x y"), ["x", "y"], "In words", ["y", "x"]) == ()


def test_a_text_may_be_given_its_meaning() -> None:
    assert restated(goal(text="Make something"), [], "", ["y"], ["artifacts.y > 0"]) == ()


def test_only_a_text_is_completed_and_keeps_the_criteria_it_came_with() -> None:
    judged, understood = Criterion(id="c1", text="it reads well"), Criterion(id="c2", predicate="artifacts.y > 0")
    text = goal(text="Make something").model_copy(update={"criteria": (judged,)})
    whole = completed(text, ("y",), (judged.model_copy(update={"text": "other"}), understood))
    assert (whole.wants, whole.criteria, whole.revision) == (("y",), (judged, understood), 2)
    assert completed(AIM, ("y",), ()) == AIM
    assert completed(text, (), ()) == text


def test_steps_that_nothing_of_the_goal_stands_on_are_idle() -> None:
    steps = (step("a"), step("x", "a"), step("b"), step("c", "b"), step("first"), step("y", after=(StepId("FIRST"),)))
    assert [each.key for each in idle(steps, frozenset({"x", "y"}))] == ["b", "c"]


def test_a_criterion_that_is_lost_is_named_and_one_that_holds_is_not() -> None:
    aim = goal("x", text="t").model_copy(update={"criteria": (Criterion(id="safe", predicate="artifacts.audit == 1"),)})
    lost = "criterion 'safe' checks 'audit', but no step produces it"
    assert astray(aim, (step("x"),), (), (), ()) == (lost,)
    assert astray(aim, (step("x"),), (), (), ("audit",)) == ()
    assert astray(aim, (step("x"), step("audit")), ("y",), (), ()) == (
        "the goal wants x, and the draft says y; leave `wants` out",
    )
    assert astray(goal(text="t"), (step("x"),), ("x",), (), ()) == ()


# --- premature completion ---------------------------------------------------------------------------------------


def test_done_work_that_does_not_hold_is_missing() -> None:
    drawn = plan(step("x", status="done"), step("y", status="done"))
    state = world("x", artifact("y", mark="root"))
    judged = completion(goal("x"), drawn, state, view(state))
    assert judged.missing == ("step Y is done, and y, which it made, does not hold",)
    assert lacking(step("z"), state) == ()


def test_a_report_shows_all_that_was_done_or_says_that_it_is_missing() -> None:
    drawn = plan(step("x", status="done"), step("y", status="done"), step("z"))
    state = world("x", artifact("y", mark="root"))
    outcome = conclude(OutcomeStatus.NO_PROGRESS, "", goal("x"), drawn, state, view(state))
    assert untold(drawn, outcome, "x (version 1)") == ()
    assert untold(drawn, outcome, "all is well") == ("step X made x, of which the report says nothing",)


@pytest.mark.parametrize(
    ("text", "said", "left"),
    [
        ("Count the lines of logs/app.log into n.txt.", "logs/app.log", "n.txt"),
        ("Count the lines of logs/app.log into n.txt.", "LOGS N.TXT", ""),
        ("Mail kim@example.org what https://example.org/a?b=1 says", "", "kim@example.org https://example.org/a?b=1"),
        ("Read \u00fcbersicht.csv (see ../old/final.tar.gz)!", "", "\u00fcbersicht.csv ../old/final.tar.gz"),
        ("Weigh it, e.g. 3.5 kg and/or 7 km/h, as of v1.2, i.e. by calling os.getpid()", "", ""),
    ],
)
def test_what_a_goal_names_and_no_step_speaks_of_is_found(text: str, said: str, left: str) -> None:
    steps = (step("x", call=Call(tool="t", args={"deep": [{"path": said}]})), instruction("y", "nothing of it"))
    assert unspoken(text, steps) == tuple(left.split())
    assert unspoken(text, (instruction("y", f"look at {text}"),)) == ()

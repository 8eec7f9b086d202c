"""Which calls wait for a person, what a word allows, and which limits a person may raise."""

from typing import Any

import pytest

from agent.core.consent import (
    Approve,
    Consent,
    Held,
    allowed_as_it_is,
    as_allowed,
    given_word,
    held_calls,
    shown,
    unknown_tools,
)
from agent.core.dispatch import next_move
from agent.core.grant import granted, refuse_unraised
from agent.core.limits import Ledger, Limits
from agent.core.move import Ask, Start, Wait
from agent.core.plan import Call, StepId
from agent.core.question import Asking, question_before
from agent.core.regrading import regraded
from agent.core.repair import call_digest
from agent.core.world import GIVEN
from tests.builders import WRITE, artifact, contracts, goal, plan, promise, step, view, world

KNOWN = contracts(
    promise("make_r", produces="r"),
    promise("make_i", produces="i", effect=WRITE, idempotent=True),
    promise("make_w", "r", produces="w", effect=WRITE),
)


@pytest.mark.parametrize(
    ("approve", "tools", "needed"),
    [
        ("never", (), ""),
        ("non_idempotent", (), "make_w unknown"),
        ("mutating", (), "make_i make_w unknown"),
        ("never", ("make_r",), "make_r"),
        ("non_idempotent", ("make_i",), "make_i make_w unknown"),
    ],
    ids=["never", "non_idempotent", "mutating", "a tool", "both"],
)
def test_which_calls_wait_for_a_person(approve: str, tools: tuple[str, ...], needed: str) -> None:
    consent = Consent(approve=Approve(approve), tools=frozenset(tools), contracts=KNOWN)
    waiting = [each for each in (*KNOWN, "unknown") if consent.needed(each)]
    assert waiting == sorted(needed.split(), key=lambda each: [*KNOWN, "unknown"].index(each))


def test_a_policy_that_names_no_tool_is_found_out() -> None:
    assert unknown_tools(["make_w", "ghost"], KNOWN) == ("ghost",)


MUTATING = Consent(approve=Approve.MUTATING, contracts=KNOWN)
PLAN = plan(step("r", status="done"), step("w", "r", effect=WRITE), step("i", effect=WRITE))
WORLD = world(artifact("r", 500))
HELD = Held(step=StepId("W"), call=Call(tool="make_w", args={"r": 500}))


def test_ready_calls_are_held_with_their_references_resolved() -> None:
    assert shown(PLAN, WORLD, MUTATING) == {"r"}
    found = held_calls(PLAN, WORLD, view(WORLD), MUTATING, {})
    assert found == (HELD, Held(step=StepId("I"), call=Call(tool="make_i")))


def test_what_is_not_ready_or_cannot_be_resolved_is_not_held() -> None:
    assert held_calls(PLAN, world(), {}, MUTATING, {})[0].step == "I"
    assert [each.step for each in held_calls(PLAN, WORLD, {}, MUTATING, {})] == ["I"]


def test_an_inner_loop_is_held_by_what_it_wanted_to_call() -> None:
    asks = (Call(tool="make_w", args={"r": 1}), Call(tool="make_r"), Call(tool="make_w", args={"r": 2}))
    looping = plan(step("x", call=None, instruction="do", asks=asks))
    found = held_calls(looping, world(), {}, MUTATING, {call_digest("make_w", {"r": 1}): {}})
    assert [each.call.args for each in found] == [{}, {"r": 2}], "whatever it asks for, it has its reasons"
    assert as_allowed(looping.steps[0], {}, MUTATING, {"any": {"r": 3}}) == looping.steps[0]


def test_a_word_allows_the_call_as_it_is_and_as_it_was_changed() -> None:
    words = given_word(HELD, {"r": 50}, {})
    assert words == {HELD.identity: {"r": 50}, call_digest("make_w", {"r": 50}): {}}
    changed = as_allowed(PLAN.step(StepId("W")), view(WORLD), MUTATING, words)
    assert changed.call == Call(tool="make_w", args={"r": 50})
    assert held_calls(PLAN.with_steps(changed), WORLD, view(WORLD), MUTATING, words)[0].step == "I"
    assert allowed_as_it_is(changed, {}) == {call_digest("make_w", {"r": 50}): {}}


def test_a_word_without_changes_leaves_the_references_in_place() -> None:
    planned = PLAN.step(StepId("W"))
    assert as_allowed(planned, view(WORLD), MUTATING, given_word(HELD, {}, {})) == planned
    assert as_allowed(planned, view(WORLD), Consent(), {HELD.identity: {"r": 1}}) == planned


def test_a_reference_that_leads_nowhere_allows_no_other_call() -> None:
    assert given_word(HELD, {"r": "{{r.none}}"}, view(WORLD)) == {HELD.identity: {"r": "{{r.none}}"}}


def test_a_large_argument_is_shown_as_it_was_planned() -> None:
    large = Held(step=StepId("W"), call=Call(tool="make_w", args={"r": "x" * 5000}))
    asked = question_before(large, Asking(plan=PLAN))
    assert asked.call == Call(tool="make_w", args={"r": "{{r}}"})


def test_the_same_call_asked_about_again_is_another_question() -> None:
    first = question_before(HELD, Asking(plan=PLAN))
    again = question_before(HELD, Asking(plan=PLAN, answered=frozenset({first.id})))
    assert first.id != again.id


def test_held_steps_wait_while_the_others_start_and_are_asked_about_last() -> None:
    def move(*steps: Any, held: str) -> Any:
        waits = frozenset(StepId(each) for each in held.split())
        return next_move(goal("x y"), world(), plan(*steps), {}, Limits(), Ledger(), held=waits)

    start = move(step("x"), step("y"), held="X")
    assert isinstance(start, Start)
    assert start.steps == ("Y",)
    assert isinstance(move(step("x"), step("y", status="running"), held="X"), Wait)
    assert isinstance(move(step("x"), step("y"), held="X Y"), Ask)


@pytest.mark.parametrize(
    ("grants", "says"),
    [({"ghost": 3}, "no limit 'ghost'"), ({"retry": -1}, "retry"), ({"retry": 2.5}, "retry")],
    ids=["unknown", "negative", "no whole number"],
)
def test_a_grant_that_is_no_limit_is_refused(grants: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        granted(Limits(), grants)


def test_a_grant_raises_one_limit_and_leaves_the_others() -> None:
    assert granted(Limits(patch=7), {"retry": 9}) == Limits(patch=7, retry=9)
    assert granted(Limits(patch=7), {}) == Limits(patch=7)


def test_a_grant_has_to_allow_more_than_before() -> None:
    refuse_unraised({"retry": 4}, {"retry": 3})
    with pytest.raises(ValueError, match="'retry' is 3 already; 3 would not raise it"):
        refuse_unraised({"retry": 3}, {"retry": 3})
    with pytest.raises(ValueError, match="no limit 'ghost'"):
        refuse_unraised({"ghost": 3}, {"retry": 3})


def test_finished_work_serves_if_the_goal_or_its_plan_stands_on_it() -> None:
    there = world(
        artifact("a"),
        artifact("b", inputs={"a": "any"}),
        artifact("c"),
        artifact("d", mark="root"),
        artifact("given", producer=GIVEN),
    )
    found = regraded(
        goal("e", "artifacts.b == 1"), there, plan(step("b", "a", status="done"), step("e", "b")), view(there)
    )
    assert (found.serving, found.set_aside) == (("a", "b"), ("c",))
    assert [each.verdict for each in found.grades] == ["refuted", "verified"]

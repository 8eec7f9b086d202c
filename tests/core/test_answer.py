"""What a person is asked, which answers are taken, and what they change."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from agent.core.answer import (
    advised,
    calls_wrongly,
    edited,
    fitting_answers,
    forgiven,
    hinted,
    hints,
    may_repeat,
    parse_answers,
    reopened,
    skipped,
    tried_again,
)
from agent.core.control import Answer, Choice, Question, Recovery
from agent.core.ladder import Refusal, Rung, RungChoice
from agent.core.limits import Ledger
from agent.core.plan import Call, StepId
from agent.core.question import Asking, question_about, question_id, still_open
from agent.core.ways import remember
from tests.builders import WRITE, classified, contracts, plan, promise, statuses, step


def recovery(of: str = "x", *passed: tuple[str, str], effect: str = "absent", **more: Any) -> Recovery:
    refusals = tuple(Refusal(rung=Rung(rung), reason=reason) for rung, reason in passed)
    choice = RungChoice(rung=Rung.ESCALATE, start=Rung.RETRY, passed=refusals)
    return Recovery(classified=classified("nothing", of, effect, **more), choice=choice)


def test_a_question_tells_the_ladders_history() -> None:
    stuck = recovery(
        "x", ("retry", "budget used"), ("patch", "nothing left"), ("rewrite", "nothing left"), message="no"
    )
    asked = question_about(
        stuck, Asking(plan=plan(step("x")), ledger=Ledger(retry={"x": 3, "y": 1}, replan=1), readers=True)
    )
    assert asked.tried == ("retry x3", "replan x1", "retry: budget used", "patch, rewrite: nothing left")
    assert asked.error == "no"
    assert "make x" in asked.question
    assert set(asked.choices) == set(Choice) - {Choice.APPROVE}


def test_a_question_about_no_step_cannot_be_answered_by_skipping_it() -> None:
    asked = question_about(recovery("x", step=None), Asking(plan=plan(step("x"))))
    assert asked.step is None
    assert asked.choices == (Choice.RETRY, Choice.RAISE, Choice.GOAL, Choice.ABORT)


def test_the_same_failure_asks_under_the_same_id() -> None:
    assert question_id(recovery("x", message="one")) == question_id(recovery("x", message="two"))
    assert question_id(recovery("x")) != question_id(recovery("y"))


ONE = {"q1": Question(id="q1", question="?")}
TWO = {**ONE, "q2": Question(id="q2", question="?", choices=(Choice.RETRY, Choice.GOAL, Choice.ABORT))}


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        pytest.param("retry", "retry", id="a bare word"),
        pytest.param({"choice": "abort"}, "abort", id="a mapping"),
        pytest.param({"q1": "retry"}, "retry", id="by id"),
        pytest.param({"choice": "skip", "reason": "not needed"}, "skip", id="skip with its reason"),
        pytest.param({"choice": "answer", "value": 0}, "answer", id="a value, also a false one"),
        pytest.param({"choice": "goal", "goal": {"wants": "y"}}, "goal", id="another goal"),
        pytest.param({"choice": "goal", "goal": "in words"}, "goal", id="another goal in words"),
    ],
)
def test_a_single_question_is_answered_with_or_without_its_id(given: Any, choice: str) -> None:
    assert parse_answers(given, ONE)["q1"].choice == choice


def test_several_questions_are_answered_by_id_in_any_order_and_not_all_at_once() -> None:
    both = parse_answers({"q2": "abort", "q1": "retry"}, TWO)
    assert {each: answer.choice for each, answer in both.items()} == {"q1": "retry", "q2": "abort"}
    assert list(parse_answers({"q2": "abort"}, TWO)) == ["q2"]


@pytest.mark.parametrize(
    ("given", "questions", "says"),
    [
        pytest.param("retry", TWO, "answer by id: q1, q2", id="which one?"),
        pytest.param({"q1": "retry", "q3": "retry"}, TWO, "no open question 'q3'; open: q1, q2", id="unknown id"),
        pytest.param("nonsense", ONE, "retry", id="unknown word"),
        pytest.param(None, ONE, "valid dictionary", id="nothing"),
        pytest.param(["retry"], ONE, "valid dictionary", id="a list"),
        pytest.param({"choice": "skip"}, ONE, "needs a reason", id="skip without a reason"),
        pytest.param({"choice": "skip", "reason": "  "}, ONE, "needs a reason", id="skip with an empty reason"),
        pytest.param({"choice": "answer"}, ONE, "needs a value", id="answer without a value"),
        pytest.param({"choice": "goal"}, ONE, "needs a goal", id="goal without a goal"),
        pytest.param({"choice": "retry", "extra": 1}, ONE, "extra", id="unknown field"),
        pytest.param({"q2": {"choice": "skip", "reason": "r"}}, TWO, "cannot be answered", id="not offered"),
    ],
)
def test_a_bad_answer_is_refused_with_its_reason(given: Any, questions: dict[str, Question], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_answers(given, questions)


def test_an_answer_is_checked_as_a_value_too() -> None:
    with pytest.raises(ValidationError, match="needs a reason"):
        Answer(choice=Choice.SKIP)


def test_to_try_again_gives_this_failure_fresh_budgets_and_no_other() -> None:
    stuck = recovery("x")
    fingerprint = stuck.classified.failure.fingerprint
    ledger = Ledger(
        retry={"x": 3, "y": 1},
        patch={"x": 2},
        rewrite={"x": 1},
        tried={"x": ("d",), "y": ("e",)},
        failures={fingerprint: "escalate", "other": "patch"},
        replan=1,
        verified_at_replan=3,
        barren=9,
        steps=40,
        tokens=50,
    )
    fresh = forgiven(ledger, stuck)
    assert (fresh.retry, fresh.patch, fresh.rewrite) == ({"y": 1}, {}, {})
    assert (fresh.tried, fresh.failures) == ({"y": ("e",)}, {"other": "patch"})
    assert (fresh.replan, fresh.verified_at_replan, fresh.barren) == (0, -1, 0)
    assert (fresh.steps, fresh.tokens) == (40, 50)


def test_a_step_tried_again_waits_for_nothing() -> None:
    steps = plan(step("x", status="failed", delay=9.0, reason="no"))
    again = tried_again(steps, StepId("X")).steps[0]
    assert (again.status, again.delay, again.reason) == ("pending", 0.0, "")
    assert tried_again(steps, None) == steps


def test_to_skip_a_step_skips_what_depends_on_it_and_says_why() -> None:
    steps = plan(step("a", status="failed"), step("b", "a"), step("c", "b"), step("d", "a", status="done"), step("e"))
    after = skipped(steps, StepId("A"), "no access")
    assert statuses(after) == {"a": "skipped", "b": "skipped", "c": "skipped", "d": "done", "e": "pending"}
    assert after.step(StepId("A")).reason == "no access"
    assert after.step(StepId("C")).reason == "depends on A, which was skipped"


def test_an_answer_has_to_be_what_the_step_makes() -> None:
    asked = {"q": Question(id="q", question="?", step=StepId("X"))}
    steps = plan(step("x y"))
    with pytest.raises(ValueError, match="must give x and y by name"):
        fitting_answers({"choice": "answer", "value": {"x": 1}}, asked, steps)
    assert fitting_answers({"choice": "answer", "value": {"x": 1, "y": 2}}, asked, steps)["q"].value
    assert fitting_answers("retry", asked, steps)["q"].choice == "retry"


@pytest.mark.parametrize(
    ("status", "open_"),
    [
        ("failed", True),
        ("invalid", True),
        ("done", False),
        ("pending", False),
        ("skipped", False),
        ("superseded", False),
    ],
)
def test_only_what_still_stands_is_asked_about(status: str, open_: bool) -> None:
    assert bool(still_open([recovery("x")], plan(step("x", status=status)))) is open_


def test_a_failure_of_no_step_stays_open_and_the_same_one_is_asked_about_once() -> None:
    assert len(still_open([recovery("x", step=None)], plan())) == 1
    twice = [recovery("x", message="one"), recovery("x", message="two")]
    assert still_open(twice, plan(step("x", status="failed"))) == (twice[1],)


def test_a_step_is_asked_about_once_and_by_the_failure_that_came_first() -> None:
    first, after = recovery("x"), recovery("x", effect="unknown", kind="refused", message="the same call again")
    assert question_id(first) != question_id(after)
    assert still_open([first, after, recovery("y")], plan(step("x", status="failed"))) == (first,)


@pytest.mark.parametrize(
    ("effect", "contract", "repeats"),
    [
        pytest.param("unknown", {}, True, id="nothing can look"),
        pytest.param("present", {}, True, id="there, but wrong"),
        pytest.param("unknown", {"observable": True}, False, id="a probe can look"),
        pytest.param("absent", {}, False, id="nothing happened"),
        pytest.param("unknown", None, False, id="no single call"),
    ],
)
def test_a_persons_word_is_leave_to_repeat_only_where_nothing_can_look(
    effect: str, contract: dict[str, Any] | None, repeats: bool
) -> None:
    known = {} if contract is None else contracts(promise("make_x", produces="x", effect=WRITE, **contract))
    assert may_repeat(recovery("x", effect=effect), known) is repeats


def test_a_write_that_may_be_repeated_is_another_one_from_then_on() -> None:
    steps = plan(step("x", status="failed"))
    assert tried_again(steps, StepId("X"), repeat=True).steps[0].repetition == 1
    assert tried_again(steps, StepId("X")).steps[0].repetition == 0


def test_a_superseded_step_is_not_brought_back() -> None:
    steps = plan(step("x", status="superseded"))
    assert tried_again(steps, StepId("X")) == steps


def test_a_question_tells_what_was_learned() -> None:
    stuck = Recovery(
        classified=classified("precondition", "x", "unknown", falsified=("a", "b")),
        choice=RungChoice(rung=Rung.ESCALATE, start=Rung.REWRITE),
    )
    asked = question_about(
        stuck, Asking(plan=plan(step("x", hint="look twice")), ledger=Ledger(tried={"x": ("d", "e")}))
    )
    assert asked.learned == (
        "it proves false: precondition (origin: environment, rule: test)",
        "the effect of the call is unknown",
        "not to be trusted: a, b",
        "2 calls proven wrong",
        "a hint did not help: look twice",
    )


def test_a_hint_is_kept_with_its_step_and_forgets_what_the_inner_loop_asked_for() -> None:
    steps = plan(step("x", asks=(Call(tool="t"),)), step("y"))
    told = hinted(steps, StepId("X"), "mind the gap")
    assert (told.steps[0].hint, told.steps[0].asks, told.steps[1]) == ("mind the gap", (), steps.steps[1])
    assert hinted(steps, None, "mind the gap") == steps
    assert hints(told.live()) == ("about x, a person says: mind the gap",)


def test_a_hint_about_a_call_that_was_proven_wrong_asks_for_another_call() -> None:
    wrong = step("x")
    assert calls_wrongly(wrong, remember(Ledger(), wrong))
    assert not calls_wrongly(wrong, Ledger())
    assert not calls_wrongly(None, Ledger())


def test_a_hint_about_no_step_orders_a_plan_that_knows_it() -> None:
    order = advised(recovery("x", step=None, message="stuck"), "use the other door")
    assert order.reason == "stuck; a person says: use the other door"
    assert order.failure is not None


def test_an_edit_changes_the_arguments_it_names() -> None:
    assert edited(plan(step("x", "a b")), StepId("X"), {"b": 5}).steps[0].call == Call(
        tool="make_x", args={"a": "{{a}}", "b": 5}
    )


SCHEMA: dict[str, Any] = {"properties": {"n": {"type": "integer"}, "m": {}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"choice": "edit", "args": {"n": "many"}}, "argument 'n' must be"),
        ({"choice": "edit", "args": {"k": 1}}, "there is no argument 'k'"),
        ({"choice": "edit", "args": {"n": "{{b}}"}}, "refers to 'b'; what the step reads is: a"),
        ({"choice": "edit", "args": {"m": "{{a[0]}}"}}, "is no reference"),
        ({"choice": "raise", "limits": {"retry": 3}}, "is 3 already"),
        ({"choice": "edit"}, "needs args"),
        ({"choice": "raise"}, "needs limits"),
        ({"choice": "hint", "hint": " "}, "needs a hint"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(answer: dict[str, Any], says: str) -> None:
    call = Call(tool="t", args={"n": 1})
    asked = Question(
        id="q", question="?", step=StepId("X"), call=call, parameters=SCHEMA, references=("a",), limits={"retry": 3}
    )
    with pytest.raises(ValueError, match=re.escape(says)):
        fitting_answers(answer, {"q": asked}, plan(step("x")))


def test_an_answer_given_twice_is_told_from_one_to_no_question() -> None:
    with pytest.raises(ValueError, match="question 'q9' was answered already; open: q1, q2"):
        parse_answers({"q9": "retry"}, TWO, frozenset({"q9"}))


def test_to_raise_a_limit_lets_the_ladder_start_anew_with_what_was_spent() -> None:
    stuck = recovery("x")
    ledger = Ledger(retry={"x": 3}, failures={stuck.classified.failure.fingerprint: "escalate"}, replan=1, barren=4)
    again = reopened(ledger, stuck)
    assert (again.retry, again.replan) == ({"x": 3}, 1)
    assert (again.failures, again.barren, again.verified_at_replan) == ({}, 0, -1)

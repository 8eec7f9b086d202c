"""What success means: how it is written, when it is a new revision, and how it is graded."""

import pytest
from pydantic import ValidationError

from agent.core.goal import OCCASION, Criterion, Goal, grade, occasion, revised, satisfied
from agent.core.predicate import Verdict
from tests.builders import artifact, goal, view, world


def test_a_bare_text_is_a_goal() -> None:
    assert Goal.model_validate("load the quarter") == Goal(text="load the quarter")


def test_bare_expressions_are_criteria_with_ids() -> None:
    assert goal("", "artifacts.a == 1").criteria == (
        Criterion(id="c1", text="artifacts.a == 1", predicate="artifacts.a == 1"),
    )


def test_names_may_be_written_as_words() -> None:
    assert Goal.model_validate({"wants": "db report"}).wants == ("db", "report")


def test_two_criteria_under_one_id_are_refused() -> None:
    with pytest.raises(ValidationError, match="used twice: a"):
        Goal(criteria=(Criterion(id="a"), Criterion(id="a")))


@pytest.mark.parametrize("field", ["wnats", "criterion"])
def test_a_misspelled_field_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        Goal.model_validate({field: "x"})


@pytest.mark.parametrize(("wants", "again"), [("a", "b a"), (["a"], ["b"]), (None, ("a", "b"))])
def test_what_is_to_be_made_anew_is_wanted(wants: object, again: object) -> None:
    stated = Goal.model_validate({"again": again, **({"wants": wants} if wants else {})})
    assert (set(stated.wants), occasion(stated, ["b", "c"])) == ({"a", "b"}, OCCASION)
    assert occasion(stated, ["c"]) == 0


def test_a_text_that_wants_something_anew_is_another_goal_than_the_text() -> None:
    old = goal("a", text="x")
    assert not old.same_intent(Goal(text="x").model_copy(update={"again": ("a",)}))


def test_the_same_intent_is_the_same_goal() -> None:
    old = goal("a", revision=3)
    assert revised(old, goal("a")) == old
    assert revised(None, goal("a")) == goal("a")


def test_another_intent_is_a_higher_revision() -> None:
    new = revised(goal("a", revision=3), goal("a b"))
    assert (new.wants, new.revision) == (("a", "b"), 4)


@pytest.mark.parametrize(
    "change", [{"text": "t"}, {"constraints": ["c"]}, {"given": {"n": 1}}, {"criteria": ["1 == 1"]}]
)
def test_every_part_of_a_goal_is_intent(change: dict[str, object]) -> None:
    changed = Goal.model_validate({"wants": "a", **change})
    assert not goal("a").same_intent(changed)
    assert revised(goal("a"), changed).revision == 2


def test_a_want_is_graded_by_whether_it_holds() -> None:
    state = world("a", artifact("b", mark="derived"))
    verdicts = [each.verdict for each in grade(goal("a b c"), state, view(state))]
    assert verdicts == [Verdict.VERIFIED, Verdict.REFUTED, Verdict.REFUTED]


def test_a_criterion_is_graded_by_its_predicate() -> None:
    state = world(artifact("a", 3), region="eu")
    grades = grade(goal("", "artifacts.a == 3", "facts.region == 'us'", "artifacts.b == 1"), state, view(state))
    assert [each.verdict for each in grades] == [Verdict.VERIFIED, Verdict.REFUTED, Verdict.UNVERIFIABLE]


def test_a_criterion_in_words_needs_a_judge() -> None:
    worded = Goal(criteria=(Criterion(id="nice", text="is it nice?"),))
    assert grade(worded, world(), {})[0].verdict is Verdict.UNVERIFIABLE
    for answer, verdict in ((True, Verdict.VERIFIED), (False, Verdict.REFUTED), ("yes", Verdict.REFUTED)):
        judged = world(**{"judged:nice": answer})
        assert grade(worded, judged, {})[0].verdict is verdict


def test_an_empty_goal_is_never_satisfied() -> None:
    assert not satisfied(Goal(text="whatever"), world("a"), {})
    assert satisfied(goal("a"), world("a"), {})
    assert not satisfied(goal("a b"), world("a"), {})


def test_the_same_text_again_is_the_same_goal_although_a_planner_completed_it() -> None:
    completed = Goal(text="count the rows", wants=("count",), revision=2)
    assert revised(completed, Goal(text="count the rows")) == completed


def test_another_text_or_a_new_criterion_is_another_goal() -> None:
    completed = Goal(text="count the rows", wants=("count",), revision=2)
    assert revised(completed, Goal(text="count the columns")).revision == 3
    criterion = Criterion(id="c1", text="it is right")
    assert revised(completed, Goal(text="count the rows", criteria=(criterion,))).revision == 3

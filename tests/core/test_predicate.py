"""What must hold, answered in three ways: verified, refuted, and unverifiable when something was not looked at."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.core.goal import Criterion
from agent.core.predicate import Judgement, PredicateError, Verdict, checked, judge, reads, worst

V, R, U = Verdict.VERIFIED, Verdict.REFUTED, Verdict.UNVERIFIABLE
ARTIFACTS: dict[str, Any] = {"schema": {"tables": ["users", "orders"], "note": None}, "n": 3}


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        pytest.param("artifacts.n == 3", V, id="true"),
        pytest.param("artifacts.n == 4", R, id="false"),
        pytest.param("artifacts.schema.tables.exists(t, t == 'users')", V, id="exists"),
        pytest.param("artifacts.schema.tables.all(t, t.startsWith('x'))", R, id="all"),
        pytest.param("artifacts['n'] > 2", V, id="by index"),
        pytest.param("artifacts.missing == 3", U, id="an artifact that was not observed"),
        pytest.param("artifacts.schema.missing == 3", U, id="a field that was not observed"),
        pytest.param("facts.region == 'eu'", U, id="a fact that was not observed"),
        pytest.param("artifacts.n", U, id="a number is no answer"),
        pytest.param("artifacts.schema.note", U, id="nothing is no answer"),
        pytest.param("'users'", U, id="a text is no answer"),
        pytest.param("artifacts.n / 0 == 1", U, id="an expression that fails"),
        pytest.param("artifacts.n + 'x' == 'x'", U, id="kinds that do not match"),
        pytest.param("artifacts.schema.tables[9] == 'x'", U, id="beyond the end"),
        pytest.param("has(artifacts.schema) && artifacts.n == 3", V, id="has"),
        pytest.param("!has(artifacts.schema.missing)", V, id="has not"),
        pytest.param("artifacts.missing == 1 || artifacts.n == 3", V, id="true whatever the missing one says"),
        pytest.param("artifacts.missing == 1 && artifacts.n == 4", R, id="false whatever the missing one says"),
    ],
)
def test_a_predicate_is_verified_refuted_or_unverifiable(source: str, verdict: Verdict) -> None:
    assert judge(checked(source), ARTIFACTS).verdict is verdict


def test_all_four_roots_can_be_read() -> None:
    source = checked("artifacts.n == 1 && facts.f == 2 && args.a == 3 && result == 4")
    assert judge(source, {"n": 1}, {"f": 2}, {"a": 3}, 4).verdict is V


def test_an_unverifiable_answer_says_what_was_not_observed() -> None:
    assert "missing" in judge("artifacts.missing == 1", {}).reason


@pytest.mark.parametrize(
    ("source", "position"),
    [
        pytest.param("artifacts.n ==", 15, id="cut off"),
        pytest.param("artifacts.n == = 3", 16, id="in the middle"),
        pytest.param("(artifacts.n == 3", 18, id="open parenthesis"),
        pytest.param("world.n == 3", 1, id="unknown root"),
        pytest.param("artifacts.n == users", 16, id="unknown name"),
        pytest.param("artifacts[args.name] == 1", 1, id="an artifact chosen by a computed name"),
        pytest.param("artifacts.exists(a, a == 'x')", 1, id="all artifacts at once"),
        pytest.param("artifacts['a b'] == 1", 1, id="a name that is none"),
        pytest.param("size(artifacts) == 3", 6, id="the artifacts themselves"),
    ],
)
def test_an_expression_that_does_not_compile_shows_the_position(source: str, position: int) -> None:
    with pytest.raises(PredicateError) as caught:
        checked(source)
    message = str(caught.value)
    assert f"position {position}" in message
    shown, caret = message.splitlines()[-2:]
    assert shown == f"  {source}"
    assert caret.index("^") - 2 == position - 1


def test_the_position_counts_over_lines_and_only_the_line_in_question_is_shown() -> None:
    with pytest.raises(PredicateError, match="position 25") as caught:
        checked("artifacts.n == 3\n    && = 2\n    && true")
    assert str(caught.value).splitlines()[1:] == ["      && = 2", "         ^"]


def test_an_expression_that_cannot_even_be_read_is_refused() -> None:
    with pytest.raises(PredicateError, match="cannot read the predicate"):
        checked("'\ud800'")


def test_a_value_refuses_an_expression_that_does_not_compile() -> None:
    with pytest.raises(ValidationError, match="position 15"):
        Criterion(id="c", predicate="artifacts.n ==")


@pytest.mark.parametrize(
    ("source", "artifacts", "facts"),
    [
        ("artifacts.a == artifacts.b", {"a", "b"}, set()),
        ("artifacts['a'].b == 1", {"a"}, set()),
        ('artifacts["a"] == 1', {"a"}, set()),
        ("artifacts.a == 'artifacts.b'", {"a"}, set()),
        ("facts.f == artifacts.a.artifacts", {"a"}, {"f"}),
        ("result.size() == 1 && args.artifacts == 2", set(), set()),
        ("artifacts.a.tables.exists(t, artifacts.b == t)", {"a", "b"}, set()),
        ("artifacts . a == 1", {"a"}, set()),
        ("artifacts.a['artifacts.b'] == 'it\\'s artifacts.c'", {"a"}, set()),
        ("artifacts.a['artifacts'] == 1 && artifacts [ 'b' ] == 2", {"a", "b"}, set()),
    ],
)
def test_what_a_predicate_reads_are_its_dependencies(source: str, artifacts: set[str], facts: set[str]) -> None:
    checked(source)
    assert reads(source) == artifacts
    assert reads(source, "facts") == facts


def test_names_bound_by_a_macro_are_no_roots() -> None:
    source = "artifacts.a.filter(x, x > 1).map(y, y + 1).exists_one(z, z == 3) && artifacts.a.all(i, i > 0)"
    assert checked(source) == source


def test_a_refuted_judgement_decides_before_an_unverifiable_one() -> None:
    judged = {each: Judgement(predicate=each, verdict=Verdict(each)) for each in Verdict}
    assert worst((judged[V], judged[U], judged[R])) == judged[R]
    assert worst((judged[V], judged[U])) == judged[U]
    assert worst((judged[V],)) is None
    assert worst(()) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_judging_never_throws_and_never_takes_a_missing_observation_for_an_answer(value: Any) -> None:
    assert judge("artifacts.a.b.c == 1", {"a": value}).verdict in (R, U, V)
    assert judge("artifacts.other == 1", {"a": value}).verdict is U
    assert judge("artifacts.a", {"a": value}).verdict in ((V, R) if isinstance(value, bool) else (U,))

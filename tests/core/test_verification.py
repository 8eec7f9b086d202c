"""Whether an attempt did what its step promised; what was not seen does not count."""

import pytest

from agent.core.predicate import Verdict
from agent.core.value import JsonValue
from agent.core.verification import judge_effects, products_of
from tests.builders import step


@pytest.mark.parametrize(
    ("produces", "value", "products"),
    [
        pytest.param("a", 3, {"a": 3}, id="one product is the value itself"),
        pytest.param("a", {"a": 3}, {"a": {"a": 3}}, id="also when it is a mapping"),
        pytest.param("a", False, {"a": False}, id="false is something"),
        pytest.param("a", None, None, id="nothing is nothing"),
        pytest.param("a b", {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}, id="several by name"),
        pytest.param("a b", {"a": 1}, None, id="one is missing"),
        pytest.param("a b", {"a": 1, "b": None}, None, id="one is nothing"),
        pytest.param("a b", [1, 2], None, id="several but no names"),
    ],
)
def test_products_are_taken_whole_or_not_at_all(produces: str, value: JsonValue, products: object) -> None:
    assert products_of(step(produces), value) == products


def test_a_step_without_effects_rests_on_its_answer() -> None:
    (only,) = judge_effects(step("a"), {}, {}, {}, 3, 3)
    assert (only.predicate, only.verdict) == ("gives a value", Verdict.VERIFIED)


def test_a_missing_product_refutes_the_step() -> None:
    (only,) = judge_effects(step("a b"), {}, {}, {}, {"a": 1}, {"a": 1})
    assert (only.predicate, only.verdict) == ("gives a and b", Verdict.REFUTED)


def test_effects_see_inputs_products_facts_arguments_and_the_answer() -> None:
    made = step("a", "n", effects=["artifacts.a == artifacts.n + facts.f + args.x + result", "artifacts.a == 0"])
    judged = judge_effects(made, {"x": 3}, {"n": 1}, {"f": 2}, 10, 4)
    assert [each.verdict for each in judged] == [Verdict.VERIFIED, Verdict.REFUTED]


def test_an_effect_over_something_not_observed_is_not_verified() -> None:
    (only,) = judge_effects(step("a", effects=["artifacts.z == 1"]), {}, {}, {}, 3, 3)
    assert only.verdict is Verdict.UNVERIFIABLE

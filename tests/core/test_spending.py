"""What a model call costs, whom it is charged to, and what stays marked as an estimate."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.limits import CALLS, HARD, ROLES, Ledger, Limits, stopped
from agent.core.spending import LONGEST, NAMED, Price, Role, Usage, charged, money, total

PRICES = {"gpt-5": Price(tokens_in=1.0, tokens_out=10.0), "gpt-5-mini": Price(call=0.5), "*": Price(tokens_in=100.0)}


@pytest.mark.parametrize(("role", "calls"), list(zip(ROLES, CALLS, strict=True)))
def test_each_role_pays_for_its_own_calls_and_tokens(role: Role, calls: str) -> None:
    ledger = charged(Ledger(), role, Usage(calls=2, tokens_in=30, tokens_out=7), {})
    expected = {calls: 2, f"{role}_tokens_in": 30, f"{role}_tokens_out": 7, "tokens": 37}
    assert ledger == Ledger().add(**expected)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("way", ["in", "out"])
def test_a_role_that_reads_or_writes_too_much_is_the_end_and_is_named(role: Role, way: str) -> None:
    name = f"{role}_tokens_{way}"
    ledger = charged(Ledger(), role, Usage.model_validate({"calls": 1, f"tokens_{way}": 50}), {})
    stop = stopped(Limits.model_validate({name: 50}), ledger)
    assert stop is not None
    assert (stop.limit, str(stop)) == (name, f"{name} limit reached: 50 of 50")
    assert stopped(Limits.model_validate({name: 51}), ledger) is None


def test_an_estimate_stays_one_in_the_ledger() -> None:
    told, guessed = Usage(calls=1, tokens_in=10), Usage(calls=1, tokens_in=4, tokens_out=1, tokens_estimated=5)
    ledger = charged(charged(Ledger(), "planner", told, {}), "executor", guessed, {})
    assert (ledger.tokens, ledger.tokens_estimated) == (15, 5)
    assert (told.estimated, guessed.estimated, total(told, guessed).estimated) == (False, True, True)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        pytest.param({"model": "gpt-5", "tokens_in": 1_000_000, "tokens_out": 100_000}, 2.0, id="by the million"),
        pytest.param({"model": "gpt-5-2025-08-07", "tokens_in": 1_000_000}, 1.0, id="under a dated name"),
        pytest.param(
            {"model": "gpt-5-mini-2025-08-07", "calls": 3, "tokens_in": 9}, 1.5, id="the longest name, per call"
        ),
        pytest.param({"model": "openai/gpt-5", "tokens_in": 1_000_000}, 1.0, id="behind a proxy"),
        pytest.param({"model": "other", "tokens_in": 10_000}, 1.0, id="any other"),
        pytest.param({"model": "", "tokens_in": 10_000}, 1.0, id="no name"),
        pytest.param({"model": "gpt-5", "tokens_in": 1_000_000, "cost": 0.25}, 0.25, id="as the provider says"),
        pytest.param({"model": "gpt-5", "tokens_in": 1_000_000, "cost": 0.0}, 0.0, id="for nothing, as it says"),
    ],
)
def test_money_is_what_the_provider_says_or_what_the_table_does(usage: dict[str, Any], cost: float) -> None:
    assert money(Usage.model_validate(usage), PRICES) == pytest.approx(cost)


def test_what_nobody_priced_costs_nothing() -> None:
    assert money(Usage(calls=9, tokens_in=9, model="local"), {}) == 0.0
    assert money(Usage(calls=9, tokens_in=9, model="local"), {"gpt-5": PRICES["gpt-5"]}) == 0.0


def test_a_price_with_a_providers_prefix_is_the_models() -> None:
    assert money(Usage(model="gpt-5", tokens_in=1_000_000), {"openai:gpt-5": Price(tokens_in=3.0)}) == 3.0


def test_money_that_is_spent_is_the_end() -> None:
    ledger = charged(Ledger(), "planner", Usage(calls=1, tokens_in=2_000_000, model="gpt-5"), PRICES)
    stop = stopped(Limits(money=2.0, tokens=10**9, planner_tokens_in=10**9), ledger)
    assert stop is not None
    assert stop.limit == "money"


def test_every_bound_has_a_field_on_both_sides_and_a_default_above_nothing() -> None:
    for name in HARD:
        assert getattr(Limits(), name) > 0
        assert getattr(Ledger(), name) == 0
    assert get_args(Role) == ROLES


usages = st.builds(
    Usage,
    calls=st.integers(0, 3),
    tokens_in=st.integers(0, 100),
    tokens_out=st.integers(0, 100),
    tokens_estimated=st.integers(0, 50),
    cost=st.none() | st.floats(0, 9),
)


@given(st.lists(st.tuples(st.sampled_from(ROLES), usages), max_size=20))
def test_tokens_of_all_roles_add_up_to_the_sum(history: list[tuple[Role, Usage]]) -> None:
    ledger = Ledger()
    for role, usage in history:
        ledger = charged(ledger, role, usage, {})
    parts = sum(getattr(ledger, f"{role}_tokens_{way}") for role in ROLES for way in ("in", "out"))
    assert parts == ledger.tokens == sum(usage.tokens for _, usage in history)
    assert ledger.money == pytest.approx(sum(usage.cost or 0.0 for _, usage in history))


@given(usages, usages)
def test_two_costs_together_are_the_sum_of_both(one: Usage, other: Usage) -> None:
    both = total(one, other)
    assert (both.calls, both.tokens) == (one.calls + other.calls, one.tokens + other.tokens)
    assert both.estimated == (one.estimated or other.estimated)
    assert (both.cost is None) == (one.cost is None and other.cost is None)


def test_the_models_of_each_role_are_known_by_name_and_not_without_end() -> None:
    ledger = charged(Ledger(), "planner", Usage(calls=1, model="large"), {})
    for name in ("small", "", "small", *(f"m{n}" * 200 for n in range(20))):
        ledger = charged(ledger, "executor", Usage(calls=1, model=name), {})
    assert (ledger.models["planner"], ledger.models["executor"][0]) == (("large",), "small")
    assert (len(ledger.models["executor"]), max(map(len, ledger.models["executor"]))) == (NAMED, LONGEST)

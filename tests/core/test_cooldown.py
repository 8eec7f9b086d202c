"""When an endpoint rests, how long, and for whom."""

from typing import Any

import pytest

from agent.core.cooldown import endpoint, joins, limited, rested, resting
from agent.core.ladder import Options, choose_rung, spent
from agent.core.limits import Ledger, Limits
from tests.builders import classified, failure

ANY = Options(patchable=True, rewritable=True)


@pytest.mark.parametrize(
    ("scope", "more", "wishes"),
    [
        ("nothing", {"status": 429}, True),
        ("nothing", {"rule": "rate limit"}, True),
        ("nothing", {"status": 503, "retry_after": 2.0}, True),
        ("nothing", {"status": 529, "retry_after": 2.0}, True),
        ("nothing", {"status": 503}, False),
        ("nothing", {"status": 504, "retry_after": 2.0}, False),
        ("nothing", {"kind": "timeout"}, False),
        ("precondition", {"status": 429}, False),
        ("call", {"status": 429}, False),
    ],
    ids=str,
)
def test_only_what_asks_for_a_rest_gets_one(scope: str, more: dict[str, Any], wishes: bool) -> None:
    assert limited(classified(scope, **more)) is wishes


def test_the_host_rests_and_without_one_the_tool_does() -> None:
    assert endpoint(failure(endpoint="api.example"), Ledger()) == "api.example"
    assert endpoint(failure("x"), Ledger()) == "make_x"
    assert endpoint(failure("x"), Ledger(endpoints={"make_x": "api.example"})) == "api.example"


def test_every_tool_that_was_seen_to_call_a_host_rests_with_it() -> None:
    told = classified(status=429, endpoint="api.example")
    ledger = rested(Ledger(endpoints={"make_y": "api.example"}), told, 2.0, 100.0)
    assert (resting(ledger, "make_x"), resting(ledger, "make_y"), resting(ledger, "make_z")) == (102.0, 102.0, 0.0)


def test_a_rest_is_made_longer_and_never_shorter_and_forgotten_when_it_is_over() -> None:
    told = classified(status=429, endpoint="a")
    ledger = rested(Ledger(cooldowns={"old": 50.0}), told, 9.0, 100.0)
    assert ledger.cooldowns == {"a": 109.0}
    assert rested(ledger, told, 2.0, 101.0).cooldowns == {"a": 109.0}
    assert rested(ledger, told, 20.0, 101.0).cooldowns == {"a": 121.0}


def test_whoever_was_on_the_way_joins_and_whoever_comes_after_does_not() -> None:
    told = classified(status=429, endpoint="a")
    ledger = rested(Ledger(), told, 2.0, 100.0)
    assert joins(told, ledger, 101.0)
    assert not joins(told, ledger, 102.0)
    assert not joins(classified(status=504, endpoint="a"), ledger, 101.0)
    assert not joins(classified(status=429, endpoint="b"), ledger, 101.0)


def test_one_that_joins_is_charged_to_its_step_and_not_to_the_run() -> None:
    told, limits = classified(status=429, retry_after=7.0), Limits(retries_per_run=1, retry=2)
    choice = choose_rung(told, ANY, limits, Ledger(), resting=True)
    assert (choice.rung, choice.joined, choice.delay) == ("retry", True, 7.0)
    after = spent(Ledger(barren=4), choice, told)
    assert (after.retry, after.together, after.barren) == ({"x": 1}, 1, 3)
    other = classified("nothing", "y", status=429)
    assert choose_rung(other, ANY, limits, after).rung == "retry"


def test_joining_ends_with_the_retries_of_the_step() -> None:
    told = classified(status=429)
    choice = choose_rung(told, ANY, Limits(retry=2), Ledger(retry={"x": 2}, together=2), resting=True)
    assert (choice.rung, choice.joined) == ("patch", False)


def test_a_write_that_may_have_happened_joins_nothing() -> None:
    told = classified(status=503, effect="unknown", retry_after=2.0)
    options = Options(repeatable=False)
    assert choose_rung(told, options, Limits(), Ledger(), resting=True).rung == "escalate"


def test_a_failure_that_has_climbed_already_joins_nothing() -> None:
    told = classified(status=429)
    ledger = Ledger(failures={told.failure.fingerprint: "rewrite"})
    assert choose_rung(told, ANY, Limits(), ledger, resting=True).rung == "rewrite"


def test_a_wait_that_would_outlast_the_run_falls_upward() -> None:
    told = classified(status=429, retry_after=100.0)
    assert choose_rung(told, ANY, Limits(seconds=150.0), Ledger(seconds=40.0)).rung == "retry"
    choice = choose_rung(told, ANY, Limits(seconds=150.0), Ledger(seconds=60.0))
    assert choice.rung == "patch"
    assert choice.passed[0].reason == "it asks to wait 100 s, and 90 s are left"


def test_a_patch_that_brings_the_same_failure_back_made_no_progress() -> None:
    told = classified("call")
    ledger = Ledger(failures={told.failure.fingerprint: "patch"}, patch={"x": 1})
    assert choose_rung(told, ANY, Limits(), ledger).rung == "rewrite"

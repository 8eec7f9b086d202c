"""One rung for each failure, chosen by scope; used up it falls upward, and the same failure never goes down."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.answer import reopened
from agent.core.control import Recovery
from agent.core.failure import Classified, Scope, Trigger
from agent.core.ladder import FIRST_RUNG, LADDER, Options, Rung, choose_rung, first_rung, spent
from agent.core.limits import Ledger, Limits
from tests.builders import classified

ANYTHING = Options(patchable=True, rewritable=True)
NOTHING = Options()


def rung(
    scope: str = "nothing",
    options: Options = ANYTHING,
    limits: Limits | None = None,
    ledger: Ledger | None = None,
    **more: Any,
) -> Rung:
    return choose_rung(classified(scope, **more), options, limits or Limits(), ledger or Ledger()).rung


@pytest.mark.parametrize(
    ("scope", "taken"), [("nothing", "retry"), ("call", "patch"), ("precondition", "rewrite"), ("goal", "replan")]
)
def test_the_scope_names_the_rung(scope: str, taken: str) -> None:
    assert rung(scope) == taken


@pytest.mark.parametrize(
    ("scope", "used", "taken"),
    [
        pytest.param("nothing", {"retry": {"x": 3}}, "patch", id="three retries are evidence that the call is wrong"),
        pytest.param("nothing", {"retry": {"x": 3}, "patch": {"x": 2}}, "rewrite", id="then patches"),
        pytest.param("call", {"patch": {"x": 2}}, "rewrite", id="patches used"),
        pytest.param("precondition", {"rewrite": {"x": 2}}, "replan", id="rewrites used"),
        pytest.param("goal", {"replan": 1}, "escalate", id="replans used"),
        pytest.param("nothing", {"retry": {"y": 3}}, "retry", id="another step's retries"),
    ],
)
def test_a_rung_that_is_used_up_falls_upward(scope: str, used: dict[str, Any], taken: str) -> None:
    assert rung(scope, ledger=Ledger(**used)) == taken


def test_a_budget_of_the_run_bounds_all_steps_together() -> None:
    limits = Limits(retries_per_run=4, patches_per_run=1)
    ledger = Ledger(retry={"a": 2, "b": 2}, patch={"c": 1})
    choice = choose_rung(classified("nothing"), ANYTHING, limits, ledger)
    assert choice.rung == "rewrite"
    assert [each.reason for each in choice.passed] == [
        "retry budget of the run used: 4 of 4",
        "patch budget of the run used: 1 of 1",
    ]


@pytest.mark.parametrize(
    ("scope", "options", "taken", "reason"),
    [
        pytest.param("call", Options(rewritable=True), "rewrite", "no other argument or tool", id="nothing to patch"),
        pytest.param("precondition", Options(), "replan", "nothing that the step stands on", id="nothing to rewrite"),
        pytest.param(
            "precondition",
            Options(rewritable=True, breadth=0.6),
            "replan",
            "would redo 60% of the plan",
            id="too broad",
        ),
    ],
)
def test_a_rung_that_cannot_help_falls_upward_and_says_why(
    scope: str, options: Options, taken: str, reason: str
) -> None:
    choice = choose_rung(classified(scope), options, Limits(), Ledger())
    assert choice.rung == taken
    assert reason in choice.passed[0].reason


def test_a_breadth_at_the_limit_is_still_a_rewrite() -> None:
    assert rung("precondition", Options(rewritable=True, breadth=0.5)) == "rewrite"


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("effect", ["unknown", "present"])
def test_a_write_that_may_have_happened_is_taken_to_a_person_and_to_no_rung_below(scope: Scope, effect: str) -> None:
    choice = choose_rung(
        classified(scope, effect=effect), Options(patchable=True, rewritable=True, repeatable=False), Limits(), Ledger()
    )
    assert choice.rung == "escalate"
    assert all("could do it twice" in each.reason for each in choice.passed)


def test_a_second_replan_without_progress_is_thrash() -> None:
    limits = Limits(replan=5)
    assert rung("goal", limits=limits, ledger=Ledger(replan=1, verified=3, verified_at_replan=3)) == "escalate"
    assert rung("goal", limits=limits, ledger=Ledger(replan=1, verified=4, verified_at_replan=3)) == "replan"
    assert rung("goal", limits=limits, ledger=Ledger(verified=0, verified_at_replan=-1)) == "replan"


@pytest.mark.parametrize("reworded", [False, True], ids=["in the same words", "in other words"])
def test_rewrites_that_bring_a_failure_back_are_no_progress_whatever_is_allowed(reworded: bool) -> None:
    ledger, limits, taken = Ledger(), Limits(rewrite=50, replan=50), []
    for number in range(6):
        failed = classified("precondition", message=f"missing at 12:0{number}" if reworded else "missing")
        choice = choose_rung(failed, ANYTHING, limits, ledger)
        ledger = spent(ledger, choice, failed)
        taken.append(choice.rung.value)
    assert taken == ["rewrite", "rewrite", "replan", "escalate", "escalate", "escalate"]


def test_rewrites_go_on_while_something_new_is_verified_between_them() -> None:
    ledger, limits, failed = Ledger(), Limits(rewrite=50), classified("precondition")
    for _ in range(6):
        choice = choose_rung(failed, ANYTHING, limits, ledger)
        ledger = spent(ledger, choice, failed).add(verified=1)
        assert choice.rung == "rewrite"


def test_a_person_who_reopens_a_failure_lets_it_be_rewritten_again() -> None:
    failed = classified("precondition")
    ledger = Ledger(
        failures={failed.failure.fingerprint: "rewrite"},
        verified_at_rewrite={failed.failure.fingerprint: 0},
        rewrite={"x": 2},
    )
    recovery = Recovery(classified=failed, choice=choose_rung(failed, ANYTHING, Limits(rewrite=9), ledger))
    assert choose_rung(failed, ANYTHING, Limits(rewrite=9), ledger).rung == "replan"
    assert choose_rung(failed, ANYTHING, Limits(rewrite=9), reopened(ledger, recovery)).rung == "rewrite"


def test_a_failure_that_a_replan_answers_joins_the_one_under_way_and_is_not_charged() -> None:
    for scope in ("precondition", "goal"):
        choice = choose_rung(classified(scope), ANYTHING, Limits(), Ledger(), ordered=True)
        assert (choice.rung, choice.joined) == ("replan", True)
        assert spent(Ledger(), choice, classified(scope)) == Ledger()
    for scope in ("nothing", "call"):
        assert not choose_rung(classified(scope), ANYTHING, Limits(), Ledger(), ordered=True).joined


def test_a_blocked_plan_starts_at_the_replan() -> None:
    assert first_rung(classified("nothing", trigger=Trigger.BLOCKED), Ledger()) == "replan"


@pytest.mark.parametrize(
    ("used", "asked", "delay"),
    [
        pytest.param(0, None, 0.5, id="first"),
        pytest.param(1, None, 1.0, id="doubled"),
        pytest.param(2, None, 2.0, id="doubled again"),
        pytest.param(20, None, 30.0, id="capped"),
        pytest.param(0, 7.0, 7.0, id="never less than asked"),
        pytest.param(4, 1.0, 8.0, id="but more"),
    ],
)
def test_a_retry_waits_longer_each_time_and_never_less_than_asked(used: int, asked: float | None, delay: float) -> None:
    choice = choose_rung(
        classified("nothing", retry_after=asked), ANYTHING, Limits(retry=99), Ledger(retry={"x": used})
    )
    assert (choice.rung, choice.delay) == ("retry", delay)


def test_nobody_waits_longer_than_the_run_may_take() -> None:
    limits, ledger = Limits(seconds=100, retry=5000, retries_per_run=5000), Ledger(seconds=40, retry={"x": 2000})
    asked = choose_rung(classified("nothing", retry_after=1e9), ANYTHING, limits, ledger)
    assert asked.rung == "patch"
    assert "60 s are left" in asked.passed[0].reason
    assert choose_rung(classified("nothing"), ANYTHING, limits, ledger).delay == 30


def test_a_rewrite_waits_as_well_and_a_patch_or_a_replan_does_not() -> None:
    delays = {
        scope: choose_rung(classified(scope), ANYTHING, Limits(), Ledger()).delay
        for scope in ("call", "precondition", "goal")
    }
    assert delays == {"call": 0.0, "precondition": 0.5, "goal": 0.0}


def test_what_is_charged_is_the_rung_that_was_taken() -> None:
    ledger = Ledger(verified=4)
    for scope, field in (("nothing", "retry"), ("call", "patch"), ("precondition", "rewrite")):
        given_ = classified(scope)
        after = spent(ledger, choose_rung(given_, ANYTHING, Limits(), ledger), given_)
        assert getattr(after, field) == {"x": 1}
        assert after.failures == {given_.failure.fingerprint: field}
    given_ = classified("goal")
    after = spent(ledger, choose_rung(given_, ANYTHING, Limits(), ledger), given_)
    assert (after.replan, after.verified_at_replan) == (1, 4)
    after = spent(ledger, choose_rung(given_, ANYTHING, Limits(replan=0), ledger), given_)
    assert after.escalate == 1


# --- properties -------------------------------------------------------------------------------------------------

small = st.integers(0, 3)
all_limits = st.builds(
    Limits,
    retry=small,
    patch=small,
    rewrite=small,
    replan=small,
    retries_per_run=st.integers(1, 6),
    patches_per_run=st.integers(1, 6),
    rewrites_per_run=st.integers(1, 6),
)
all_options = st.builds(
    Options,
    patchable=st.booleans(),
    rewritable=st.booleans(),
    breadth=st.sampled_from([0.0, 0.5, 0.9]),
    repeatable=st.sampled_from([True, True, True, False]),
)
all_failures = st.builds(
    lambda scope, of, effect, blocked: classified(
        scope, of, effect, **({"trigger": Trigger.BLOCKED} if blocked else {})
    ),
    st.sampled_from([each.value for each in Scope]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["absent", "unknown", "present"]),
    st.sampled_from([False, False, False, True]),
)
histories = st.lists(st.tuples(all_failures, all_options, st.booleans()), max_size=60)


@given(all_limits, histories)
def test_all_recoveries_together_are_bounded_by_the_limits(
    limits: Limits, history: list[tuple[Classified, Options, bool]]
) -> None:
    ledger, taken = Ledger(), dict.fromkeys(Rung, 0)
    for failed, options, progress in history:
        choice = choose_rung(failed, options, limits, ledger)
        ledger = spent(ledger, choice, failed)
        taken[choice.rung] += 1
        if progress:
            ledger = ledger.add(verified=1)
    keys = 3
    assert taken[Rung.RETRY] <= min(limits.retry * keys, limits.retries_per_run)
    assert taken[Rung.PATCH] <= min(limits.patch * keys, limits.patches_per_run)
    assert taken[Rung.REWRITE] <= min(limits.rewrite * keys, limits.rewrites_per_run)
    assert taken[Rung.REPLAN] <= limits.replan
    assert taken[Rung.ESCALATE] == ledger.escalate


@given(all_limits, histories)
def test_the_same_failure_never_goes_down(limits: Limits, history: list[tuple[Classified, Options, bool]]) -> None:
    ledger: Ledger = Ledger()
    highest: dict[str, int] = {}
    for failed, options, progress in history:
        choice = choose_rung(failed, options, limits, ledger)
        ledger = spent(ledger, choice, failed)
        height, key = LADDER.index(choice.rung), failed.failure.fingerprint
        if failed.failure.trigger is not Trigger.BLOCKED:
            assert height >= highest.get(key, 0)
            highest[key] = height
        if progress:
            ledger = ledger.add(verified=1)


@given(all_failures, all_options, all_limits, st.booleans())
def test_a_choice_starts_at_its_scope_or_above_and_names_every_rung_it_passed(
    failed: Classified, options: Options, limits: Limits, ordered: bool
) -> None:
    choice = choose_rung(failed, options, limits, Ledger(), ordered)
    assert LADDER.index(choice.start) >= LADDER.index(FIRST_RUNG[failed.scope])
    between = LADDER[LADDER.index(choice.start) : LADDER.index(choice.rung)]
    assert choice.joined or tuple(each.rung for each in choice.passed) == between
    assert all(each.reason for each in choice.passed)


@given(all_failures, all_options, all_limits)
def test_what_cannot_be_repeated_is_never_repeated(failed: Classified, options: Options, limits: Limits) -> None:
    unrepeatable = options.model_copy(update={"repeatable": False})
    assert choose_rung(failed, unrepeatable, limits, Ledger()).rung is Rung.ESCALATE

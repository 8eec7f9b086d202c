"""Repair rate and depth, rungs and origins, reuse and duplicates: counted from records, and said in words."""

from typing import Any

import pytest

from agent.core.effect import EffectEntry, EffectIdentity, EffectStatus
from agent.core.failure import Origin, Trigger
from agent.core.ladder import Options, Rung, RungChoice
from agent.core.limits import Ledger, Limits
from agent.core.merge import PlanDelta
from agent.core.metrics import MEANING, TOO_DEEP, UNSEEN, Metrics, diagnosis, duplicates, measured, together
from agent.core.outcome import OutcomeStatus
from agent.core.plan import StepId
from agent.core.record import AttemptEnded, Committed, Ended, Planned, Recovered, Repaired, RunStarted, TraceRecord
from agent.core.value import Digest
from tests.builders import classified


def started() -> RunStarted:
    return RunStarted(at=0, goal="x", goal_revision=1)


def ended(status: str = "satisfied") -> Ended:
    return Ended(at=9, status=OutcomeStatus(status), reason="", verified=1)


def committed(name: str) -> Committed:
    return Committed(at=1, step=StepId("S"), name=name, version=1, digest="d", unchanged=False)


def recovered(rung: str, joined: bool = False, origin: str = "environment") -> Recovered:
    choice = RungChoice(rung=Rung(rung), start=Rung(rung), joined=joined)
    failed = classified(origin=Origin(origin))
    return Recovered(at=2, classified=failed, options=Options(), limits=Limits(), ledger=Ledger(), choice=choice)


def change(kept: str = "", reopened: str = "", added: str = "") -> PlanDelta:
    lists: dict[str, Any] = {"kept": kept.split(), "reopened": reopened.split(), "added": added.split()}
    return PlanDelta(**lists)


def repaired(**lists: str) -> Repaired:
    return Repaired(at=3, step=None, rung="rewrite", because="", revision=2, delta=change(**lists))


def planned(trigger: str, **lists: str) -> Planned:
    return Planned(at=3, trigger=Trigger(trigger), planner="test", revision=2, delta=change(**lists), reused=())


def effect(tool: str, status: str = "done", repetition: int = 0) -> EffectEntry:
    return EffectEntry(EffectIdentity("t", tool, Digest("d"), repetition), "S", EffectStatus(status), 1)


def of(rungs: dict[str, int], **more: Any) -> Metrics:
    return Metrics(runs=1, rungs={Rung(name): count for name, count in rungs.items()}, **more)


def test_nothing_recorded_is_nothing_counted() -> None:
    assert measured([]) == Metrics()
    assert (Metrics().repair_rate, Metrics().repair_depth, Metrics().reuse_rate) == (0, 0, 1)


def test_repairs_are_counted_for_each_run_and_a_retry_is_none() -> None:
    trace: list[TraceRecord] = [
        started(),
        recovered("retry"),
        recovered("patch"),
        recovered("rewrite"),
        ended(),
        started(),
        recovered("replan"),
        recovered("escalate"),
        ended("handed_over"),
    ]
    found = measured(trace)
    assert (found.runs, found.satisfied, found.recoveries, found.repairs, found.repair_rate) == (2, 1, 5, 3, 1.5)
    assert found.rungs == dict.fromkeys(Rung, 1)


def test_what_goes_along_with_a_replan_is_not_counted_again() -> None:
    assert measured([recovered("replan"), recovered("replan", joined=True)]).rungs == {Rung.REPLAN: 1}


def test_depth_is_the_share_of_the_plan_that_is_done_again_or_anew() -> None:
    trace: list[TraceRecord] = [planned("initial", added="a b c d"), repaired(kept="a b c", reopened="d"), repaired()]
    assert measured(trace).depths == (0.25,)
    trace.append(planned("task_failure", kept="a", reopened="b", added="c d"))
    trace.append(planned("intent_change", kept="a", added="e"))
    assert measured(trace).depths == (0.25, 0.75)
    assert measured(trace).repair_depth == 0.5


def test_reuse_is_what_a_repair_leaves_as_it_is() -> None:
    first = [committed("a"), committed("b"), committed("c")]
    trace: list[TraceRecord] = [*first, repaired(kept="a"), committed("c"), committed("d")]
    found = measured(trace)
    assert (found.held, found.made_again) == (3, 1)
    assert found.reuse_rate == pytest.approx(2 / 3)
    again = measured([*trace, repaired(kept="a"), committed("a"), committed("e")])
    assert (again.held, again.made_again) == (7, 2)


def test_what_was_found_standing_was_not_made_again() -> None:
    def came_back(how: str) -> AttemptEnded:
        return AttemptEnded(at=4, step=StepId("S"), attempt=2, ok=True, how=how, seconds=0)

    trace: list[TraceRecord] = [committed("a"), committed("b"), repaired(kept="a", reopened="b")]
    assert measured([*trace, came_back("adopted"), committed("b")]).made_again == 0
    assert measured([*trace, came_back("adopted"), came_back("called"), committed("b")]).made_again == 1


def test_origins_are_split() -> None:
    found = measured([recovered("retry"), recovered("patch", origin="agent"), recovered("patch", origin="agent")])
    assert found.origins == {Origin.ENVIRONMENT: 1, Origin.AGENT: 2}


def test_an_effect_that_happened_twice_under_one_identity_is_a_duplicate() -> None:
    once = [effect("a"), effect("b", "adopted"), effect("b", "absent", 1), effect("c", "open")]
    assert duplicates(once) == 0
    assert duplicates([*once, effect("a", repetition=1), effect("a", "adopted", 2)]) == 2


def test_threads_add_up() -> None:
    one = measured([started(), recovered("patch"), repaired(kept="a", reopened="b"), ended()], [effect("a")])
    total = together([one, one, Metrics()])
    assert (total.runs, total.satisfied, total.rungs, total.depths) == (2, 2, {Rung.PATCH: 2}, (0.5, 0.5))
    assert total.origins == {Origin.ENVIRONMENT: 2}


@pytest.mark.parametrize(
    ("rungs", "meaning"),
    [
        ({"retry": 5, "patch": 2}, "retry"),
        ({"patch": 3, "retry": 1}, "patch"),
        ({"rewrite": 2, "replan": 1, "retry": 2}, "replan"),
        ({"escalate": 3}, "escalate"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_distribution_is_told_as_what_is_to_be_mended(rungs: dict[str, int], meaning: str) -> None:
    assert diagnosis(of(rungs)) == (MEANING[meaning],)


@pytest.mark.parametrize("rungs", [{}, {"retry": 2}, {"retry": 2, "patch": 2}, {"rewrite": 1, "patch": 1, "retry": 1}])
def test_few_recoveries_and_even_ones_say_nothing(rungs: dict[str, int]) -> None:
    assert diagnosis(of(rungs)) == ()


def test_missing_observations_and_deep_repairs_are_told_apart() -> None:
    unseen = of({"retry": 1, "patch": 1, "rewrite": 1}, origins={Origin.OBSERVATION: 2, Origin.AGENT: 1})
    assert diagnosis(unseen) == (UNSEEN,)
    deep = of({"retry": 1, "patch": 1, "rewrite": 1}, depths=(0.9, 0.8, 0.7))
    assert diagnosis(deep) == (TOO_DEEP,)

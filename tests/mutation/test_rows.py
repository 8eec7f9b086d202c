"""Each row fails for a runtime that breaks its promise, and names the layer: a test that cannot fail tests nothing."""

from dataclasses import replace
from typing import Any

import pytest

from agent.core import invalidation, repair
from agent.core.effect import Begun, Fresh
from agent.core.goal import Goal
from agent.core.invalidation import Invalidation
from agent.core.ladder import Options, RungChoice, choose_rung
from agent.core.plan import StepStatus
from agent.core.repair import Region
from agent.mutation import Report, mutate
from agent.mutation.matrix import MATRIX
from agent.nodes import classifier, planner, repairer
from agent.store.journal import DatabaseJournal
from tests.builders import Calls
from tests.mutation.worlds import GOAL, kinds, shop


def failing(report: Report) -> set[str]:
    return {row.name for row in MATRIX if list(report.failed(row))}


def test_a_region_that_is_too_wide_is_deeper_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def everything(_: Any, plan: Any, __: int = 0) -> Region:
        ids = frozenset(each.id for each in plan.live() if each.produces != ("db",))
        return Region(steps=frozenset(each.id for each in plan.live()), observers=ids, breadth=0)

    for module in (classifier, repairer):
        monkeypatch.setattr(module, "region", everything)
    found = mutate(shop, GOAL, kinds=kinds("file changed"))
    assert {"reused", "no deeper"} <= failing(found)
    with pytest.raises(AssertionError, match="Fix repair logic: the region is too wide"):
        found.assert_holds()


def test_marks_that_do_not_spread_let_what_fell_be_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invalidation, "_unsettled", lambda *_: ())
    assert "not reused" in failing(mutate(shop, GOAL, kinds=kinds("value drifted")))


def test_marks_that_follow_the_order_of_steps_take_an_independent_branch_down(monkeypatch: pytest.MonkeyPatch) -> None:

    def flat(*args: Any) -> Any:
        world, plan, what = invalidation.invalidate(*args)
        done = [each.id for each in plan.with_status(StepStatus.DONE)]
        return world, plan, Invalidation(cause=what.cause, artifacts=what.artifacts, steps=(*what.steps, *done))

    monkeypatch.setattr(classifier, "invalidate", flat)
    assert "independent" in failing(mutate(shop, GOAL, kinds=kinds("file changed")))


@pytest.mark.parametrize(
    ("kind", "hurried"),
    [
        pytest.param("answer lost", {}, id="an answer that is lost"),
        # much sooner than the slow call acts, however busy the machine is
        pytest.param("tool too slow", {"timeout": 0.2}, id="a call that is still at work"),
    ],
)
def test_a_journal_that_forgets_writes_twice(kind: str, hurried: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = DatabaseJournal.begin

    async def forgets(self: DatabaseJournal, identity: Any, step: str, fence: int | None = None) -> Begun:
        await begin(self, identity, step, fence)
        return Fresh()

    def careless(*args: Any) -> Options:
        return repair.options(*args).model_copy(update={"repeatable": True})

    monkeypatch.setattr(DatabaseJournal, "begin", forgets)
    monkeypatch.setattr(classifier, "options", careless)
    tools = [Calls().tool("a"), Calls().tool("paid", "a", effect="mutating")]
    mutated = [replace(each, **hurried) for each in kinds(kind)]
    assert "once" in failing(mutate(tools, Goal(wants=("paid",)), kinds=mutated))


def test_a_ladder_without_budgets_and_memory_does_not_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(classified: Any, options: Any, limits: Any, ledger: Any, *rest: Any) -> RungChoice:
        free = limits.model_copy(update={"rewrite": 9, "rewrites_per_run": 99})
        # the ladder also remembers that a rewrite verified nothing, and climbs whatever is allowed
        forgetful = ledger.model_copy(update={"verified_at_rewrite": {}})
        return choose_rung(classified, options, free, forgetful, *rest)

    monkeypatch.setattr(classifier, "choose_rung", endless)
    found = failing(mutate(shop, GOAL, kinds=kinds("permission revoked")))
    assert {"ends", "recomputable"} <= found


def test_a_choice_that_does_not_follow_from_its_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def whimsical(*args: Any, **more: Any) -> RungChoice:
        return choose_rung(*args, **more).model_copy(update={"delay": 0.25})

    monkeypatch.setattr(classifier, "choose_rung", whimsical)
    assert failing(mutate(shop, GOAL, kinds=kinds("file changed"), most=3)) == {"recomputable"}


def test_a_planner_that_is_asked_for_a_local_break_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = planner._charged

    monkeypatch.setattr(planner, "_charged", lambda *args: original(*args).add(planner_calls=1))
    found = mutate(shop, GOAL, kinds=kinds("tool slower"))
    assert failing(found) == {"no deeper"}
    assert found.planner_calls == len(found.verdicts)

"""Every kind of decision is recomputed from its record, and one that does not follow is found."""

from typing import Any

import pytest

from agent import build_graph
from agent.core.failure import Effect, Scope
from agent.core.outcome import OutcomeStatus
from agent.core.recompute import contradictions
from agent.core.record import Committed, Ended, Invalidated, Judged, Recovered, Repaired
from agent.core.value import Digest
from tests.builders import Calls, calm, goal, once, run


@pytest.fixture(scope="module")
def trace() -> list[Any]:
    """A run with a patch, a rewrite that marks, and an end."""
    counted = Calls()
    tools = [
        counted.tool("layout", "", lambda: {"tables": ["users"]}),
        counted.tool("rows", "layout", once(RuntimeError('no such column: "tables"'), [1])),
        counted.tool("other", "", once(ConnectionError("reset"))),
        counted.tool("report", "rows"),
    ]
    return list(run(build_graph(tools, settings=calm()), goal("report other"))["trace"])


def changed(trace: list[Any], which: Any, **update: Any) -> list[Any]:
    """The trace with a record falsified: this one, or the first of a kind."""
    first = of(trace, which) if isinstance(which, type) else which
    return [each.model_copy(update=update) if each is first else each for each in trace]


def of(trace: list[Any], kind: type) -> Any:
    return next(each for each in trace if isinstance(each, kind))


def test_a_trace_that_was_written_down_truly_contradicts_nothing(trace: list[Any]) -> None:
    assert {"recovered", "invalidated", "judged", "committed", "ended"} <= {each.event for each in trace}
    assert list(contradictions(trace)) == []


@pytest.mark.parametrize(
    "falsely", [{"scope": Scope.GOAL}, {"rule": "a whim"}, {"effect": Effect.PRESENT}, {"falsified": ("report",)}]
)
def test_a_scope_that_does_not_follow_is_found(trace: list[Any], falsely: dict[str, Any]) -> None:
    said = of(trace, Recovered).classified.model_copy(update=falsely)
    assert any("recomputed" in each for each in contradictions(changed(trace, Recovered, classified=said)))


def test_a_rung_that_does_not_follow_is_found(trace: list[Any]) -> None:
    whim = of(trace, Recovered).choice.model_copy(update={"delay": 9.0})
    assert any("recomputed" in each for each in contradictions(changed(trace, Recovered, choice=whim)))


def test_what_was_committed_without_a_verdict_is_found(trace: list[Any]) -> None:
    found = contradictions(changed(trace, Judged, judgements=()))
    assert any("no judgement of" in each for each in found)


def test_a_mark_on_an_independent_branch_is_found(trace: list[Any]) -> None:
    first = next(at for at, each in enumerate(trace) if isinstance(each, Invalidated))
    aside = of(trace, Committed).model_copy(update={"name": "aside", "step": None, "inputs": {}})
    what = trace[first].what.model_copy(update={"artifacts": (*trace[first].what.artifacts, "aside")})
    found = contradictions([aside, *changed(trace, Invalidated, what=what)])
    assert "aside was marked, and it was made from nothing that is untrue: layout" in found


def test_a_mark_that_did_not_spread_is_found(trace: list[Any]) -> None:
    layout = of(trace, Committed)
    below = layout.model_copy(update={"name": "below", "step": None, "inputs": {"layout": Digest(layout.digest)}})
    first = next(at for at, each in enumerate(trace) if isinstance(each, Invalidated))
    found = contradictions([*trace[:first], below, *trace[first:]])
    assert list(found) == ["below was not marked, although it was made from layout"]


def test_what_was_drawn_for_a_recovery_that_was_chosen_otherwise_is_found(trace: list[Any]) -> None:
    cause = of(trace, Repaired).cause
    assert cause == of(trace, Recovered).cause or cause.number > 1
    for falsely in ({"number": 99}, {"scope": Scope.GOAL}, {"invalidated": ("other",)}):
        found = contradictions(changed(trace, Repaired, cause=cause.model_copy(update=falsely)))
        assert any("was not chosen like that" in each for each in found), falsely


def test_marks_that_the_recovery_does_not_know_of_are_found(trace: list[Any]) -> None:
    marking = next(each for each in trace if isinstance(each, Recovered) and each.invalidated)
    found = contradictions(
        [each if each is not marking else each.model_copy(update={"invalidated": ()}) for each in trace]
    )
    assert any("was to mark nothing, and marked layout" in each for each in found)


def test_work_that_fell_and_is_reused_is_found(trace: list[Any]) -> None:
    rewritten = next(each for each in trace if isinstance(each, Repaired) and each.rung == "rewrite")
    found = contradictions(
        [each if each is not rewritten else each.model_copy(update={"reused": ("layout",)}) for each in trace]
    )
    assert f"plan {rewritten.revision} was to reuse layout, which had been marked as untrue" in found


def test_a_recovery_and_what_was_drawn_for_it_tell_the_whole_of_it(trace: list[Any]) -> None:
    rewritten = next(each for each in trace if isinstance(each, Repaired) and each.rung == "rewrite")
    chosen = next(each for each in trace if isinstance(each, Recovered) and each.cause == rewritten.cause)
    assert (chosen.cause.trigger, chosen.cause.scope, chosen.cause.origin) == (
        "task_failure",
        "precondition",
        "environment",
    )
    assert chosen.invalidated == ("layout",)
    assert set(rewritten.reused).isdisjoint(chosen.invalidated)
    assert rewritten.delta.reopened
    assert [each.number for each in trace if isinstance(each, Recovered)] == list(range(1, chosen.number + 1))


def test_an_end_that_nothing_bears_out_is_found(trace: list[Any]) -> None:
    assert any("meant to end" in each for each in contradictions(changed(trace, Ended, missing=("x",))))
    lost = changed(trace, Ended, status=OutcomeStatus.CANCELLED)
    assert any("meant to end satisfied" in each for each in contradictions(lost))


def test_a_stop_before_its_bound_is_found() -> None:
    counted = Calls()
    trace = list(run(build_graph([counted.tool("x")], settings=calm(moves=1)), goal("x"))["trace"])
    assert list(contradictions(trace)) == []
    early = of(trace, Ended).stop.model_copy(update={"spent": 0})
    assert any("was stopped by moves" in each for each in contradictions(changed(trace, Ended, stop=early)))

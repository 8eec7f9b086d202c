"""Every kind of decision is recomputed from its record, and one that does not follow is found."""

from typing import Any

import pytest

from agent import build_graph
from agent.core.failure import Effect, Scope
from agent.core.outcome import OutcomeStatus
from agent.core.recompute import contradictions
from agent.core.record import Committed, Ended, Invalidated, Judged, Recovered
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


def changed(trace: list[Any], kind: type, **update: Any) -> list[Any]:
    """The trace with the first record of a kind falsified."""
    index = next(at for at, each in enumerate(trace) if isinstance(each, kind))
    return [*trace[:index], trace[index].model_copy(update=update), *trace[index + 1 :]]


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
    assert list(found) == ["aside was marked, and it was made from nothing that is untrue: layout"]


def test_a_mark_that_did_not_spread_is_found(trace: list[Any]) -> None:
    layout = of(trace, Committed)
    below = layout.model_copy(update={"name": "below", "step": None, "inputs": {"layout": Digest(layout.digest)}})
    first = next(at for at, each in enumerate(trace) if isinstance(each, Invalidated))
    found = contradictions([*trace[:first], below, *trace[first:]])
    assert list(found) == ["below was not marked, although it was made from layout"]


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

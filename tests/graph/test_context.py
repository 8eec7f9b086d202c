"""One call may want it otherwise than the settings have it: model, limits, approval, escalation."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import RunContext, build_graph
from graphs.loop import LoopGraph
from tests.builders import Calls, always, calm, goal, questions, run, thread, values


def paying(calls: Calls, **settings: Any) -> LoopGraph:
    tools = [calls.tool("a"), calls.tool("x", "a", effect="mutating")]
    return build_graph(tools, settings=calm(**settings), checkpointer=InMemorySaver())


def under(graph: LoopGraph, context: Any, given: Any = None, name: str = "t") -> dict[str, Any]:
    stated: Any = given if given is None or isinstance(given, Command) else {"goal": given}
    return dict(graph.invoke(stated, thread(name), context=context))


def test_a_limit_counts_for_the_call_that_asks_for_it_and_the_others_stay() -> None:
    graph = paying(calls := Calls(), money=7)
    end = under(graph, {"limits": {"steps": 1}}, goal("x"))
    assert (end["outcome"].status, end["outcome"].limit) == ("out_of_budget", "steps")
    assert calls == {"make_a": 1}
    assert values(run(graph, goal("x"))) == {"a": 1, "x": 1}
    assert calls == {"make_a": 1, "make_x": 1}


async def test_a_context_counts_in_asynchronous_calls_and_beside_others() -> None:
    graph = paying(Calls())
    tight: Any = graph.ainvoke({"goal": goal("x")}, thread("1"), context=RunContext.of({"limits": {"steps": 1}}))
    free: Any = graph.ainvoke({"goal": goal("x")}, thread("2"))
    ends = await asyncio.gather(tight, free)
    assert [each["outcome"].status for each in ends] == ["out_of_budget", "satisfied"]


def test_an_approval_policy_asks_before_a_write_and_is_answered() -> None:
    graph = paying(calls := Calls())
    (asked,) = questions(under(graph, {"approve": "mutating"}, goal("x"))).values()
    assert asked["question"].endswith("is about to call make_x. May it?")
    assert calls == {"make_a": 1}
    answer: Any = Command(resume={asked["id"]: {"choice": "approve"}})
    assert under(graph, {"approve": "mutating"}, answer)["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_x": 1}
    (asked,) = questions(under(graph, {"approve_tools": "make_a"}, goal("a"), "other")).values()
    assert "is about to call make_a" in asked["question"]


def test_a_write_made_under_one_context_is_not_made_again_under_another() -> None:
    graph = paying(calls := Calls())
    run(graph, goal("x"))
    for context in ({"approve": "mutating"}, {"limits": {"money": 3}}, {"escalation": "finish"}):
        assert under(graph, context, goal("x"))["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_x": 1}


def test_nobody_is_asked_when_the_context_says_so() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(RuntimeError("strange")), effect="mutating")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    assert under(graph, {"escalation": "finish"}, goal("x"))["outcome"].status == "handed_over"


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({"limitz": {}}, "context.limitz: there is no such field; there are: model, limits, approve"),
        ({"limits": {"money": -1}}, "context.limits.money: input should be greater than 0, not -1"),
        ({"limits": {"cash": 1}}, "context.limits.cash: there is no such field"),
        ({"approve": "always"}, "context.approve: input should be 'never', 'non_idempotent' or 'mutating'"),
        ({"approve_tools": "make_y"}, "approve_tools names 'make_y', which is no tool; the tools are: make_a, make_x"),
        ({"model": "acme:best"}, "names the provider 'acme'"),
        ({"model": "openai:gpt-5"}, "needs a key: set OPENAI_API_KEY or KINTSUGI_API_KEY"),
        (3, "context: input should be a valid dictionary"),
    ],
)
async def test_a_context_that_makes_no_sense_is_refused_before_anything_happens(
    context: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    graph = paying(calls := Calls())
    for given in (None, goal("x")):
        with pytest.raises(ValueError, match=why) as refused:
            under(graph, context, given)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=why):
        await graph.ainvoke({"goal": goal("x")}, thread(), context=context)
    assert calls == {}
    assert graph.get_state(thread()).values == {}

"""The goal changes before, during or after the work: what still serves is kept, what does not hold is made again."""

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from tests.builders import Calls, calm, goal, run, statuses, thread, values


def double(n: int) -> int:
    return 2 * n


def test_the_same_goal_again_does_no_work() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a", effect="mutating")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    first, second = run(graph, goal("b")), run(graph, goal("b"))
    assert values(first) == values(second)
    assert second["ledger"].planner_calls == 0
    assert (second["ledger"].run, second["goal"].revision) == (2, 1)
    assert calls == {"make_a": 1, "make_b": 1}


def test_a_wider_goal_keeps_what_is_there_and_adds_the_rest() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a"), calls.tool("c", "b")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("b"))
    end = run(graph, goal("c"))
    assert statuses(end["plan"]) == {"a": "done", "b": "done", "c": "done"}
    assert calls == {"make_a": 1, "make_b": 1, "make_c": 1}


def test_a_narrower_goal_keeps_the_artifacts_and_drops_the_steps() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b")], settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a b"))
    end = run(graph, goal("a"))
    assert statuses(end["plan"]) == {"a": "done"}
    assert values(end) == {"a": 1, "b": 1}


def test_a_new_criterion_breaks_a_plan_that_could_still_run() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a"))
    end = run(graph, goal("a", "artifacts.b == 1"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_b": 1}


@pytest.mark.parametrize("effect", ["read_only", "mutating"])
def test_another_given_value_makes_what_stood_on_it_again(effect: str) -> None:
    calls = Calls()
    tools = [calls.tool("d", "n", double, effect=effect), calls.tool("t", "d", lambda d: d + 1), calls.tool("u")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    assert values(run(graph, goal("t u", given={"n": 1})))["t"] == 3
    assert values(run(graph, goal("t u", given={"n": 2})))["t"] == 5
    assert calls == {"make_d": 2, "make_t": 2, "make_u": 1}


def test_another_given_value_of_no_consequence_makes_nothing_again() -> None:
    calls = Calls()
    tools = [calls.tool("d", "n", lambda n: n // 10), calls.tool("t", "d")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("t", given={"n": 11}))
    run(graph, goal("t", given={"n": 12}))
    assert calls == {"make_d": 2, "make_t": 1}


@pytest.mark.parametrize("given", [{}, {"n": 5}], ids=["other wants", "other wants and a given value"])
def test_a_goal_that_changes_while_steps_run_is_taken_up_when_they_are_done(given: dict[str, Any]) -> None:
    started, changed = threading.Event(), threading.Event()

    def slow() -> int:
        started.set()
        assert changed.wait(20)
        return 1

    calls = Calls()
    tools = [calls.tool("a", "", slow, effect="mutating"), calls.tool("b", "a"), calls.tool("c", "a")]
    tools += [calls.tool("d", "n", double)] if given else []
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())

    def change() -> None:
        assert started.wait(20)
        graph.change_goal("t", goal("c d" if given else "c", given=given))
        changed.set()

    person = threading.Thread(target=change)
    person.start()
    end = run(graph, goal("b"))
    person.join()
    assert end["outcome"].status == "satisfied"
    assert (end["goal"].revision, end["plan"].goal_revision) == (2, 2)
    assert statuses(end["plan"]) == {"a": "done", "c": "done", **({"d": "done"} if given else {})}
    assert (calls["make_a"], calls["make_b"]) == (1, 0)
    assert "intent_changed" in [each.event for each in end["trace"]]


def test_a_goal_changed_before_the_run_starts_is_the_one_that_is_run() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b")], settings=calm(), checkpointer=InMemorySaver())
    graph.change_goal("t", goal("b"))
    end = run(graph, goal("a"))
    assert end["goal"].wants == ("b",)
    assert calls == {"make_b": 1}


def test_a_goal_edited_in_the_state_is_an_intent_change() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b", "a")], settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a"))
    graph.update_state(thread(), {"goal": {"wants": ["b"]}, "phase": "dispatcher", "outcome": None}, as_node="intake")
    end = run(graph, None)
    assert (end["goal"].revision, end["outcome"].status) == (2, "satisfied")
    assert calls == {"make_a": 1, "make_b": 1}


def test_a_changed_fact_takes_down_what_was_made_under_it() -> None:
    calls = Calls()
    tools = [
        calls.tool("a", requires="facts.region == 'eu'"),
        calls.tool("b", "a"),
        calls.tool("c"),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    first = run(graph, {"goal": goal("b c"), "facts": {"region": "eu"}})
    assert first["outcome"].status == "satisfied"
    end = run(graph, {"goal": goal("b c"), "facts": {"region": "us"}})
    assert end["outcome"] is None or end["outcome"].status != "satisfied"
    assert statuses(end["plan"])["c"] == "done"
    assert not end["world"].holds("a")
    back = run(graph, {"goal": goal("b c"), "facts": {"region": "eu"}})
    assert back["outcome"].status == "satisfied"
    assert calls["make_c"] == 1

"""What a person edits in the state while a run rests is taken up when it goes on, and costs no work that was done."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from graphs.loop import LoopGraph
from tests.builders import Calls, calm, goal, run, thread, values


def resting(calls: Calls, after: str, times: int) -> LoopGraph:
    """A chain a, b, c that rests after a phase node, for the so-manieth time."""
    tools = [calls.tool("a"), calls.tool("b", "a", lambda a: a * 10), calls.tool("c", "b", lambda b: b + 1)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    given: Any = {"goal": goal("c"), "facts": {"region": "eu"}}
    for _ in range(times):
        graph.invoke(given, thread(), interrupt_after=[after])
        given = None
    return graph


def test_an_artifact_edited_by_hand_in_the_middle_is_what_the_rest_is_made_from() -> None:
    calls = Calls()
    graph = resting(calls, "verifier", 2)  # a and b are there
    world = graph.get_state(thread()).values["world"].model_dump(mode="json")
    world["artifacts"]["a"]["value"] = 7
    graph.update_state(thread(), {"world": world})
    end = run(graph, None)
    assert end["outcome"].status == "satisfied"
    assert values(end) == {"a": 7, "b": 70, "c": 71}
    assert (end["world"].artifacts["a"].version, end["world"].artifacts["a"].verification.by) == (2, ("person",))
    assert calls == {"make_a": 1, "make_b": 2, "make_c": 1}


def test_an_artifact_marked_by_hand_in_the_middle_is_made_again_before_anything_stands_on_it() -> None:
    calls = Calls()
    graph = resting(calls, "verifier", 2)
    world = graph.get_state(thread()).values["world"].model_dump(mode="json")
    world["artifacts"]["a"]["mark"] = {"cause": "I do not believe it", "root": True}
    graph.update_state(thread(), {"world": world})
    end = run(graph, None)
    assert end["outcome"].status == "satisfied"
    # the same came back, so nothing below it is made again
    assert calls == {"make_a": 2, "make_b": 1, "make_c": 1}


@pytest.mark.parametrize("edit", [{"goal": {"wants": ["b"]}}, {"facts": {"region": "us"}}], ids=["goal", "facts"])
def test_what_has_come_in_and_is_not_verified_yet_outlives_an_edit(edit: dict[str, Any]) -> None:
    calls = Calls()
    graph = resting(calls, "executor", 1)  # a has come in
    graph.update_state(thread(), edit)
    end = run(graph, None)
    assert end["outcome"].status == "satisfied"
    assert (calls["make_a"], calls["make_b"]) == (1, 1)


def test_what_has_come_in_and_is_not_verified_yet_outlives_another_goal() -> None:
    calls = Calls()
    graph = resting(calls, "executor", 1)
    end = run(graph, goal("b"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_b": 1}

"""A family has as many members as its list has elements: wanting it, needing it, and another list."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from graphs.loop import LoopGraph
from tests.builders import Calls, calm, goal, run, values


def weekly(calls: Calls, **of_the_sum: object) -> LoopGraph:
    """Loads a part for each of the list, and sums up what is loaded."""
    loaded: list[str] = []

    def load(part: str) -> str:
        loaded.append(part)
        return part

    tools = [
        calls.tool(
            "loaded_{part}", "", load, name="load", takes="part", each={"part": "parts"}, needs="", effect="mutating"
        ),
        calls.tool("total", "loaded_*", lambda: len(loaded), takes="", **of_the_sum),
        calls.tool("report", "total"),
    ]
    return build_graph(tools, settings=calm(), checkpointer=InMemorySaver())


@pytest.mark.parametrize("wants", ["loaded_*", "loaded_* report", "report"])
def test_a_family_that_is_wanted_is_had_when_all_of_it_is_there(wants: str) -> None:
    calls = Calls()
    end = run(weekly(calls), goal(wants, given={"parts": ["x", "y"]}))
    assert end["outcome"].status == "satisfied"
    assert {"loaded_x", "loaded_y"} <= values(end).keys()
    assert calls["load"] == 2


def test_a_list_that_grew_adds_what_is_new_and_what_was_made_of_all_is_made_again() -> None:
    calls = Calls()
    graph = weekly(calls)
    run(graph, goal("report", given={"parts": ["x", "y"]}))
    end = run(graph, goal("report", given={"parts": ["x", "y", "z"]}))
    assert (end["outcome"].status, values(end)["total"]) == ("satisfied", 3)
    assert calls == {"load": 3, "make_total": 2, "make_report": 2}


def test_a_list_that_shrank_loads_nothing_and_keeps_what_is_there() -> None:
    calls = Calls()
    graph = weekly(calls)
    run(graph, goal("report", given={"parts": ["x", "y"]}))
    end = run(graph, goal("report", given={"parts": ["x"]}))
    assert end["outcome"].status == "satisfied"
    assert set(end["world"].artifacts["total"].inputs) == {"loaded_x"}
    assert values(end)["loaded_y"] == "y"
    assert (calls["load"], calls["make_total"]) == (2, 2)


def test_another_goal_that_does_not_mention_the_list_keeps_what_was_made_of_it() -> None:
    calls = Calls()
    graph = weekly(calls)
    run(graph, goal("total", given={"parts": ["x", "y"]}))
    end = run(graph, goal("report"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"load": 2, "make_total": 1, "make_report": 1}


def test_a_family_can_be_wanted_anew() -> None:
    calls = Calls()
    graph = weekly(calls)
    run(graph, goal("loaded_*", given={"parts": ["x", "y"]}))
    end = run(graph, goal("loaded_*", given={"parts": ["x", "y"]}, again="loaded_*"))
    assert (end["outcome"].status, calls["load"]) == ("satisfied", 4)


@pytest.mark.parametrize("wants", ["loaded_*", "report"])
def test_an_empty_list_is_refused_by_name(wants: str) -> None:
    end = run(weekly(Calls()), goal(wants, given={"parts": []}))
    assert end["outcome"].status == "unreachable"
    assert "'parts', which the goal must give as a list with something in it" in end["outcome"].reason

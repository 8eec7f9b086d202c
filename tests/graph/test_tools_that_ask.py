"""A tool that asks a person by itself, with `interrupt`, is asked and answered as any other question is."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agent import build_graph
from agent.app import assemble
from agent.store.database import memory_database
from graphs.loop import LoopGraph
from tests.builders import READ, Calls, ScriptedPlanner, calm, draft, goal, questions, run, step, values
from tests.doubles import calling, scripted


def answer(graph: LoopGraph, given: Any) -> dict[str, Any]:
    return run(graph, Command(resume=given))


def asks_twice() -> str:
    first = interrupt("which account?")
    return f"{first} {interrupt({'amount of': first})}"


async def asks_at_once() -> str:
    return str(interrupt("which account?"))


@pytest.mark.parametrize("effect", ["read_only", "mutating"])
def test_what_a_tool_asks_is_answered_and_comes_back_to_it(effect: str) -> None:
    calls = Calls()
    tools = [calls.tool("a", effect="mutating"), calls.tool("x", "a", asks_twice, takes="", effect=effect)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    ((id_, asked),) = questions(run(graph, goal("x"))).items()
    assert (asked["asks"], asked["choices"]) == ("which account?", ["answer", "skip", "goal", "abort"])
    assert asked["call"] == {"tool": "make_x", "args": {}}
    (asked,) = questions(answer(graph, {id_: {"choice": "answer", "value": "mine"}})).values()
    assert asked["asks"] == {"amount of": "mine"}
    end = answer(graph, 50)  # bare, as elsewhere
    assert (end["outcome"].status, values(end)["x"]) == ("satisfied", "mine 50")
    assert calls == {"make_a": 1, "make_x": 3}


def test_an_asynchronous_tool_asks_as_well() -> None:
    graph = build_graph([Calls().tool("x", "", asks_at_once)], settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    assert values(answer(graph, "mine")) == {"x": "mine"}


def test_two_tools_that_ask_side_by_side_are_answered_in_any_order_by_id() -> None:
    """langgraph#6624, #6626, #6533, without a model."""
    calls = Calls()
    tools = [calls.tool(name, "", lambda name=name: interrupt(f"which {name}?"), effect="mutating") for name in "xy"]
    graph = build_graph([*tools, calls.tool("z")], settings=calm(), checkpointer=InMemorySaver())
    by_text = {each["asks"]: id_ for id_, each in questions(run(graph, goal("x y z"))).items()}
    left = answer(graph, {by_text["which y?"]: "of y"})
    assert [each["asks"] for each in questions(left).values()] == ["which x?"]
    refused = answer(graph, {by_text["which y?"]: "again"})
    assert "was answered already" in refused["__interrupt__"][0].value["refused"]
    end = answer(graph, {by_text["which x?"]: {"any": "thing"}})
    assert values(end) == {"x": {"any": "thing"}, "y": "of y", "z": 1}
    assert calls == {"make_x": 2, "make_y": 2, "make_z": 1}


def test_a_model_whose_tools_ask_is_asked_together_and_earlier_writes_are_made_once() -> None:
    """langgraph#6208 and #7780, by tools that ask themselves."""
    calls = Calls()
    book = calls.tool("book", "", takes="n", args={"n": 1}, effect="mutating", name="book")
    ask = calls.tool("ask", "", lambda text: interrupt(text), takes="text", args={"text": ""}, name="ask")
    both = calling("ask", text="which?")
    both.tool_calls.append({"name": "ask", "args": {"text": "when?"}, "id": "second", "type": "tool_call"})
    planner = ScriptedPlanner(draft(step("x", call=None, instruction="do it", tools=("book", "ask"), effect=READ)))
    replies = [calling("book", n=1), both, calling("book", n=1), both, calling("submit", x="done")]
    with scripted(*replies) as model:
        graph = assemble(
            [book, ask], memory_database(), calm(), model=model, planner=planner, checkpointer=InMemorySaver()
        )
        by_text = {each["asks"]: id_ for id_, each in questions(run(graph, goal("x"))).items()}
        end = answer(graph, {by_text["when?"]: "now", by_text["which?"]: "this"})
        told = [each.text for each in model.prompts[-1]]
    assert values(end) == {"x": "done"}
    assert any("now" in each for each in told) and any("this" in each for each in told)
    assert calls == {"book": 1, "ask": 4}


def test_another_goal_or_a_skip_answers_it_too() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", asks_at_once, effect="mutating"), calls.tool("b")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    assert answer(graph, {"choice": "skip", "reason": "no"})["outcome"].status == "handed_over"
    run(graph, goal("x"), "other")
    end = run(graph, Command(resume={"choice": "goal", "goal": {"wants": ["b"]}}), "other")
    assert values(end) == {"b": 1}


def test_where_nobody_can_be_asked_the_run_ends_and_says_what_it_waited_for() -> None:
    graph = build_graph([Calls().tool("x", "", asks_at_once)], settings=calm(escalation="finish"))
    end = run(graph, goal("x"))
    assert end["outcome"].status == "handed_over"
    assert "waits for a person's answer to what make_x asks" in end["outcome"].reason


def test_a_write_that_is_seen_to_have_acted_before_it_asked_is_not_made_again() -> None:
    there: list[int] = []

    def acts_first() -> str:
        there.append(1)
        return str(interrupt("and now?"))

    tool = Calls().tool("x", "", acts_first, effect="mutating", observe=lambda: there[0] if there else None)
    graph = build_graph([tool], settings=calm(), checkpointer=InMemorySaver())
    (asked,) = questions(run(graph, goal("x"))).values()
    assert "its outcome is unknown" in asked["error"]
    assert there == [1]

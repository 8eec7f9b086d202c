"""Field cases of steps: what their arguments refer to, what happens side by side, and results larger than a model."""

import asyncio
import json
import threading
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph, contract
from agent.app import assemble
from agent.store.database import memory_database
from tests.builders import (
    READ,
    Calls,
    ScriptedPlanner,
    always,
    arun,
    calm,
    draft,
    goal,
    run,
    rungs,
    step,
    thread,
    values,
)
from tests.doubles import calling, scripted

WHERE = {"x": "left", "y": {"k": [1, 2]}}

REFERENCES: list[Any] = [
    pytest.param("a/{{x}}+{{y.k}}", "a/left+[1,2]", id="two in one text"),
    pytest.param(["{{x}}", {"deep": "{{y.k}}"}], ["left", {"deep": [1, 2]}], id="a list and a nested mapping"),
    pytest.param({"{{x}}": "{{y}}"}, {"{{x}}": {"k": [1, 2]}}, id="a whole value under a key"),
]


@pytest.mark.parametrize(("arg", "sent"), REFERENCES)
def test_references_to_earlier_outputs_are_resolved_wherever_they_stand(arg: Any, sent: Any) -> None:
    """langgraph#274, #1565."""
    calls = Calls()
    tools = [calls.tool(name, "", lambda name=name: WHERE[name]) for name in WHERE]
    tools.append(calls.tool("z", "x y", lambda arg: arg, takes="arg", args={"arg": arg}))
    assert values(run(build_graph(tools, settings=calm()), goal("z")))["z"] == sent


@pytest.mark.parametrize("made", [7, True, ["a", 1], {"k": [1, 2]}], ids=["number", "truth", "list", "mapping"])
def test_what_a_step_made_is_handed_as_json_to_a_tool_that_takes_nothing_but_text(made: Any) -> None:
    @contract(produces="note", effect="mutating", args={"text": "{{x}}"})
    @tool
    def write(text: str) -> str:
        """Write a note."""
        return f"wrote {text}"

    end = run(build_graph([Calls().tool("x", "", lambda: made), write], settings=calm()), goal("note"))
    assert values(end)["note"] == "wrote " + json.dumps(made, separators=(",", ":"))
    assert rungs(end) == []


@pytest.mark.parametrize(("arg", "says"), [("{{ghost}}", "'ghost'"), ("{{x.nope}}", "nope")])
def test_a_reference_to_nothing_is_an_error_before_any_call(arg: str, says: str) -> None:
    calls = Calls()
    tools = [calls.tool("x", "", lambda: {"k": 1}), calls.tool("z", "x", takes="arg", args={"arg": arg})]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("z"))
    assert end["outcome"].status != "satisfied"
    failures = [each.classified.failure.error.message for each in end["trace"] if each.event == "recovered"]
    assert says in " ".join([end["outcome"].reason, *failures])
    assert calls["make_z"] == 0


def test_of_four_that_end_together_three_are_kept_and_one_is_classified() -> None:
    """deepagents#923, #527; hive#2285."""
    together = threading.Barrier(4)

    def does(**_: Any) -> str:
        together.wait(20)
        return "made"

    def fails(**_: Any) -> str:
        together.wait(20)
        raise ValueError("this one is wrong")

    calls = Calls()
    tools = [*(calls.tool(each, "", does) for each in "abc"), calls.tool("d", "", fails)]
    settings = calm(escalation="finish", retry=0, patch=0, rewrite=0, replan=0)
    end = run(build_graph(tools, settings=settings), goal("a b c d"))
    assert values(end) == {"a": "made", "b": "made", "c": "made"}
    assert (end["ledger"].steps, end["ledger"].tool_calls, end["ledger"].verified) == (4, 4, 3)
    assert rungs(end) == ["escalate"]
    assert calls == {"make_a": 1, "make_b": 1, "make_c": 1, "make_d": 1}


async def test_a_loop_cut_between_a_call_and_its_result_starts_anew_with_a_sound_history() -> None:
    """letta#3273, adk-python#3970: an unanswered call leaves the thread unusable."""
    called, cut = asyncio.Event(), [True]

    async def slow() -> str:
        if cut:
            cut.clear()
            called.set()
            await asyncio.sleep(60)
        return "seen"

    calls = Calls()
    tools = [calls.tool("look", "", slow, name="look")]
    planner = ScriptedPlanner(draft(step("x", call=None, instruction="look", tools=("look",), effect=READ)))
    with scripted(calling("look"), calling("look"), calling("submit", x="done")) as model:
        graph = assemble(tools, memory_database(), calm(), model=model, planner=planner, checkpointer=InMemorySaver())
        going = asyncio.create_task(graph.ainvoke({"goal": goal("x")}, thread()))
        await called.wait()
        going.cancel()
        with suppress(asyncio.CancelledError):
            await going
        end = await arun(graph, None)
        for prompt in model.prompts:
            asked = {each["id"] for said in prompt if isinstance(said, AIMessage) for each in said.tool_calls}
            assert asked == {said.tool_call_id for said in prompt if isinstance(said, ToolMessage)}
    assert values(end) == {"x": "done"}


def test_a_result_larger_than_a_models_context_is_stored_and_shown_by_its_ends() -> None:
    """langgraph#3717, autogen#5484: no compression of the history can help."""
    large = "head " + "x" * 2_000_000 + " tail"
    calls = Calls()
    tools = [calls.tool("big", "", lambda: large), calls.tool("more", "", lambda: large, name="more")]
    steps = [step("big"), step("x", "big", call=None, instruction="read it", tools=("more",), effect=READ)]
    with scripted(calling("more"), calling("submit", x="read")) as model:
        graph = assemble(tools, memory_database(), calm(), model=model, planner=ScriptedPlanner(draft(*steps)))
        end = run(graph, goal("x"))
        longest = max(sum(len(each.text) for each in prompt) for prompt in model.prompts)
        shown = model.prompts[-1][-1].text
    assert values(end)["x"] == "read"
    assert end["world"].artifacts["big"].stored
    assert longest < 20_000
    assert "head" in shown and "tail" in shown


def test_the_repair_of_a_call_with_a_large_argument_and_a_large_error_fits_into_a_prompt() -> None:
    large = "x" * 2_000_000
    calls = Calls()
    tools = [
        calls.tool("big", "", lambda: large),
        calls.tool("z", "big", always(ValueError(f"unprocessable: {large}"))),
    ]
    with scripted("no idea", "no idea", "no idea", "no idea") as model:
        settings = calm(escalation="finish", rewrite=0, replan=0, retry=0)
        with suppress(AssertionError):  # how often it is asked is not what this is about
            run(build_graph(tools, model=model, settings=settings), goal("z"))
        longest = max(sum(len(each.text) for each in prompt) for prompt in model.prompts)
        model.replies = model.replies[: len(model.prompts)]
    assert longest < 60_000

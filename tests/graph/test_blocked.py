"""Nothing is ready, nothing is running, and work is left: what is in the way is named, and mended or asked about."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.core.plan import Plan, StepId, StepStatus
from graphs.loop import LoopGraph
from tests.builders import Calls, always, calm, goal, questions, run, rungs, statuses, thread, values


def started(calls: Calls, **settings: Any) -> tuple[LoopGraph, Plan]:
    """A run that waits for a person about `x`; `a` is done, and nothing else has been planned."""
    tools = [
        calls.tool("a", effect="mutating"),
        calls.tool("b", "a", effect="mutating"),
        calls.tool("c", "b"),
        calls.tool("x", "a", always(RuntimeError("strange")), effect="mutating"),
    ]
    graph = build_graph(tools, settings=calm(**settings), checkpointer=InMemorySaver())
    end = run(graph, goal("a x"))
    assert (statuses(end["plan"]), calls) == ({"a": "done", "x": "failed"}, {"make_a": 1, "make_x": 1})
    plan: Plan = end["plan"]
    return graph, plan


def edited(graph: LoopGraph, plan: Plan, *steps: dict[str, Any], wants: str) -> dict[str, Any]:
    """The plan as a person writes it in Studio: a mapping, with these steps to do; then the run goes on."""
    done = [each.model_dump() for each in plan.with_status(StepStatus.DONE)]
    whole = {**plan.model_dump(), "steps": [*done, *steps], "goal_revision": 2}
    graph.update_state(thread(), {"goal": {"wants": wants.split()}, "plan": whole})
    return run(graph, None)


def to_do(produces: str, reads: str = "", **more: Any) -> dict[str, Any]:
    args = {name: f"{{{{{name}}}}}" for name in reads.split()}
    call = {"tool": f"make_{produces}", "args": args}
    return {"id": produces.upper(), "intent": f"make {produces}", "produces": [produces], "call": call, **more}


def recovered(end: dict[str, Any]) -> list[str]:
    """What was recovered after the edit, as it was told."""
    found = [each.classified for each in end["trace"] if each.event == "recovered"]
    assert all(each.failure.trigger in ("task_failure", "blocked") for each in found)
    return [each.failure.error.message for each in found if each.failure.trigger == "blocked"]


CYCLES: list[Any] = [
    pytest.param(
        [to_do("b", "a", needs=["a", "c"]), to_do("c", "b", needs=["b"])], "B (b) -> C (c) -> B (b)", id="needs"
    ),
    pytest.param(
        [to_do("b", "a", after=["C"]), to_do("c", "", after=["B"])], "B (b) -> C (c) -> B (b)", id="explicit edges"
    ),
    pytest.param([to_do("b", "a", after=["C"]), to_do("c", "b")], "B (b) -> C (c) -> B (b)", id="both"),
    pytest.param([to_do("b", "a", after=["B"]), to_do("c", "b")], "B (b) -> B (b)", id="itself"),
]


@pytest.mark.parametrize(("steps", "circle"), CYCLES)
def test_a_plan_edited_into_a_circle_is_drawn_anew(steps: list[dict[str, Any]], circle: str) -> None:
    calls = Calls()
    graph, plan = started(calls)
    end = edited(graph, plan, *steps, wants="c")
    assert end["outcome"].status == "satisfied"
    (told,) = recovered(end)
    assert told.startswith("nothing is ready, nothing is running: steps wait for each other: ")
    assert circle in told
    assert rungs(end)[-1] == "replan"
    assert calls == {"make_a": 1, "make_x": 1, "make_b": 1, "make_c": 1}


VAIN: list[Any] = [
    pytest.param([to_do("c", "b")], "step C (c) needs b, which no step makes", id="no step makes it"),
    pytest.param(
        [to_do("b", "a", after=["GHOST"]), to_do("c", "b")],
        "step B (b) comes after 'GHOST', which is no step of the plan",
        id="after no step",
    ),
    pytest.param(
        [to_do("b", "a", status="failed", reason="by hand"), to_do("c", "b")],
        "step C (c) needs b, which is for step B (b), which is failed: by hand",
        id="a failed maker",
    ),
    pytest.param(
        [to_do("b", "a", status="invalid"), to_do("c", "", after=["B"])],
        "step C (c) comes after B (b), which is invalid",
        id="after an invalid step",
    ),
    pytest.param(
        [to_do("b", "", status="done"), to_do("c", "b")],
        "step C (c) needs b, which is for step B (b), which is invalid: its artifact is gone",
        id="a product that is not there",
    ),
    pytest.param([], "has c: refuted", id="nothing to do"),
]


@pytest.mark.parametrize(("steps", "why"), VAIN)
def test_what_is_waited_for_in_vain_is_named_and_planned(steps: list[dict[str, Any]], why: str) -> None:
    calls = Calls()
    graph, plan = started(calls)
    end = edited(graph, plan, *steps, wants="c")
    assert end["outcome"].status == "satisfied"
    assert recovered(end) == [f"nothing is ready, nothing is running: {why}"]
    assert calls == {"make_a": 1, "make_x": 1, "make_b": 1, "make_c": 1}


def test_what_cannot_be_planned_anew_is_asked_about_with_the_circle_named() -> None:
    calls = Calls()
    graph, plan = started(calls, replan=0)
    end = edited(graph, plan, to_do("b", "a", after=["C"]), to_do("c", "b"), wants="c")
    (asked,) = questions(end).values()
    assert "steps wait for each other: B (b) -> C (c) -> B (b)" in asked["question"]
    assert asked["step"] is None
    assert asked["tried"] == ["replan: replan budget used: 0 of 0"]
    assert asked["choices"] == ["retry", "raise", "goal", "abort"]
    end = run(graph, Command(resume={"choice": "raise", "limits": {"replan": 1}}))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_x": 1, "make_b": 1, "make_c": 1}


def test_where_nobody_can_be_asked_the_report_names_the_circle() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a")]
    graph = build_graph(tools, settings=calm(replan=0, escalation="finish"), checkpointer=InMemorySaver())
    plan = run(graph, goal("a"))["plan"].model_dump()
    steps = [*plan["steps"], to_do("b", "a", after=["B"])]
    graph.update_state(thread(), {"plan": {**plan, "steps": steps, "goal_revision": 2}})
    end = run(graph, goal("b"))
    assert end["outcome"].status == "handed_over"
    assert "steps wait for each other: B (b) -> B (b)" in end["outcome"].reason
    assert values(end) == {"a": 1}


def test_an_artifact_taken_out_of_the_world_is_made_again_without_a_second_effect() -> None:
    calls = Calls()
    graph, plan = started(calls)
    world = graph.get_state(thread()).values["world"].model_dump()
    del world["artifacts"]["a"]
    steps = [*(each.model_dump() for each in plan.with_status(StepStatus.DONE)), to_do("b", "a"), to_do("c", "b")]
    whole = {**plan.model_dump(), "steps": steps, "goal_revision": 2}
    graph.update_state(thread(), {"goal": {"wants": ["c"]}, "plan": whole, "world": world})
    end = run(graph, None)
    assert end["outcome"].status == "satisfied"
    (told,) = recovered(end)
    assert "needs a, which is for step s1.1 (a), which is invalid: its artifact is gone" in told
    # the journal knows the outcome of the first, so nothing is done twice
    assert calls == {"make_a": 1, "make_x": 1, "make_b": 1, "make_c": 1}


def test_a_failed_dependency_is_asked_about_itself_and_what_waits_for_it_is_no_question() -> None:
    calls = Calls()
    broken = calls.tool("x", "a", always(RuntimeError("strange")), effect="mutating")
    graph = build_graph(
        [calls.tool("a"), broken, calls.tool("y", "x"), calls.tool("z", "y")],
        settings=calm(),
        checkpointer=InMemorySaver(),
    )
    end = run(graph, goal("z"))
    (asked,) = questions(end).values()
    assert asked["step"] == StepId("s1.2")
    assert statuses(end["plan"]) == {"a": "done", "x": "failed", "y": "pending", "z": "pending"}
    end = run(graph, Command(resume={"choice": "answer", "value": 5}))
    assert values(end) == {"a": 1, "x": 5, "y": 1, "z": 1}

"""A person is asked when nothing else can be done; every answer is carried out, and a bad one costs nothing."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from graphs.loop import LoopGraph
from tests.builders import Calls, always, calm, goal, once, questions, run, rungs, thread, values

STRANGE = RuntimeError("strange")
"""An error that no table knows; after a write its effect is unknown and nothing can look."""


def stuck(calls: Calls, does: Any = None, **more: Any) -> tuple[LoopGraph, dict[str, Any]]:
    """A run that waits for a person: a write ended strangely."""
    tools = [calls.tool("a"), calls.tool("x", "a", does or always(STRANGE), effect="mutating", **more)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    end = run(graph, goal("x"))
    assert end["outcome"] is None
    return graph, end


def answer(graph: LoopGraph, given: Any) -> dict[str, Any]:
    return run(graph, Command(resume=given))


def test_a_question_says_what_failed_what_was_tried_and_what_can_be_answered() -> None:
    calls = Calls()
    _, end = stuck(calls)
    (asked,) = questions(end).values()
    assert asked["error"] == "strange"
    assert "make_x" not in asked["question"]
    assert "could do it twice" in asked["tried"][0]
    assert asked["choices"] == ["retry", "answer", "edit", "raise", "skip", "goal", "abort"]
    assert calls["make_x"] == 1


def test_retry_does_the_write_once_more_for_a_person_has_said_so() -> None:
    calls = Calls()
    graph, _ = stuck(calls, once(STRANGE, then=7))
    end = answer(graph, "retry")
    assert (values(end)["x"], calls["make_x"], calls["make_a"]) == (7, 2, 1)


def test_retry_looks_first_where_something_can_look() -> None:
    there: list[int] = []

    def write(**_: Any) -> int:
        there.append(7)
        raise TimeoutError

    calls, sight = Calls(), {"broken": True}

    def observe() -> int | None:
        if sight["broken"]:
            raise ConnectionError("no sight")
        return there[0] if there else None

    graph, _ = stuck(calls, write, observe=observe, ensures="artifacts.x == 7")
    sight["broken"] = False
    end = answer(graph, "retry")
    assert (values(end)["x"], calls["make_x"]) == (7, 1)


def test_an_answer_becomes_the_artifact_and_is_marked_as_a_persons() -> None:
    calls = Calls()
    graph, _ = stuck(calls)
    end = answer(graph, {"choice": "answer", "value": 42})
    assert end["outcome"].status == "satisfied"
    assert end["outcome"].artifacts["x"].verified_by == ("person",)
    assert (values(end)["x"], calls["make_x"]) == (42, 1)


def test_skip_leaves_the_step_out_and_hands_over_what_is_there() -> None:
    graph, _ = stuck(Calls())
    end = answer(graph, {"choice": "skip", "reason": "not this quarter"})
    assert end["outcome"].status == "handed_over"
    assert list(end["outcome"].skipped.values()) == ["not this quarter"]
    assert values(end) == {"a": 1}


def test_another_goal_keeps_what_still_serves_it() -> None:
    calls = Calls()
    graph, _ = stuck(calls)
    end = answer(graph, {"choice": "goal", "goal": {"wants": "a"}})
    assert end["outcome"].status == "satisfied"
    assert (end["goal"].revision, calls["make_a"]) == (2, 1)


def test_abort_ends_the_run_with_what_it_has() -> None:
    graph, _ = stuck(Calls())
    end = answer(graph, {"choice": "abort", "reason": "enough"})
    assert (end["outcome"].status, end["outcome"].reason) == ("cancelled", "enough")
    assert values(end) == {"a": 1}


BAD: list[Any] = [
    "nonsense",
    {"choice": "skip"},
    {"choice": "answer"},
    {"choice": "goal", "goal": {"criteria": ["artifacts.x =="]}},
    {"ghost": "retry", "choice": "retry"},
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_answer_is_refused_with_its_reason_and_loses_nothing(bad: Any) -> None:
    calls = Calls()
    graph, before = stuck(calls)
    for _ in range(2):
        after = answer(graph, bad)
        assert after["__interrupt__"][0].value["refused"]
        assert questions(after) == questions(before)
    assert values(answer(graph, {"choice": "answer", "value": 5}))["x"] == 5
    assert calls == {"make_a": 1, "make_x": 1}


def test_an_answer_that_is_not_what_the_step_makes_is_refused() -> None:
    calls = Calls()
    tools = [calls.tool("x y", "", always(STRANGE), effect="mutating")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x y"))
    refused = answer(graph, {"choice": "answer", "value": {"x": 1}})
    assert refused["__interrupt__"][0].value["refused"] == "the answer must give x and y by name"
    assert values(answer(graph, {"choice": "answer", "value": {"x": 1, "y": 2}})) == {"x": 1, "y": 2}


def two_stuck(calls: Calls) -> tuple[LoopGraph, dict[str, Any]]:
    tools = [calls.tool(name, "", always(RuntimeError(name)), effect="mutating") for name in ("x", "y")]
    graph = build_graph([*tools, calls.tool("z")], settings=calm(), checkpointer=InMemorySaver())
    return graph, run(graph, goal("x y z"))


def asking_about(end: dict[str, Any], text: str) -> str:
    return next(id_ for id_, each in questions(end).items() if each["error"] == text)


def test_two_questions_come_together_and_are_answered_in_any_order_by_id() -> None:
    calls = Calls()
    graph, end = two_stuck(calls)
    assert {each["error"] for each in questions(end).values()} == {"x", "y"}
    by_id = {
        asking_about(end, "y"): {"choice": "answer", "value": "of y"},
        asking_about(end, "x"): {"choice": "answer", "value": "of x"},
    }
    assert values(answer(graph, by_id)) == {"x": "of x", "y": "of y", "z": 1}


def test_one_of_two_answered_leaves_the_other_open() -> None:
    graph, end = two_stuck(Calls())
    end = answer(graph, {asking_about(end, "y"): {"choice": "answer", "value": 2}})
    assert [each["error"] for each in questions(end).values()] == ["x"]
    assert values(answer(graph, {"choice": "answer", "value": 1})) == {"x": 1, "y": 2, "z": 1}


def test_without_an_id_two_questions_are_not_answered() -> None:
    graph, end = two_stuck(Calls())
    refused = answer(graph, "retry")
    assert "answer by id" in refused["__interrupt__"][0].value["refused"]
    assert questions(refused) == questions(end)


def test_a_person_is_asked_only_so_often() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(STRANGE), effect="mutating")]
    graph = build_graph(tools, settings=calm(escalate=2), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    assert answer(graph, "retry")["outcome"] is None
    end = answer(graph, "retry")
    assert end["outcome"].status == "handed_over"
    assert calls["make_x"] == 3


@pytest.mark.parametrize("how", ["configured", "no checkpointer"])
def test_where_nobody_can_be_asked_the_run_ends_handed_over(how: str) -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("x", "a", always(STRANGE), effect="mutating")]
    saver = InMemorySaver() if how == "configured" else None
    graph = build_graph(tools, settings=calm(escalation="finish" if saver else "ask"), checkpointer=saver)
    end = run(graph, goal("x"))
    assert end["outcome"].status == "handed_over"
    assert "strange" in end["outcome"].reason
    assert values(end) == {"a": 1}
    assert rungs(end) == ["escalate"]


def test_the_same_goal_again_tries_again_without_an_answer() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("x", "a", once(STRANGE), takes="a")]
    graph = build_graph(tools, settings=calm(rewrite=0, replan=0), checkpointer=InMemorySaver())
    assert run(graph, goal("x"))["outcome"] is None
    end = run(graph, goal("x"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_x": 2}
    assert graph.get_state(thread()).next == ()

"""The goal changes before, during or after the work: what still serves is kept, what does not hold is made again."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.app import assemble
from agent.ports import PlanDraft
from agent.store.database import memory_database
from graphs.loop import LoopGraph
from tests.builders import (
    WRITE,
    Calls,
    ScriptedPlanner,
    always,
    arun,
    calm,
    draft,
    goal,
    listed,
    run,
    statuses,
    step,
    thread,
    values,
)


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


# --- at any moment, from every side ---------------------------------------------------------------------------


def payment(calls: Calls) -> tuple[LoopGraph, threading.Event, threading.Event]:
    """A graph whose payment has begun when the first event is set, and ends when the second is."""
    begun, may_end = threading.Event(), threading.Event()

    def pay() -> str:
        begun.set()
        assert may_end.wait(20)
        return "paid"

    tools = [
        calls.tool("payment", "", pay, effect="mutating"),
        calls.tool("quick", "", lambda: begun.wait(20)),
        calls.tool("letter", "payment", effect="mutating"),
        calls.tool("other"),
    ]
    return build_graph(tools, settings=calm(), checkpointer=InMemorySaver()), begun, may_end


@pytest.mark.parametrize("wants", ["other payment", "other"], ids=["still wanted", "not wanted any more"])
def test_a_payment_in_flight_is_awaited_and_recorded_before_anything_is_planned_anew(wants: str) -> None:
    calls = Calls()
    graph, begun, may_end = payment(calls)
    seen: list[str] = []

    def change() -> None:
        assert begun.wait(20)
        graph.change_goal("t", goal(wants))
        # the fast step is harvested meanwhile; with the new goal heard, nothing may be drawn before the payment ends
        while "quick" not in graph.get_state(thread()).values["world"].artifacts:
            time.sleep(0.01)
        time.sleep(0.2)
        seen.extend(each.event for each in graph.get_state(thread()).values["trace"])
        may_end.set()

    person = threading.Thread(target=change)
    person.start()
    end = run(graph, goal("letter quick"))
    person.join()
    assert seen.count("planned") == 1
    assert end["outcome"].status == "satisfied"
    assert (end["goal"].revision, end["plan"].goal_revision) == (2, 2)
    assert end["world"].artifacts["payment"].value == "paid"
    assert calls == {"make_payment": 1, "make_quick": 1, "make_other": 1}
    # and it is never made again, whatever is wanted later
    assert run(graph, goal("letter"))["outcome"].status == "satisfied"
    assert calls["make_payment"] == 1


def waiting(calls: Calls, saver: Any = None) -> LoopGraph:
    """A run that waits for a person about `x`, with `a` done."""
    tools = [
        calls.tool("a", effect="mutating"),
        calls.tool("x", "a", always(RuntimeError("strange")), effect="mutating"),
        calls.tool("b", "a"),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=saver or InMemorySaver())
    assert run(graph, goal("x"))["outcome"] is None
    return graph


def by_letter(graph: LoopGraph) -> dict[str, Any]:
    graph.change_goal("t", goal("b"))
    return run(graph, None)


def by_letter_and_answer(graph: LoopGraph) -> dict[str, Any]:
    graph.change_goal("t", goal("b"))
    return run(graph, Command(resume={"choice": "skip", "reason": "no"}))


def by_invoking(graph: LoopGraph) -> dict[str, Any]:
    return run(graph, goal("b"))


def by_editing(graph: LoopGraph) -> dict[str, Any]:
    graph.update_state(thread(), {"goal": {"wants": ["b"]}})
    return run(graph, None)


def by_editing_as_the_last_node(graph: LoopGraph) -> dict[str, Any]:
    graph.update_state(thread(), {"goal": {"wants": ["b"]}}, as_node="dispatcher")
    return run(graph, None)


def by_answering(graph: LoopGraph) -> dict[str, Any]:
    return run(graph, Command(resume={"choice": "goal", "goal": {"wants": ["b"]}}))


WAYS: list[Callable[[LoopGraph], dict[str, Any]]] = [
    by_letter,
    by_letter_and_answer,
    by_invoking,
    by_editing,
    by_editing_as_the_last_node,
    by_answering,
]


@pytest.mark.parametrize("change", WAYS)
def test_a_goal_changed_while_a_question_is_open_is_taken_up(change: Callable[[LoopGraph], dict[str, Any]]) -> None:
    calls = Calls()
    end = change(waiting(calls))
    assert end["outcome"].status == "satisfied"
    assert end["goal"].wants == ("b",)
    assert (end["goal"].revision, end["plan"].goal_revision) == (2, 2)
    assert calls == {"make_a": 1, "make_x": 1, "make_b": 1}
    assert "intent_changed" in listed(end["trace"], "event")


@pytest.mark.parametrize("change", [by_invoking, by_editing])
def test_a_goal_changed_after_the_run_is_taken_up(change: Callable[[LoopGraph], dict[str, Any]]) -> None:
    calls = Calls()
    tools = [calls.tool("a", effect="mutating"), calls.tool("b", "a")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a"))
    end = change(graph)
    assert (end["outcome"].status, end["goal"].revision) == ("satisfied", 2)
    assert (end["ledger"].run, calls) == (2, {"make_a": 1, "make_b": 1})


def test_a_goal_put_into_the_state_before_the_first_run_is_the_one_that_is_run() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b")], settings=calm(), checkpointer=InMemorySaver())
    graph.update_state(thread(), {"goal": {"wants": ["b"]}})
    end = run(graph, None)
    assert (end["goal"].revision, values(end)) == (1, {"b": 1})


async def test_a_goal_edited_by_an_asynchronous_caller_is_taken_up_too() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b")], settings=calm(), checkpointer=InMemorySaver())
    await arun(graph, goal("a"))
    await graph.aupdate_state(thread(), {"goal": {"wants": ["b"]}})
    assert (await arun(graph, None))["goal"].revision == 2
    assert calls == {"make_a": 1, "make_b": 1}


def test_facts_edited_in_the_state_count_as_stated() -> None:
    calls = Calls()
    tools = [calls.tool("a", requires="facts.region == 'eu'")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    graph.update_state(thread(), {"goal": {"wants": ["a"]}, "facts": {"region": "eu"}})
    assert run(graph, None)["outcome"].status == "satisfied"


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def chat(calls: Calls, *drafts: PlanDraft) -> LoopGraph:
    tools = [
        calls.tool("a", effect="mutating"),
        calls.tool("x", "a", always(RuntimeError("strange")), effect="mutating"),
    ]
    return assemble(
        [*tools, calls.tool("b", "a")],
        memory_database(),
        calm(),
        planner=ScriptedPlanner(*drafts),
        checkpointer=InMemorySaver(),
    )


A = step("a", effect=WRITE)


@pytest.mark.parametrize("last", ["a", "x"], ids=["after a run", "while a question is open"])
def test_another_chat_message_is_another_goal(last: str) -> None:
    calls = Calls()
    first = (A,) if last == "a" else (A, step("x", "a", effect=WRITE))
    graph = chat(calls, draft(*first, wants=(last,)), draft(step("b", "a"), wants=("b",)))
    run(graph, said(f"make {last}"))
    end = run(graph, said("make b"))
    assert end["outcome"].status == "satisfied"
    assert (end["goal"].text, end["goal"].wants) == ("make b", ("b",))
    assert end["plan"].goal_revision == end["goal"].revision
    assert (calls["make_a"], calls["make_b"]) == (1, 1)
    assert end["messages"][-1].type == "ai"


def test_what_is_finished_is_graded_against_the_new_goal() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b"), calls.tool("c", "a")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a b"))
    end = run(graph, goal("c", "artifacts.a == 1"))
    (changed,) = (each for each in end["trace"] if each.event == "intent_changed")
    assert changed.still_serving == ("a",)
    assert changed.set_aside == ("b",)
    assert {each.predicate: each.verdict for each in changed.grades} == {
        "has c": "refuted",
        "artifacts.a == 1": "verified",
    }
    assert end["world"].holds("b")
    assert calls == {"make_a": 1, "make_b": 1, "make_c": 1}

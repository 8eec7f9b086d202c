"""Calls that a policy names wait for a person's word: once for each call, and what they said is what is run."""

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.app import assemble
from agent.core.consent import Approve
from agent.store.database import memory_database
from graphs.loop import LoopGraph
from tests.builders import (
    READ,
    Calls,
    ScriptedPlanner,
    always,
    calm,
    draft,
    goal,
    listed,
    once,
    questions,
    run,
    statuses,
    step,
    thread,
    values,
)
from tests.doubles import calling, scripted

APPROVE = {"choice": "approve"}


def answer(graph: LoopGraph, given: Any) -> dict[str, Any]:
    return run(graph, Command(resume=given))


def about(end: dict[str, Any], tool: str) -> str:
    """Id of the question about a tool's call."""
    return next(id_ for id_, each in questions(end).items() if each["call"]["tool"] == tool)


def guarded(calls: Calls, *more: Any, saver: Any = None, **settings: Any) -> LoopGraph:
    """A read, a write of what it read, a write that may be repeated, and a read beside them."""
    tools = [
        calls.tool("amount", "", lambda: 500),
        calls.tool("charge", "amount", lambda amount: {"paid": amount}, effect="mutating"),
        calls.tool("note", "", effect="mutating", idempotent=True),
        calls.tool("aside"),
    ]
    return build_graph([*tools, *more], settings=calm(**settings), checkpointer=saver or InMemorySaver())


def test_by_default_nobody_is_asked_before_a_call() -> None:
    assert run(guarded(Calls()), goal("charge note aside"))["outcome"].status == "satisfied"


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"approve": "mutating"}, {"make_charge", "make_note"}),
        ({"approve": "non_idempotent"}, {"make_charge"}),
        ({"approve_tools": "make_note make_aside"}, {"make_note", "make_aside"}),
        ({"approve": "non_idempotent", "approve_tools": ["make_amount"]}, {"make_amount"}),
    ],
    ids=["mutating", "non_idempotent", "tools", "both"],
)
def test_the_policy_says_which_calls_wait(settings: dict[str, Any], asked: set[str]) -> None:
    calls = Calls()
    end = run(guarded(calls, **settings), goal("charge note aside"))
    assert {each["call"]["tool"] for each in questions(end).values()} == asked
    assert not asked & calls.keys()


def test_a_policy_that_names_no_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="approve_tools names 'make_chrage', which is no tool"):
        guarded(Calls(), approve_tools="make_chrage")


def test_a_question_before_a_call_shows_exactly_what_would_be_run() -> None:
    end = run(guarded(Calls(), approve="non_idempotent"), goal("charge"))
    (asked,) = questions(end).values()
    assert asked["question"] == "step s1.2 (Make it) is about to call make_charge. May it?"
    assert asked["call"] == {"tool": "make_charge", "args": {"amount": 500}}
    assert asked["choices"] == ["approve", "edit", "skip", "goal", "abort"]


def test_the_others_go_on_before_a_person_is_asked() -> None:
    calls = Calls()
    end = run(guarded(calls, calls.tool("late", "aside"), approve="mutating"), goal("charge late"))
    assert calls == {"make_amount": 1, "make_aside": 1, "make_late": 1}
    assert statuses(end["plan"]) == {"amount": "done", "charge": "pending", "aside": "done", "late": "done"}


def test_an_allowed_call_is_made_once_and_nothing_before_it_again() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    run(graph, goal("charge"))
    end = answer(graph, "approve")
    assert end["outcome"].status == "satisfied"
    assert values(end)["charge"] == {"paid": 500}
    assert calls == {"make_amount": 1, "make_charge": 1}


def test_an_edited_call_is_run_as_it_was_edited() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    run(graph, goal("charge"))
    end = answer(graph, {"choice": "edit", "args": {"amount": 50}})
    assert values(end)["charge"] == {"paid": 50}
    assert calls["make_charge"] == 1


def test_an_edit_that_does_not_fit_is_refused_and_the_question_stays_open() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    before = run(graph, goal("charge"))
    refused = answer(graph, {"choice": "edit", "args": {"sum": 50}})
    assert "there is no argument 'sum'" in refused["__interrupt__"][0].value["refused"]
    assert questions(refused) == questions(before)
    assert calls["make_charge"] == 0


def test_a_refused_call_leaves_its_step_out() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    run(graph, goal("charge aside"))
    end = answer(graph, {"choice": "skip", "reason": "not without an order"})
    assert end["outcome"].status == "handed_over"
    assert list(end["outcome"].skipped.values()) == ["not without an order"]
    assert calls == {"make_amount": 1, "make_aside": 1}


def test_a_person_may_end_the_run_instead() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    run(graph, goal("charge"))
    assert answer(graph, "abort")["outcome"].status == "cancelled"
    assert calls["make_charge"] == 0


def test_a_call_is_asked_about_once_however_often_it_is_tried() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", once(ConnectionRefusedError(), times=2), effect="mutating")]
    graph = build_graph(tools, settings=calm(approve="mutating"), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    end = answer(graph, "approve")
    assert end["outcome"].status == "satisfied"
    assert calls["make_x"] == 3


def test_an_edited_call_is_not_asked_about_again_when_it_is_tried_again() -> None:
    calls = Calls()
    refusing = once(ConnectionRefusedError(), times=1)
    tools = [calls.tool("x", "", refusing, takes="n", args={"n": 1}, effect="mutating")]
    graph = build_graph(tools, settings=calm(approve="mutating"), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    end = answer(graph, {"choice": "edit", "args": {"n": 2}})
    assert end["outcome"].status == "satisfied"
    assert calls["make_x"] == 2


def test_other_arguments_are_another_call_and_asked_about_anew() -> None:
    calls = Calls()
    graph = guarded(calls, calls.tool("due", "n", lambda n: n, effect="mutating"), approve="mutating")
    run(graph, goal("due", given={"n": 1}))
    answer(graph, "approve")
    asked = run(graph, goal("due", given={"n": 2}))
    assert questions(asked)[about(asked, "make_due")]["call"]["args"] == {"n": 2}
    assert values(answer(graph, "approve"))["due"] == 2
    assert calls["make_due"] == 2


def test_a_word_given_before_a_kill_counts_in_another_process() -> None:
    calls, saver = Calls(), InMemorySaver()
    graph = guarded(calls, saver=saver, approve="mutating")
    asked = run(graph, goal("charge note"))
    asked = answer(graph, {about(asked, "make_charge"): APPROVE})
    again = guarded(calls, saver=saver, approve="mutating")
    assert questions(run(again, None)) == questions(asked)
    end = answer(again, "approve")
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_amount": 1, "make_charge": 1, "make_note": 1}


def test_a_word_counts_for_the_next_run_and_the_next_plan() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", once(RuntimeError("strange")), effect="mutating", idempotent=True)]
    graph = build_graph(tools, settings=calm(approve="mutating", patch=0, replan=0), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    assert next(iter(questions(answer(graph, "approve")).values()))["error"] == "strange"
    assert run(graph, goal("x"))["outcome"].status == "satisfied"


def test_where_nobody_can_be_asked_nothing_guarded_is_run() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating", escalation="finish")
    end = run(graph, goal("charge aside"))
    assert end["outcome"].status == "handed_over"
    assert "waits for a person's word before it calls make_charge" in end["outcome"].reason
    assert calls == {"make_amount": 1, "make_aside": 1}


def test_a_failure_and_a_call_are_asked_about_together() -> None:
    calls = Calls()
    broken = calls.tool("x", "", always(RuntimeError("strange")), effect="mutating", name="break_it")
    graph = guarded(calls, broken, approve_tools="make_charge")
    asked = run(graph, goal("charge x"))
    end = answer(
        graph, {about(asked, "make_charge"): APPROVE, about(asked, "break_it"): {"choice": "answer", "value": 3}}
    )
    assert values(end) == {"amount": 500, "charge": {"paid": 500}, "x": 3}


def test_another_goal_while_a_call_waits_leaves_the_call_unmade() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    run(graph, goal("charge"))
    end = answer(graph, {"choice": "goal", "goal": {"wants": ["aside"]}})
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_amount": 1, "make_aside": 1}


def test_an_artifact_that_changed_while_the_question_was_open_is_asked_about_as_it_is_now() -> None:
    calls, shop = Calls(), {"price": 5}
    tools = [
        calls.tool("price", "", lambda: shop["price"], observe=lambda: shop["price"]),
        calls.tool("order", "price", lambda price: price, effect="mutating"),
    ]
    graph = build_graph(tools, settings=calm(approve="mutating"), checkpointer=InMemorySaver())
    run(graph, goal("order"))
    shop["price"] = 9
    asked = answer(graph, "approve")
    assert questions(asked)[about(asked, "make_order")]["call"]["args"] == {"price": 9}
    assert values(answer(graph, "approve"))["order"] == 9
    assert calls["make_order"] == 1


# --- field cases ----------------------------------------------------------------------------------------------


def inner(calls: Calls, *replies: Any, tools: tuple[str, ...], **settings: Any) -> Any:
    """A step that a model works on, with guarded tools."""
    planner = ScriptedPlanner(draft(step("x", call=None, instruction="do it", tools=tools, effect=READ)))
    mutating = [calls.tool(each, "", takes="n", args={"n": 1}, effect="mutating", name=each) for each in tools]
    model = scripted(*replies)
    return planner, mutating, model, calm(approve=Approve.MUTATING, **settings)


def test_effect_ask_effect_ask_in_one_step_has_each_effect_once() -> None:
    """langgraph#6208: a node with two interrupts runs again after only one answer."""
    calls = Calls()
    first, second, done = calling("book", n=1), calling("mail", n=1), calling("submit", x="done")
    # the loop starts anew after each word; what it did before is in the journal
    replies = [first, first, second, first, second, done]
    planner, tools, script, settings = inner(calls, *replies, tools=("book", "mail"))
    with script as model:
        graph = assemble(tools, memory_database(), settings, model=model, planner=planner, checkpointer=InMemorySaver())
        (asked,) = questions(run(graph, goal("x"))).values()
        assert asked["call"] == {"tool": "book", "args": {"n": 1}}
        (asked,) = questions(answer(graph, "approve")).values()
        assert asked["call"] == {"tool": "mail", "args": {"n": 1}}
        assert calls == {"book": 1}
        end = answer(graph, "approve")
    assert values(end) == {"x": "done"}
    assert calls == {"book": 1, "mail": 1}


def test_three_rounds_of_review_have_one_effect() -> None:
    """langgraph#7780: an interrupt in a loop replays everything each round."""
    calls = Calls()
    prepared = calling("prepare", n=1)
    rounds = [reply for n in (1, 2, 3) for reply in (prepared, calling("publish", n=n))]
    replies = [prepared, *rounds, *rounds[-2:], calling("submit", x="out")]
    planner, tools, script, settings = inner(calls, *replies, tools=("prepare", "publish"))
    with script as model:
        graph = assemble(tools, memory_database(), settings, model=model, planner=planner, checkpointer=InMemorySaver())
        run(graph, goal("x"))
        answer(graph, "approve")
        for text in ("shorter", "kinder"):
            answer(graph, {"choice": "hint", "hint": text})
        end = answer(graph, "approve")
    assert values(end) == {"x": "out"}
    assert calls == {"prepare": 1, "publish": 1}


def test_two_calls_in_one_turn_are_asked_about_together_and_answered_in_reverse() -> None:
    """langgraph#6624, #6626, #6533: of parallel tools that ask only one question surfaces."""
    calls = Calls()
    both = calling("book", n=1)
    both.tool_calls.append({"name": "book", "args": {"n": 2}, "id": "second", "type": "tool_call"})
    planner, tools, script, settings = inner(calls, both, both, calling("submit", x=1), tools=("book",))
    with script as model:
        graph = assemble(tools, memory_database(), settings, model=model, planner=planner, checkpointer=InMemorySaver())
        asked = questions(run(graph, goal("x")))
        by_n = {each["call"]["args"]["n"]: id_ for id_, each in asked.items()}
        assert sorted(by_n) == [1, 2]
        assert list(questions(answer(graph, {by_n[2]: APPROVE}))) == [by_n[1]]
        end = answer(graph, {by_n[1]: APPROVE})
    assert values(end) == {"x": 1}
    assert calls == {"book": 2}


def test_two_approvals_in_one_wave_are_both_shown_and_each_answer_reaches_its_own_call() -> None:
    """langgraph#6624, #6626, #6533: answers reach the wrong tool."""
    calls = Calls()
    tools = [
        calls.tool(name, "", lambda n: n, takes="n", args={"n": n}, effect="mutating")
        for name, n in (("x", 1), ("y", 2))
    ]
    graph = build_graph(tools, settings=calm(approve="mutating"), checkpointer=InMemorySaver())
    asked = run(graph, goal("x y"))
    assert len(questions(asked)) == 2
    # in reverse order, each with other arguments
    end = answer(
        graph,
        {
            about(asked, "make_y"): {"choice": "edit", "args": {"n": 20}},
            about(asked, "make_x"): {"choice": "edit", "args": {"n": 10}},
        },
    )
    assert values(end) == {"x": 10, "y": 20}
    assert calls == {"make_x": 1, "make_y": 1}


def test_an_inner_call_is_run_as_it_was_edited() -> None:
    calls = Calls()
    sent: list[int] = []
    turns = [calling("book", n=1), calling("book", n=1), calling("submit", x=1)]
    planner, _, script, settings = inner(calls, *turns, tools=("book",))

    def write(n: int) -> int:
        sent.append(n)
        return n

    book = calls.tool("b", "", write, takes="n", args={"n": 1}, effect="mutating", name="book")
    with script as model:
        graph = assemble(
            [book], memory_database(), settings, model=model, planner=planner, checkpointer=InMemorySaver()
        )
        run(graph, goal("x"))
        answer(graph, {"choice": "edit", "args": {"n": 5}})
    assert sent == [5]


def test_what_waits_for_a_word_has_not_failed_and_is_on_the_record() -> None:
    calls = Calls()
    graph = guarded(calls, approve="mutating")
    run(graph, goal("charge"))
    end = answer(graph, "approve")
    events = listed(end["trace"], "event")
    assert "recovered" not in events
    assert (events.count("escalated"), events.count("answered")) == (1, 1)
    assert graph.get_state(thread()).next == ()


def test_a_slow_step_that_runs_beside_is_not_cut_off_by_the_question() -> None:
    calls, gate = Calls(), threading.Event()
    threading.Timer(0.3, gate.set).start()
    slow = calls.tool("slow", "", lambda: gate.wait(20))
    end = run(guarded(calls, slow, approve="mutating"), goal("charge slow"))
    assert statuses(end["plan"])["slow"] == "done"
    assert calls["make_slow"] == 1

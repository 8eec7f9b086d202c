"""What a person can say beside yes and no: a hint, another call, more room. Each counts once."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import NothingDone, build_graph
from agent.app import assemble
from agent.core.plan import Call
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
    once,
    questions,
    run,
    step,
    thread,
    values,
)
from tests.doubles import calling, scripted

STRANGE = RuntimeError("strange")


def answer(graph: LoopGraph, given: Any) -> dict[str, Any]:
    return run(graph, Command(resume=given))


def only(end: dict[str, Any]) -> dict[str, Any]:
    (asked,) = questions(end).values()
    found: dict[str, Any] = asked
    return found


def picky(amount: int) -> int:
    """A body that takes small amounts only."""
    if amount > 100:
        raise NothingDone("at most 100")
    return amount


def too_much(calls: Calls, **settings: Any) -> tuple[LoopGraph, dict[str, Any]]:
    """A run that waits because a call is refused and nobody knows another."""
    pay = calls.tool("receipt", "", picky, name="pay", takes="amount", args={"amount": 500}, effect="mutating")
    graph = build_graph([calls.tool("a"), pay], settings=calm(**settings), checkpointer=InMemorySaver())
    return graph, run(graph, goal("a receipt"))


def test_a_question_says_what_was_learned_and_shows_the_call() -> None:
    _, end = too_much(Calls())
    asked = only(end)
    assert asked["learned"][0].startswith("it proves false: ")
    assert asked["learned"][-1] == "1 call proven wrong"
    assert asked["call"] == {"tool": "pay", "args": {"amount": 500}}
    assert list(asked["parameters"]["properties"]) == ["amount"]
    assert asked["limits"]["retry"] == 3


def test_an_edited_call_is_what_is_made() -> None:
    calls = Calls()
    graph, _ = too_much(calls)
    end = answer(graph, {"choice": "edit", "args": {"amount": 50}})
    assert end["outcome"].status == "satisfied"
    assert (values(end)["receipt"], calls) == (50, {"make_a": 1, "pay": 2})


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"sum": 5}, "there is no argument 'sum'"),
        ({"amount": "{{ghost}}"}, "refers to 'ghost'"),
        ({"amount": "{{a[0]}}"}, "is no reference"),
        ({}, "needs args"),
    ],
    ids=["no such argument", "no such input", "no reference", "nothing"],
)
def test_an_edit_that_does_not_fit_the_call_is_refused_and_costs_nothing(args: dict[str, Any], says: str) -> None:
    calls = Calls()
    graph, _ = too_much(calls)
    refused = answer(graph, {"choice": "edit", "args": args})
    assert says in refused["__interrupt__"][0].value["refused"]
    assert calls == {"make_a": 1, "pay": 1}
    assert values(answer(graph, {"choice": "edit", "args": {"amount": 5}}))["receipt"] == 5


def test_a_raised_limit_gives_the_ladder_more_room_and_stays_raised() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", once(TimeoutError(), times=4))]
    saver = InMemorySaver()
    settings = calm(retry=1, rewrite=0, replan=0, patch=0)
    graph = build_graph(tools, settings=settings, checkpointer=saver)
    asked = only(run(graph, goal("x")))
    assert (asked["limits"]["retry"], asked["tried"][0]) == (1, "retry x1")
    # another process, with the settings of before
    graph = build_graph(tools, settings=settings, checkpointer=saver)
    end = answer(graph, {"choice": "raise", "limits": {"retry": 5}})
    assert end["outcome"].status == "satisfied"
    assert end["granted"] == {"retry": 5}
    assert (end["ledger"].retry["x"], calls["make_x"]) == (3, 5)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"patience": 5}, "there is no limit 'patience'"),
        ({"retry": 1}, "is 1 already"),
        ({"retry": 2.5}, "retry"),
        ({}, "needs limits"),
    ],
    ids=["no such limit", "not raised", "no whole number", "nothing"],
)
def test_a_limit_that_would_not_be_raised_is_refused(limits: dict[str, Any], says: str) -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(TimeoutError()))]
    graph = build_graph(tools, settings=calm(retry=1, rewrite=0, replan=0), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    refused = answer(graph, {"choice": "raise", "limits": limits})
    assert says in refused["__interrupt__"][0].value["refused"]
    assert calls["make_x"] == 2


def test_a_limit_can_be_raised_by_editing_the_state() -> None:
    calls = Calls()
    tools = [calls.tool("x"), calls.tool("y", "x")]
    graph = build_graph(tools, settings=calm(steps=1), checkpointer=InMemorySaver())
    assert run(graph, goal("y"))["outcome"].status == "out_of_budget"
    graph.update_state(thread(), {"granted": {"steps": 10}})
    assert run(graph, goal("y"))["outcome"].status == "satisfied"
    with pytest.raises(ValueError, match="no limit 'stepps'"):
        graph.update_state(thread(), {"granted": {"stepps": 10}})


def test_without_a_model_nobody_could_read_a_hint() -> None:
    graph, end = too_much(Calls())
    assert "hint" not in only(end)["choices"]
    refused = answer(graph, {"choice": "hint", "hint": "less"})
    assert "cannot be answered 'hint'" in refused["__interrupt__"][0].value["refused"]


def test_a_hint_reaches_the_patcher_which_calls_otherwise_at_once() -> None:
    calls = Calls()
    pay = calls.tool("receipt", "", picky, name="pay", takes="amount", args={"amount": 500}, effect="mutating")
    gives_up = '{"reason": "no idea", "args": null}'
    with scripted(gives_up, '{"reason": "as told", "args": {"amount": 50}}') as model:
        graph = build_graph([pay], model=model, settings=calm(patch=1, replan=0), checkpointer=InMemorySaver())
        run(graph, goal("receipt"))
        end = answer(graph, {"choice": "hint", "hint": "fifty will do"})
    assert end["outcome"].status == "satisfied"
    assert "fifty will do" not in str(model.prompts[0])
    assert "fifty will do" in str(model.prompts[1])
    assert (values(end)["receipt"], calls["pay"]) == (50, 2)


def test_a_hint_reaches_the_planner_when_the_step_is_planned_anew() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(PermissionError())), calls.tool("x", name="other_x")]
    graph: LoopGraph
    with ScriptedPlanner(draft(step("x")), draft(step("x", call=Call(tool="other_x")))) as planner:
        graph = assemble(
            tools, memory_database(), calm(rewrite=0, replan=0), planner=planner, checkpointer=InMemorySaver()
        )
        asked = only(run(graph, goal("x")))
        assert "hint" in asked["choices"]
        answer(graph, {"choice": "raise", "limits": {"replan": 1}})
    assert calls["other_x"] == 1


def test_a_hint_reaches_the_inner_loop() -> None:
    calls = Calls()
    working = step("x", call=None, instruction="work it out", tools=("make_a",), effect=READ)
    scope = '{"reason": "it does not say", "scope": "call"}'
    planner = ScriptedPlanner(draft(working))
    with scripted(calling("give_up", reason="no idea"), scope, calling("submit", x=7)) as model:
        graph = assemble(
            [calls.tool("a")],
            memory_database(),
            calm(retry=0, patch=0, rewrite=0, replan=0),
            model=model,
            planner=planner,
            checkpointer=InMemorySaver(),
        )
        run(graph, goal("x"))
        end = answer(graph, {"choice": "hint", "hint": "it is seven"})
    assert values(end) == {"x": 7}
    assert "it is seven" not in str(model.prompts[0])
    assert "A person says: it is seven" in model.prompts[-1][-1].text


def test_an_answer_given_twice_is_refused_while_another_question_is_open() -> None:
    calls = Calls()
    tools = [calls.tool(name, "", always(RuntimeError(name)), effect="mutating") for name in ("x", "y")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    asked = {each["error"]: id_ for id_, each in questions(run(graph, goal("x y"))).items()}
    said = {asked["x"]: {"choice": "answer", "value": 1}}
    assert list(questions(answer(graph, said))) == [asked["y"]]
    refused = answer(graph, said)["__interrupt__"][0].value["refused"]
    assert refused == f"question {asked['x']!r} was answered already; open: {asked['y']}"
    assert values(answer(graph, {asked["y"]: {"choice": "answer", "value": 2}})) == {"x": 1, "y": 2}
    assert calls == {"make_x": 1, "make_y": 1}


def test_an_answer_given_twice_is_refused_when_nothing_is_asked_any_more() -> None:
    calls = Calls()
    graph, _ = too_much(calls)
    said = {"choice": "answer", "value": 5}
    answer(graph, said)
    with pytest.raises(ValueError, match="'t' asks nothing, or nothing any more; an answer counts once"):
        answer(graph, said)
    assert values(run(graph, goal("a receipt"))) == {"a": 1, "receipt": 5}


async def test_an_answer_given_twice_is_refused_to_an_asynchronous_caller_too() -> None:
    graph, _ = too_much(Calls())
    said: Any = Command(resume={"choice": "answer", "value": 5})
    await graph.ainvoke(said, thread())
    with pytest.raises(ValueError, match="asks nothing"):
        await graph.ainvoke(said, thread())


def test_the_same_failure_asked_about_again_is_another_question() -> None:
    """An answer that comes late to the first must not be taken for one to the second."""
    calls = Calls()
    tools = [calls.tool("x", "", always(STRANGE), effect="mutating")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    first = only(run(graph, goal("x")))["id"]
    second = only(answer(graph, {first: "retry"}))["id"]
    assert first != second
    late = answer(graph, {first: {"choice": "answer", "value": 1}})
    assert "was answered already" in late["__interrupt__"][0].value["refused"]
    assert calls["make_x"] == 2


def test_whatever_was_done_before_the_question_is_done_once_however_often_it_is_asked() -> None:
    calls = Calls()
    tools = [
        calls.tool("a", effect="mutating"),
        calls.tool("b", "a", effect="mutating"),
        calls.tool("x", "b", always(STRANGE), effect="mutating"),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    asked = run(graph, goal("x"))
    for _ in range(3):
        assert questions(run(graph, None)) == questions(asked)
        answer(graph, "nonsense")
    answer(graph, {"choice": "answer", "value": 1})
    assert calls == {"make_a": 1, "make_b": 1, "make_x": 1}


def test_a_question_that_an_edit_has_settled_is_not_asked() -> None:
    calls = Calls()
    graph, end = too_much(calls)
    plan = end["plan"].model_dump()
    for each in plan["steps"]:
        if "receipt" in each["produces"]:
            each.update(status="pending", call={"tool": "pay", "args": {"amount": 7}})
    graph.update_state(thread(), {"plan": plan})
    assert values(run(graph, None))["receipt"] == 7

"""Every hard bound ends the run through the finisher: named, with what was verified, and never by an exception."""

import json
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.app import assemble
from agent.core.failure import Scope
from agent.core.limits import HARD, Ledger
from agent.core.plan import Call
from agent.core.spending import Price
from agent.ports import Usage
from agent.settings import Settings
from agent.store.database import memory_database
from tests.builders import (
    Calls,
    ScriptedPlanner,
    always,
    calm,
    draft,
    goal,
    questions,
    rules,
    run,
    rungs,
    step,
    thread,
    values,
)
from tests.doubles import ScriptedModel, calling, scripted


class Odd(Exception):
    """Nothing that the table knows."""


def chain(calls: Calls, length: int = 5) -> list[Any]:
    """Steps a0 <- a1 <- ..., one after the other."""
    return [calls.tool("a0"), *(calls.tool(f"a{n}", f"a{n - 1}") for n in range(1, length))]


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"steps": 3}, "steps limit reached: 3 of 3"),
        ({"tool_calls": 3}, "tool_calls limit reached: 3 of 3"),
        ({"moves": 5}, "moves limit reached: 5 of 5"),
        ({"supersteps": 6}, "supersteps limit reached"),
        ({"planner_calls": 1}, "planner_calls limit reached: 1 of 1"),
    ],
    ids=str,
)
def test_a_bound_that_is_reached_ends_the_run_with_what_was_verified(limits: dict[str, int], named: str) -> None:
    calls = Calls()
    end = run(build_graph(chain(calls), settings=calm(**limits)), goal("a4"))
    outcome = end["outcome"]
    assert (outcome.status, outcome.limit) == ("out_of_budget", next(iter(limits)))
    assert named in outcome.reason
    done = sum(calls.values())
    assert done < 5
    assert values(end) == {f"a{n}": 1 for n in range(done)}
    assert len(outcome.unfinished) == 5 - done
    assert named in end["messages"][-1].text


def test_three_verified_steps_are_told_when_a_cap_is_reached() -> None:
    calls = Calls()
    end = run(build_graph(chain(calls), settings=calm(steps=3)), goal("a4"))
    assert values(end) == {"a0": 1, "a1": 1, "a2": 1}
    said = end["messages"][-1].text
    assert all(f"- {name} (version 1)" in said for name in ("a0", "a1", "a2"))
    assert "steps limit reached" in said


def test_a_run_whose_attempts_verify_nothing_is_ended_as_one_without_progress() -> None:
    calls = Calls()
    tools = [calls.tool("done"), calls.tool("x", "done", always(httpx.ConnectError("no")))]
    end = run(build_graph(tools, settings=calm(barren=3, retry=50)), goal("done x"))
    assert (end["outcome"].status, end["outcome"].limit) == ("no_progress", "barren")
    assert values(end) == {"done": 1}
    assert calls["make_x"] == 3


def test_time_that_is_used_up_ends_the_run() -> None:
    calls = Calls()
    end = run(build_graph(chain(calls), settings=calm(seconds=1e-9)), goal("a4"))
    assert (end["outcome"].status, end["outcome"].limit) == ("out_of_budget", "seconds")


def test_what_is_spent_survives_a_resume_in_another_graph() -> None:
    calls, saver = Calls(), InMemorySaver()
    tools = [calls.tool("a"), calls.tool("x", "a", always(Odd("strange")))]
    first = run(build_graph(tools, settings=calm(replan=0, rewrite=0), checkpointer=saver), goal("x"))
    asked = next(iter(questions(first)))
    spent: Ledger = first["ledger"]
    assert (spent.steps, spent.tool_calls) == (2, 2)
    again = build_graph(tools, settings=calm(replan=0, rewrite=0, steps=3), checkpointer=saver)
    end = again.invoke(Command(resume={asked: "retry"}), thread())
    assert end["ledger"].steps == 3
    assert end["ledger"].supersteps > spent.supersteps
    assert (end["outcome"].status, end["outcome"].limit) == ("out_of_budget", "steps")


def test_every_super_step_is_counted() -> None:
    calls, saver = Calls(), InMemorySaver()
    graph = build_graph(chain(calls, 3), settings=calm(), checkpointer=saver)
    end = run(graph, goal("a2"))
    taken = graph.get_state(thread()).metadata
    assert taken is not None
    assert end["ledger"].supersteps == taken["step"]


# --- what models use ---------------------------------------------------------------------------------------------


def said(text: str, tokens_in: int, tokens_out: int, **more: Any) -> AIMessage:
    counted: Any = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return AIMessage(text, usage_metadata=counted, response_metadata={"model_name": "m-1", **more})


def ran(
    model: ScriptedModel, tools: list[Any], planner: Any = None, settings: Settings | None = None
) -> dict[str, Any]:
    chosen = settings or calm(escalation="finish", replan=0)
    return run(assemble(tools, memory_database(), chosen, model=model, planner=planner), goal("x"))


def test_the_classifier_and_the_repairer_pay_for_themselves() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(Odd("strange")), takes="", alternatives={})]
    scope, patch = json.dumps({"scope": "call"}), json.dumps({"reason": "none", "args": None})
    with scripted(said(scope, 100, 10), said(patch, 200, 20), tool_calling=False) as model:
        ledger = ran(model, tools)["ledger"]
    assert (ledger.planner_calls, ledger.classifier_calls, ledger.repairer_calls, ledger.executor_turns) == (1, 1, 1, 0)
    assert (ledger.classifier_tokens_in, ledger.classifier_tokens_out) == (100, 10)
    assert (ledger.repairer_tokens_in, ledger.repairer_tokens_out) == (200, 20)
    assert (ledger.tokens, ledger.tokens_estimated) == (330, 0)


def test_what_a_provider_does_not_tell_is_estimated_and_says_so() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(Odd("strange")))]
    scope, patch = json.dumps({"scope": "call"}), json.dumps({"reason": "none", "args": None})
    with scripted(scope, said(patch, 200, 20), tool_calling=False) as model:
        ledger = ran(model, tools)["ledger"]
    assert ledger.tokens_estimated > 0
    assert ledger.tokens == ledger.tokens_estimated + 220


def react_step() -> Any:
    return step("x", call=None, instruction="find it", tools=("make_a",))


def turns(*tokens: tuple[int, int], **more: Any) -> list[AIMessage]:
    """Turns that look once more each, and a last one that submits."""
    looks = [calling("make_a", f"c{n}", n=n) for n in range(len(tokens) - 1)]
    messages = [*looks, calling("submit", "end", x=7)]
    return [
        message.model_copy(update={"usage_metadata": said("", *each).usage_metadata, "response_metadata": more})
        for message, each in zip(messages, tokens, strict=True)
    ]


def looking(calls: Calls) -> list[Any]:
    return [calls.tool("a", "", lambda n: n, takes="n", args={"n": 0})]


@pytest.mark.parametrize(
    ("limits", "prices", "named"),
    [
        pytest.param({"executor_turns": 2}, {}, "executor_turns", id="turns"),
        pytest.param({"executor_tokens_in": 150}, {}, "executor_tokens_in", id="tokens in"),
        pytest.param({"executor_tokens_out": 25}, {}, "executor_tokens_out", id="tokens out"),
        pytest.param({"tokens": 300}, {}, "tokens", id="all tokens"),
        pytest.param({"money": 0.0002}, {"m-1": Price(tokens_in=1.0)}, "money", id="money by tokens"),
        pytest.param({"money": 2.0}, {"*": Price(call=1.0)}, "money", id="money by calls"),
    ],
)
def test_what_the_inner_loop_uses_is_bounded_and_named(limits: dict[str, float], prices: Any, named: str) -> None:
    calls = Calls()
    steps = (react_step(), step("y", "x", call=Call(tool="make_y", args={"x": "{{x}}"})))
    tools = [*looking(calls), calls.tool("y", "x")]
    chosen = calm(escalation="finish", prices=prices, **limits)
    with (
        scripted(*turns((100, 10), (100, 10), (100, 10), model_name="m-1")) as model,
        ScriptedPlanner(draft(*steps)) as planner,
    ):
        graph = assemble(tools, memory_database(), chosen, model=model, planner=planner)
        end = run(graph, goal("y"))
    assert (end["outcome"].status, end["outcome"].limit) == ("out_of_budget", named)
    assert end["ledger"].executor_turns == 3
    assert "x" in values(end)  # what was started within the bound was let finish
    assert calls["make_y"] == 0


def test_a_provider_that_tells_the_price_is_believed() -> None:
    calls = Calls()
    with (
        scripted(*turns((10, 1), model_name="m-1", token_usage={"cost": 0.5})) as model,
        ScriptedPlanner(draft(react_step())) as planner,
    ):
        end = ran(model, looking(calls), planner, calm(prices={"*": Price(call=99.0)}))
    assert end["ledger"].money == 0.5


def test_a_planner_pays_for_each_time_it_was_asked() -> None:
    calls = Calls()
    drawn = draft(step("x", call=Call(tool="make_x")), usage=Usage(calls=3, tokens_in=30, tokens_out=3, model="m-1"))
    with ScriptedPlanner(drawn) as planner:
        chosen = calm(prices={"m-1": Price(call=1.0)})
        end = run(assemble([calls.tool("x")], memory_database(), chosen, planner=planner), goal("x"))
    ledger = end["ledger"]
    assert (ledger.planner_calls, ledger.planner_tokens_in, ledger.planner_tokens_out, ledger.money) == (3, 30, 3, 3.0)


def test_a_budget_that_is_used_up_ends_the_asking_within_one_round() -> None:
    calls = Calls()
    tools = [calls.tool(f"x{n}", "", always(Odd("strange"))) for n in range(6)]
    scope = said(json.dumps({"scope": "call"}), 1, 1)
    chosen = calm(escalation="finish", classifier_calls=2, repairer_calls=1)
    patch = said(json.dumps({"reason": "none", "args": None}), 1, 1)
    replies = [scope, scope, patch]
    model = ScriptedModel(replies=replies, tool_calling=False)
    graph = assemble(tools, memory_database(), chosen, model=model)
    end = run(graph, goal(" ".join(f"x{n}" for n in range(6))))
    assert end["outcome"].limit == "classifier_calls"
    assert end["ledger"].classifier_calls == 2
    assert len(model.prompts) <= 3


def test_every_hard_bound_can_be_set_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HARD:
        monkeypatch.setenv(f"KINTSUGI_LIMITS__{name.upper()}", "7")
    monkeypatch.setenv("KINTSUGI_PRICES", '{"gpt-5": {"tokens_in": 1.25, "tokens_out": 10}}')
    found = Settings(_env_file=None)
    assert all(getattr(found.limits, name) == 7 for name in HARD)
    assert found.prices["gpt-5"].tokens_out == 10


# --- a repair that makes the failed call once more ---------------------------------------------------------------


def test_a_patch_that_spells_the_failed_call_otherwise_is_refused_before_it_runs() -> None:
    calls = Calls()
    tools = [calls.tool("a", "", lambda: "week"), calls.tool("x", "a", always(httpx.InvalidURL("bad week")))]
    literal = json.dumps({"reason": "r", "args": {"a": "week"}})
    planned = json.dumps({"reason": "r", "args": {"a": "{{a}}"}})
    with scripted(literal, planned, literal, tool_calling=False) as model:
        end = ran(model, tools, settings=calm(escalation="finish", replan=0, rewrite=0))
    assert calls == {"make_a": 1, "make_x": 1}
    assert end["outcome"].status == "handed_over"


def test_a_rewrite_that_brings_the_failed_call_back_over_equal_inputs_never_runs_it() -> None:
    calls = Calls()
    tools = [calls.tool("a", "", lambda: {"columns": ["x"]}), calls.tool("x", "a", always(ValueError("date too wide")))]
    end = run(build_graph(tools, settings=calm(escalation="finish", replan=0)), goal("x"))
    assert calls["make_x"] == 1
    assert rungs(end)[0] == "rewrite"
    assert "RepeatedCall" in {each.classified.failure.error.type for each in end["trace"] if each.event == "recovered"}
    assert end["outcome"].status == "handed_over"


def test_a_rewrite_over_inputs_that_have_changed_runs_the_call_again() -> None:
    calls, seen = Calls(), list[int]()

    def observed() -> int:
        seen.append(1)
        return len(seen)

    def load(a: int) -> str:
        if a == 1:
            raise ValueError("date too wide")
        return "rows"

    tools = [calls.tool("a", "", observed), calls.tool("x", "a", load)]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 2, "make_x": 2}


# --- whatever a tool raises is a failure with a scope ------------------------------------------------------------


class Base(BaseException):
    """Past `Exception`."""


@pytest.mark.parametrize(
    ("thrown", "rung", "scope"),
    [
        pytest.param(ValueError("bad"), "patch", Scope.CALL, id="ValueError"),
        pytest.param(ToolException("bad filter"), "patch", Scope.CALL, id="ToolException"),
        pytest.param(KeyError("id"), "patch", Scope.CALL, id="KeyError"),
        pytest.param(RuntimeError("odd"), "patch", Scope.CALL, id="RuntimeError"),
        pytest.param(Odd("odd"), "patch", Scope.CALL, id="a class of one's own"),
        pytest.param(Base("odd"), "patch", Scope.CALL, id="BaseException"),
        pytest.param(SystemExit(3), "patch", Scope.CALL, id="SystemExit"),
        pytest.param(TimeoutError(), "retry", Scope.NOTHING, id="TimeoutError"),
        pytest.param(ConnectionError("reset"), "retry", Scope.NOTHING, id="ConnectionError"),
        pytest.param(OSError(28, "No space left on device"), "rewrite", Scope.PRECONDITION, id="disk full"),
        pytest.param(PermissionError("no"), "rewrite", Scope.PRECONDITION, id="PermissionError"),
        pytest.param(FileNotFoundError("gone"), "rewrite", Scope.PRECONDITION, id="FileNotFoundError"),
    ],
)
def test_whatever_a_tool_raises_is_classified_and_the_ladder_decides_alone(
    thrown: BaseException, rung: str, scope: Scope
) -> None:
    calls = Calls()

    def does(**_: Any) -> Any:
        raise thrown

    tools = [calls.tool("done"), calls.tool("x", "", does, effect="read_only")]
    end = run(build_graph(tools, settings=calm(retry=1, escalation="finish")), goal("done x"))
    first = next(each for each in end["trace"] if each.event == "recovered")
    assert (first.choice.start, first.classified.scope) == (rung, scope)
    assert values(end) == {"done": 1}
    # no client, no LangGraph and no LangChain tries again below the ladder
    assert calls["make_x"] == 1 + sum(each == "retry" for each in rungs(end))


@pytest.mark.parametrize(
    "told", [{"error": "no such table: weeks"}, "Error: no such table: weeks"], ids=["dict", "text"]
)
def test_an_error_that_is_returned_is_classified_like_one_that_is_raised(told: Any) -> None:
    calls = Calls()
    end = run(build_graph([calls.tool("x", "", lambda: told)], settings=calm(escalation="finish")), goal("x"))
    assert rules(end)[0] == "precondition in words"
    assert values(end) == {}


def test_one_of_four_that_fails_takes_nothing_from_its_siblings() -> None:
    calls = Calls()
    tools = [*(calls.tool(f"x{n}") for n in range(3)), calls.tool("bad", "", always(ValueError("date too wide")))]
    end = run(build_graph(tools, settings=calm(escalation="finish", replan=0)), goal("x0 x1 x2 bad"))
    assert values(end) == {"x0": 1, "x1": 1, "x2": 1}
    failed = [each.classified.failure.key for each in end["trace"] if each.event == "recovered"]
    assert set(failed) == {"bad"}
    assert end["outcome"].status == "handed_over"


def test_nothing_is_repaired_once_a_bound_is_reached() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(ValueError("date too wide")))]
    with scripted(tool_calling=False) as model:
        end = ran(model, tools, settings=calm(tool_calls=1, escalation="finish"))
    assert end["outcome"].limit == "tool_calls"
    assert end["ledger"].repairer_calls == 0
    assert "x" not in values(end)

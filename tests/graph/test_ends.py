"""Every run ends, says how, and reports what it has: satisfied, unreachable, out of budget, no progress."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from agent import Goal, build_graph
from agent.app import assemble
from agent.ports import PlanningFailed, Usage
from agent.store.database import memory_database
from tests.builders import (
    Calls,
    ManualClock,
    ScriptedPlanner,
    always,
    arun,
    calm,
    draft,
    goal,
    once,
    questions,
    run,
    rungs,
    step,
    thread,
    values,
)
from tests.test_boundary import http


def test_a_goal_whose_needs_nobody_produces_is_unreachable_with_the_proof() -> None:
    calls = Calls()
    end = run(build_graph([calls.tool("b", "a"), calls.tool("c", "b")], settings=calm()), goal("c"))
    assert end["outcome"].status == "unreachable"
    assert end["outcome"].proof == ("no tool produces 'a' (needed by b <- c)",)
    assert not calls


def test_an_unreachable_want_beside_a_reachable_one_is_told_before_anything_is_done() -> None:
    calls = Calls()
    end = run(build_graph([calls.tool("a")], settings=calm()), goal("a ghost"))
    assert end["outcome"].status == "unreachable"
    assert "ghost" in end["outcome"].proof[0]
    assert not calls


@pytest.mark.parametrize("stated", [{}, {"goal": Goal()}, {"goal": ""}, {"messages": []}], ids=repr)
def test_a_goal_that_names_nothing_ends_with_a_sentence(stated: Any) -> None:
    end = run(build_graph([Calls().tool("a")], settings=calm()), stated)
    assert end["outcome"].status == "unreachable"
    assert "no goal was given" in end["outcome"].reason


def test_a_goal_in_words_without_a_model_says_what_is_missing() -> None:
    end = run(build_graph([Calls().tool("a")], settings=calm()), Goal(text="load the quarter"))
    assert end["outcome"].status == "unreachable"
    assert "KINTSUGI_MODEL" in end["outcome"].reason


def test_needs_that_go_in_a_circle_are_named() -> None:
    calls = Calls()
    end = run(build_graph([calls.tool("a", "b"), calls.tool("b", "a")], settings=calm()), goal("a"))
    assert end["outcome"].status == "unreachable"
    assert "cyclic" in end["outcome"].reason
    assert not calls


def test_two_producers_of_one_artifact_are_refused_by_name() -> None:
    calls = Calls()
    end = run(build_graph([calls.tool("a"), calls.tool("a", name="other")], settings=calm()), goal("a"))
    assert end["outcome"].status == "unreachable"
    assert "make_a" in end["outcome"].reason
    assert "other" in end["outcome"].reason


def test_no_tools_at_all_is_no_error_but_an_answer() -> None:
    assert run(build_graph([], settings=calm()), goal("a"))["outcome"].status == "unreachable"


@pytest.mark.parametrize(
    ("limit", "allowed", "made"),
    [("steps", 3, 3), ("tool_calls", 3, 3), ("moves", 6, None), ("planner_calls", 1, 0)],
)
def test_a_reached_limit_ends_the_run_with_what_it_has(limit: str, allowed: int, made: int | None) -> None:
    calls = Calls()
    tools = [calls.tool("a0"), *(calls.tool(f"a{each}", f"a{each - 1}") for each in range(1, 8))]
    end = run(build_graph(tools, settings=calm(**{limit: allowed})), goal("a7"))
    assert end["outcome"].status == "out_of_budget"
    assert end["outcome"].reason == f"{limit} limit reached: {allowed} of {allowed}"
    if made is not None:
        assert len(values(end)) == made
    assert len(values(end)) + len(end["outcome"].unfinished) in (0, 8)


def test_a_goal_reached_with_the_last_allowed_call_is_satisfied() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a")]
    end = run(build_graph(tools, settings=calm(steps=2, tool_calls=2)), goal("b"))
    assert end["outcome"].status == "satisfied"


def test_the_wall_clock_is_a_limit_and_a_new_run_starts_with_a_fresh_one() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a")]
    saver = InMemorySaver()
    end = run(build_graph(tools, settings=calm(seconds=1e-9), checkpointer=saver), goal("b"))
    assert end["outcome"].status == "out_of_budget"
    assert end["outcome"].reason.startswith("seconds limit reached")
    done = dict(calls)
    end = run(build_graph(tools, settings=calm(), checkpointer=saver), goal("b"))
    assert end["outcome"].status == "satisfied"
    assert all(calls[name] == count for name, count in done.items())


def test_many_failures_without_one_artifact_are_no_progress() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("x", "a", always(http(503)))]
    end = run(build_graph(tools, settings=calm(barren=4, retry=50)), goal("x"))
    assert end["outcome"].status == "no_progress"
    assert calls == {"make_a": 1, "make_x": 4}
    assert values(end) == {"a": 1}


def test_a_step_that_fails_for_ever_ends_whatever_the_budgets_are() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("x", "a", always(RuntimeError("strange")))]
    settings = calm(retry=9, patch=9, rewrite=9, replan=9, barren=1000, escalation="finish")
    end = run(build_graph(tools, settings=settings), goal("x"))
    assert end["outcome"].status == "handed_over"
    assert rungs(end)[-1] in ("escalate", "replan")
    assert len(rungs(end)) < 40


def test_a_criterion_that_stays_false_is_not_satisfied_by_a_finished_plan() -> None:
    calls = Calls()
    end = run(build_graph([calls.tool("a")], settings=calm(escalation="finish")), goal("a", "artifacts.a == 2"))
    assert end["outcome"].status != "satisfied"
    assert values(end) == {"a": 1}
    assert [each.verdict for each in end["outcome"].grades] == ["verified", "refuted"]
    assert "artifacts.a == 2: refuted" in end["outcome"].reason


# --- planners that misbehave ------------------------------------------------------------------------------------


def planned(planner: Any, calls: Calls, *tools: Any, **settings: Any) -> Any:
    return assemble(
        tools or [calls.tool("a"), calls.tool("b", "a")],
        memory_database(),
        calm(**settings),
        planner=planner,
        clock=ManualClock(),
        checkpointer=InMemorySaver(),
    )


def made(of: str, needs: str = "", **more: Any) -> Any:
    return step(of, needs, id=of, **more)


def test_a_planner_that_gives_nothing_valid_is_the_end_with_its_cause() -> None:
    failed = PlanningFailed("the model gave no valid plan: {}", Usage(calls=3, tokens_in=70))
    with ScriptedPlanner(failed) as planner:
        end = run(planned(planner, Calls()), goal("a"))
    assert (end["outcome"].status, end["outcome"].reason) == ("unreachable", "the model gave no valid plan: {}")
    assert end["ledger"].tokens == 70


def test_a_finished_plan_is_not_taken_back_to_the_planner() -> None:
    calls = Calls()
    with ScriptedPlanner(draft(made("a"), made("b", "a"))) as planner:
        end = run(planned(planner, calls), goal("b"))
    assert end["outcome"].status == "satisfied"
    assert end["ledger"].planner_calls == 1


def test_a_replan_that_repeats_what_failed_is_thrash_and_goes_to_a_person() -> None:
    calls = Calls()
    tools = [calls.tool("a", "", always(ValueError("no")))]
    with ScriptedPlanner(draft(made("a")), draft(made("a", intent="in other words"))) as planner:
        end = run(planned(planner, calls, *tools, replan=5), goal("a"))
    (asked,) = questions(end).values()
    assert any("proven wrong" in each for each in asked["tried"])
    assert calls["make_a"] == 1


def test_steps_that_wait_for_each_other_are_named() -> None:
    circle = draft(made("a", "b"), made("b", "a"))
    with ScriptedPlanner(circle, circle) as planner:
        end = run(planned(planner, Calls(), escalation="finish"), goal("a"))
    assert end["outcome"].status == "handed_over"
    assert "wait for each other" in end["outcome"].reason


def test_a_step_of_an_unknown_tool_is_a_failure_and_not_a_crash() -> None:
    unknown = made("a", call={"tool": "ghost", "args": {}}, effect="mutating")
    with ScriptedPlanner(draft(unknown), draft(made("a"))) as planner:
        end = run(planned(planner, Calls()), goal("a"))
    assert (end["outcome"].status, rungs(end)) == ("satisfied", ["replan"])


def test_a_reference_to_nothing_is_refused_before_any_call() -> None:
    calls = Calls()
    loose = made("b", call={"tool": "make_b", "args": {"a": "x {{a.missing}} {{a}}"}})
    with ScriptedPlanner(draft(made("a"), loose), draft(made("a"), made("b", "a"))) as planner:
        end = run(planned(planner, calls), goal("b"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 2, "make_b": 1}
    recovered = next(each for each in end["trace"] if each.event == "recovered").classified
    assert (recovered.rule, recovered.failure.error.type) == ("arguments refused", "UnresolvedReference")


# --- both ways to call ------------------------------------------------------------------------------------------


async def test_both_ways_to_call_come_to_the_same_end() -> None:
    def tools(calls: Calls) -> list[Any]:
        return [
            calls.tool("a"),
            calls.tool("b", "a", once(http(503)), effect="mutating"),
            calls.tool("c", "b", lambda b: b + 1),
            calls.tool("d", "a"),
        ]

    def comparable(end: dict[str, Any]) -> Any:
        plan = {each.produces: (each.status, each.attempts, each.needs) for each in end["plan"].steps}
        world = {name: (each.digest, each.version, each.inputs) for name, each in end["world"].artifacts.items()}
        return plan, world, end["outcome"].model_dump(), rungs(end), end["goal"]

    one, other = Calls(), Calls()
    awaited = await arun(build_graph(tools(other), settings=calm(), checkpointer=InMemorySaver()), goal("c d"))
    graph = build_graph(tools(one), settings=calm(), checkpointer=InMemorySaver())
    invoked = await asyncio.to_thread(run, graph, goal("c d"))
    assert comparable(invoked) == comparable(awaited)
    assert one == other


def test_a_message_states_the_goal_and_the_report_comes_back_as_one() -> None:
    calls = Calls()
    with ScriptedPlanner(draft(made("a"), wants=("a",))) as planner:
        graph = planned(planner, calls)
        end = run(graph, {"messages": [HumanMessage("make a")]})
        assert end["outcome"].status == "satisfied"
        assert (end["goal"].text, end["goal"].wants) == ("make a", ("a",))
        assert isinstance(end["messages"][-1], AIMessage)
        assert end["messages"][-1].text.startswith("satisfied")
        again = run(graph, {"messages": [HumanMessage("make a")]})
    assert again["outcome"].status == "satisfied"
    assert calls == {"make_a": 1}


def test_a_goal_in_words_stated_once_more_is_the_same_goal() -> None:
    calls = Calls()
    with ScriptedPlanner(draft(made("a"), wants=("a",))) as planner:
        graph = planned(planner, calls)
        run(graph, Goal(text="make a"))
        end = run(graph, Goal(text="make a"))
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_a": 1}
    assert graph.get_state(thread()).next == ()

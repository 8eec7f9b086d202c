"""Each rung through the public graph: what is tried again, what is kept, and where the ladder ends."""

import asyncio
import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from agent.boundary import facts_of
from agent.core.ladder import choose_rung
from tests.builders import Calls, always, arun, calm, goal, once, questions, rules, run, rungs, statuses, thread, values
from tests.test_boundary import http


def test_a_transient_failure_is_retried_and_nothing_else_is_done_again() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("x", "a", once(http(503), times=2)), calls.tool("y", "a")]
    end = run(build_graph(tools, settings=calm()), goal("x y"))
    assert rungs(end) == ["retry", "retry"]
    assert calls == {"make_a": 1, "make_x": 3, "make_y": 1}


def test_retries_that_are_used_up_fall_upward_to_a_patch() -> None:
    calls = Calls()

    def by(by: str) -> str:
        if by == "week":
            raise http(503)
        return by

    tools = [calls.tool("x", "", by, takes="by", alternatives={"by": ["week", "day"]})]
    end = run(build_graph(tools, settings=calm(retry=2)), goal("x"))
    assert rungs(end) == ["retry", "retry", "patch"]
    assert values(end) == {"x": "day"}


def test_a_wrong_call_is_patched_by_the_next_declared_value() -> None:
    tried: list[str] = []

    def by(by: str) -> str:
        tried.append(by)
        if by != "hour":
            raise http(413)
        return by

    calls = Calls()
    tools = [calls.tool("x", "", by, takes="by", alternatives={"by": ["week", "day", "hour"]}, effect="mutating")]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert rungs(end) == ["patch", "patch"]
    assert tried == ["week", "day", "hour"]
    assert end["plan"].revision == 3


def test_a_wrong_call_is_patched_by_a_stand_in() -> None:
    calls = Calls()
    tools = [
        calls.tool("a"),
        calls.tool("x", "a", always(http(400))),
        calls.tool("x", "a", lambda a: "by other", name="other", stands_in_for="make_x", cost=5),
    ]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert rungs(end) == ["patch"]
    assert values(end)["x"] == "by other"
    assert calls == {"make_a": 1, "make_x": 1, "other": 1}


def test_a_broken_precondition_rewrites_its_region_and_leaves_the_rest_alone() -> None:
    published: list[str] = []
    calls = Calls()

    def schema() -> dict[str, Any]:
        published.append("users")
        return {"tables": published[1:]}

    tools = [
        calls.tool("settings"),
        calls.tool("found", "", schema),
        calls.tool(
            "db", "settings found", requires="artifacts.found.tables.exists(t, t == 'users')", effect="mutating"
        ),
        calls.tool("report", "settings"),
    ]
    end = run(build_graph(tools, settings=calm()), goal("db report"))
    assert rungs(end) == ["rewrite"]
    assert calls == {"make_settings": 1, "make_found": 2, "make_db": 1, "make_report": 1}
    (marked,) = [each.what for each in end["trace"] if each.event == "invalidated"]
    assert [end["plan"].step(each).produces for each in marked.steps] == [("db",)]
    assert [end["plan"].step(each).produces for each in marked.flagged] == [("found",)]


def test_early_cutoff_reaches_through_a_rewrite() -> None:
    calls = Calls()
    tools = [
        calls.tool("a", "", lambda: {"columns": ["x"]}),
        calls.tool("b", "a"),
        calls.tool("c", "a b", once(ValueError("column x not found")), takes="a b"),
    ]
    end = run(build_graph(tools, settings=calm(replan_breadth=1.0)), goal("c"))
    assert rungs(end) == ["rewrite"]
    assert calls == {"make_a": 2, "make_b": 1, "make_c": 2}


def test_a_format_that_changed_under_half_the_plan_is_replanned() -> None:
    calls, seen = Calls(), list[int]()

    def schema() -> dict[str, Any]:
        seen.append(1)
        return {"columns": ["revenue_net"]} if len(seen) == 1 else {"columns": ["net"]}

    def load(found: Any) -> str:
        if found["columns"] == ["revenue_net"]:
            raise ValueError("column revenue_net not found")
        return "rows"

    tools = [calls.tool("found", "", schema), calls.tool("rows", "found", load), calls.tool("sums", "rows")]
    end = run(build_graph(tools, settings=calm()), goal("sums"))
    assert rungs(end) == ["replan"]
    assert end["outcome"].status == "satisfied"
    assert calls == {"make_found": 2, "make_rows": 2, "make_sums": 1}


def test_a_second_replan_is_an_escalation() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(ValueError("no such thing")))]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    end = run(graph, goal("x"))
    assert rungs(end) == ["replan"]
    (asked,) = questions(end).values()
    assert any("plan's shape is not the problem" in each for each in asked["tried"])
    assert calls["make_x"] == 1


def test_every_recovery_is_on_the_record_with_what_its_choice_can_be_recomputed_from() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("x", "a", always(http(503)), effect="read_only")]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("x"))
    recovered = [each for each in end["trace"] if each.event == "recovered"]
    assert len(recovered) >= 4
    for each in recovered:
        assert (
            choose_rung(each.classified, each.options, each.limits, each.ledger, each.ordered, each.resting)
            == each.choice
        )


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_siblings_of_a_failed_step_keep_what_they_made(broken: int) -> None:
    calls = Calls()
    tools = [
        calls.tool(f"p{each}", "", always(RuntimeError("strange")) if each < broken else None, effect="mutating")
        for each in range(4)
    ]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("p0 p1 p2 p3"))
    assert sorted(values(end)) == [f"p{each}" for each in range(broken, 4)]
    assert len(rungs(end)) == broken
    assert end["outcome"].status == "handed_over"
    assert calls == {f"make_p{each}": 1 for each in range(4)}


def test_what_is_handed_over_takes_no_finished_work_down_with_it() -> None:
    calls = Calls()
    refused = always(PermissionError("permission denied"))
    tools = [calls.tool("a"), calls.tool("b", "a"), calls.tool("x", "b", refused), calls.tool("y", "a")]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("x y"))
    assert end["outcome"].status == "handed_over"
    assert {each.name for each in end["outcome"].artifacts.values() if each.valid} == {"a", "b", "y"}
    assert statuses(end["plan"]) == {"a": "done", "b": "done", "x": "failed", "y": "done"}


class Oops(Exception):
    """Nobody knows this one."""


class Worse(BaseException):
    """Not even an `Exception`."""


@pytest.mark.parametrize(
    "thrown",
    [ValueError("v"), KeyError("k"), Oops("o"), Worse("w"), TimeoutError(), ConnectionError(), http(400), http(401)],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_whatever_a_tool_throws_is_classified_and_retried_by_nobody_else(thrown: Exception, mode: str) -> None:
    calls = Calls()

    async def throws() -> int:
        raise thrown

    body = always(thrown) if mode == "sync" else throws
    graph = build_graph([calls.tool("x", "", body)], settings=calm(retry=1, replan=0, escalation="finish"))
    end = await arun(graph, goal("x"))
    assert end["outcome"].status == "handed_over"
    retried = rungs(end).count("retry")
    assert calls["make_x"] == 1 + retried
    assert retried == (1 if rules(end)[0] in ("time-out", "type: transient") else 0)
    said = next(each for each in end["trace"] if each.event == "recovered").classified.failure.error
    assert said.message == facts_of(thrown).message


def test_a_value_that_reports_an_error_is_a_failure() -> None:
    answers = [{"error": "rate limit", "status": 429}, {"rows": 3}]
    calls = Calls()
    end = run(build_graph([calls.tool("x", "", lambda: answers.pop(0))], settings=calm()), goal("x"))
    assert (rungs(end), values(end)) == (["retry"], {"x": {"rows": 3}})


def test_a_claim_that_the_world_does_not_bear_out_is_a_failure() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", lambda: "done, all well", effect="mutating", observe=lambda: None)]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("x"))
    assert end["outcome"].status != "satisfied"
    assert "its probe sees nothing" in end["outcome"].reason
    assert values(end) == {}


def test_an_effect_that_is_not_as_promised_is_a_failure_although_the_tool_was_content() -> None:
    calls = Calls()
    tools = [calls.tool("x", "", lambda: [1], ensures="artifacts.x.size() == 2", effect="mutating")]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("x"))
    assert rules(end)[0] == "effect refuted"
    assert (calls["make_x"], values(end)) == (1, {})


# --- parallel steps -----------------------------------------------------------------------------------------------


def test_a_slow_independent_step_does_not_hold_up_the_chain() -> None:
    chain_done = threading.Event()

    def slow() -> int:
        assert chain_done.wait(20)
        return 1

    def last(b: int) -> int:
        chain_done.set()
        return b

    calls = Calls()
    tools = [calls.tool("slow", "", slow), calls.tool("a"), calls.tool("b", "a"), calls.tool("c", "b", last)]
    end = run(build_graph(tools, settings=calm()), goal("slow c"))
    assert end["outcome"].status == "satisfied"


async def test_a_slow_independent_step_does_not_hold_up_the_chain_of_coroutines() -> None:
    chain_done = asyncio.Event()

    async def slow() -> int:
        await asyncio.wait_for(chain_done.wait(), 20)
        return 1

    async def last(b: int) -> int:
        chain_done.set()
        return b

    calls = Calls()
    tools = [calls.tool("slow", "", slow), calls.tool("a"), calls.tool("b", "a"), calls.tool("c", "b", last)]
    end = await arun(build_graph(tools, settings=calm()), goal("slow c"))
    assert end["outcome"].status == "satisfied"


def test_all_ready_steps_run_at_once_and_all_that_they_made_is_kept() -> None:
    together = threading.Barrier(8, timeout=20)

    def meet() -> int:
        together.wait()
        return 1

    calls = Calls()
    tools = [calls.tool(f"p{each}", "", meet, effect="mutating") for each in range(8)]
    end = run(build_graph(tools, settings=calm()), goal(" ".join(f"p{each}" for each in range(8))))
    assert len(values(end)) == 8
    assert end["ledger"].tool_calls == 8


def test_no_more_steps_run_at_once_than_are_allowed() -> None:
    lock, running, most = threading.Lock(), [0], [0]

    def count() -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.01)
        with lock:
            running[0] -= 1
        return 1

    calls = Calls()
    tools = [calls.tool(f"p{each}", "", count) for each in range(6)]
    end = run(build_graph(tools, settings=calm(parallel=2)), goal(" ".join(f"p{each}" for each in range(6))))
    assert end["outcome"].status == "satisfied"
    assert most[0] <= 2


def test_a_step_that_finishes_on_inputs_that_changed_meanwhile_is_done_again_without_a_replan() -> None:
    """The config changes while a slow reader of the old one is still at work."""
    calls, content = Calls(), ["old"]
    old_is_read, changed = threading.Event(), threading.Event()

    def slow(source: str) -> str:
        if source == "old":
            old_is_read.set()
            assert changed.wait(20)
        return f"slow of {source}"

    def event(other: int) -> int:
        assert old_is_read.wait(20)
        content[0] = "new"
        return 1

    def last(source: str, event: int) -> str:
        changed.set()
        return f"last of {source}"

    tools = [
        calls.tool("source", "", lambda: content[0], observe=lambda: content[0]),
        calls.tool("other"),
        calls.tool("event", "other", event),
        calls.tool("slow", "source", slow),
        calls.tool("last", "source event", last),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    end = run(graph, goal("slow last"))
    assert end["outcome"] is not None, questions(end)
    assert values(end)["slow"] == "slow of new"
    assert values(end)["last"] == "last of new"
    assert "replan" not in rungs(end)
    assert set(statuses(end["plan"]).values()) == {"done"}
    assert graph.get_state(thread()).next == ()

"""LangSmith gets one complete tree for each call, small, without secrets, and never in the way of the run."""

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import utils

from agent import Goal, build_graph, contract
from agent.trace.langsmith import sending
from agent.trace.langsmith.sending import client_for
from tests.builders import Calls, always, arun, calm, goal, once, questions, run
from tests.trace.langsmith_server import Run, Standin

KEY = "lsv2_pt_0123456789abcdef"


def configured(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Trace to this address; langsmith reads its environment once."""
    given = {"TRACING": "true", "ENDPOINT": url, "API_KEY": KEY, "PROJECT": "tests"}
    for name, value in given.items():
        monkeypatch.setenv(f"LANGSMITH_{name}", value)
    monkeypatch.delenv("LANGCHAIN_TRACING_V2", raising=False)
    forget()


def forget() -> None:
    caches: list[Any] = [utils.get_env_var, utils.get_tracer_project]
    for each in caches:
        each.cache_clear()


def settle(url: str) -> None:
    """Let what is sent in the background come to its end."""
    for each in threading.enumerate():
        if each.name == "kintsugi-scores":
            each.join(60)
    client_for(url, KEY).close(timeout=60)


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    """A server of the test's own, which everything is traced to."""
    standin = Standin()
    configured(monkeypatch, standin.url)
    monkeypatch.setattr(sending, "PATIENCE", (60.0, 60.0))  # a test under load is slower than a server may be
    yield standin
    standin.answers.set()
    settle(standin.url)
    standin.close()
    monkeypatch.undo()
    forget()


def assert_whole(standin: Standin, roots: int) -> list[Run]:
    """Every span has ended, lies below one that there is, and belongs to the trace of its root; the roots."""
    standin.wait_for(lambda: standin.complete(roots))
    found = standin.roots()
    assert len(found) == roots
    for each in standin.runs.values():
        above = each
        while above.get("parent_run_id"):
            assert each["dotted_order"].startswith(above["dotted_order"])
            above = standin.runs[above["parent_run_id"]]
        assert each["trace_id"] == above["id"]
        assert each["end_time"] >= each["start_time"]
        assert each["session_name"] == "tests"
    return found


def broken(counted: Calls) -> list[Any]:
    """Two branches side by side; one is retried, one is written anew; one outlives the step that is done before it."""
    done = threading.Event()

    def report(**_: Any) -> str:
        done.set()
        return "fine"

    return [
        counted.tool("layout", "", lambda: {"tables": ["users"]}),
        counted.tool("rows", "layout", once(RuntimeError('no such column: "tables"'), [1])),
        counted.tool("other", "", once(ConnectionError("reset"))),
        counted.tool("report", "rows", report),
        counted.tool("slow", "", lambda: done.wait(60) and "late"),
    ]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_run_that_recovers_is_one_tree_in_which_every_attempt_is_a_span_of_its_own(
    langsmith: Standin, way: str
) -> None:
    graph, wanted = (
        build_graph(broken(Calls()), settings=calm(), checkpointer=InMemorySaver()),
        goal("report other slow"),
    )
    end = run(graph, wanted) if way == "sync" else asyncio.run(arun(graph, wanted))
    assert end["outcome"].status == "satisfied"
    (root,) = assert_whole(langsmith, 1)
    assert root["name"] == "kintsugi: report, other, slow"
    assert "outcome:satisfied" in root["tags"]
    assert root["extra"]["metadata"]["thread_id"] == "t"
    attempts = [each for each in langsmith.named("executor: ") if "(attempt" in each["name"]]
    assert len(attempts) == 8
    for each in attempts:
        assert each["parent_run_id"] == root["id"]
        (call,) = langsmith.below(each)
        assert call["run_type"] == "tool"
    again = [each for each in attempts if each["name"] == "executor: Make it (attempt 2)"]
    assert sorted(tag for each in again for tag in each["tags"] if tag.startswith(("rung:", "scope:"))) == [
        *["rung:retry", "rung:rewrite", "rung:rewrite"],
        *["scope:nothing", "scope:precondition", "scope:precondition"],
    ]
    assert sorted(each["error"] for each in attempts if each.get("error")) == ['no such column: "tables"', "reset"]
    names = {each["name"] for each in langsmith.below(root)}
    assert {"planner: plan 1 (initial)", "classifier: other: nothing -> retry", "finisher: satisfied"} <= names
    first = min(langsmith.named("executor"), key=lambda each: each["start_time"])
    (late,) = [each for each in attempts if langsmith.below(each)[0]["name"] == "make_slow"]
    assert late["start_time"] < first["end_time"] < late["end_time"]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_question_and_its_answer_are_two_trees_and_no_failure(langsmith: Standin, way: str) -> None:
    tools = [Calls().tool("x", effect="mutating"), Calls().tool("y")]
    graph = build_graph(tools, settings=calm(approve="mutating"), checkpointer=InMemorySaver())

    def call(given: Any) -> dict[str, Any]:
        return run(graph, given) if way == "sync" else asyncio.run(arun(graph, given))

    (asked,) = questions(call(goal("x y")))
    assert_whole(langsmith, 1)
    assert call(Command(resume={asked: "approve"}))["outcome"].status == "satisfied"
    roots = assert_whole(langsmith, 2)
    assert {each["name"] for each in roots} == {"kintsugi: x, y"}
    assert [each.get("error") for each in langsmith.runs.values() if each.get("error")] == []
    assert all(langsmith.named("escalator"))


async def test_what_is_in_flight_when_a_call_is_cancelled_has_ended_in_its_tree(langsmith: Standin) -> None:
    started = asyncio.Event()

    async def endless(**_: Any) -> int:
        started.set()
        await asyncio.Event().wait()
        return 1

    call = asyncio.create_task(arun(build_graph([Calls().tool("x", "", endless)], settings=calm()), goal("x")))
    await asyncio.wait_for(started.wait(), 60)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.to_thread(assert_whole, langsmith, 1)
    assert len([each for each in langsmith.runs.values() if "(attempt 1)" in each["name"]]) == 1


def test_a_large_artifact_adds_a_handle_and_not_its_body(langsmith: Standin) -> None:
    def traced(size: int, roots: int) -> int:
        before = langsmith.bytes
        graph = build_graph(
            [Calls().tool("big", "", lambda: "x" * size), Calls().tool("use", "big", lambda big: len(big))],
            settings=calm(),
            checkpointer=InMemorySaver(),
        )
        assert run(graph, goal("use big"), str(size))["outcome"].status == "satisfied"
        assert_whole(langsmith, roots)
        langsmith.wait_for(lambda: len(langsmith.feedback) == 6 * roots)
        return langsmith.bytes - before

    small, large = traced(10, 1), traced(20_000_000, 2)
    assert large - small < 10_000


def test_secrets_are_not_sent(langsmith: Standin) -> None:
    @contract(produces="x", args={"api_key": "{{key}}", "note": "{{note}}"}, effect="read_only")
    @tool
    def call_service(api_key: str, note: str) -> dict[str, str]:
        """Call the service."""
        return {"password": "hunter2hunter2", "said": "Authorization: Bearer abcdefghijklmnop", "note": note}

    failing = Calls().tool("y", "", always(ValueError("refused: token=s3cr3tvalue99")))
    given: dict[str, Any] = {"key": "plainsecretkey", "note": "x" * 480 + " sk-abcdefghijklmnopqrstu"}
    graph = build_graph([call_service, failing], settings=calm(escalation="finish"))
    run(graph, Goal(wants=("x", "y"), given=given))
    assert_whole(langsmith, 1)
    langsmith.wait_for(lambda: len(langsmith.feedback) == 6)
    for secret in ("hunter2", "abcdefghijkl", "s3cr3tvalue99", "plainsecretkey", "sk-abcd", KEY):
        assert secret not in langsmith.sent(), secret


def test_a_run_that_has_ended_is_scored(langsmith: Standin) -> None:
    run(build_graph(broken(Calls()), settings=calm()), goal("report other slow"))
    (root,) = assert_whole(langsmith, 1)
    langsmith.wait_for(lambda: len(langsmith.feedback) == 6)
    assert {each["run_id"] for each in langsmith.feedback} == {root["id"]}
    scores: dict[str, Any] = {each["key"]: each.get("score", each.get("value")) for each in langsmith.feedback}
    assert (scores["satisfied"], scores["outcome"], scores["repair_rate"]) == (1, "satisfied", 1)
    assert scores["duplicate_effects"] == 0
    assert 0 < scores["repair_depth"] < 1
    assert 0 <= scores["reused_artifacts"] <= 1


def test_a_server_that_answers_nothing_does_not_hold_a_run_up(langsmith: Standin) -> None:
    langsmith.answers.clear()
    end = run(build_graph(broken(Calls()), settings=calm()), goal("report other slow"))
    assert end["outcome"].status == "satisfied"
    assert langsmith.feedback == []


def test_a_server_that_fails_or_is_not_there_breaks_no_run_and_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        nobody = f"http://127.0.0.1:{listening.getsockname()[1]}"
    configured(monkeypatch, nobody)
    monkeypatch.setattr(sending, "REST", 3600.0)
    with caplog.at_level(logging.WARNING):
        for name in ("a", "b"):
            end = run(build_graph(broken(Calls()), settings=calm()), goal("report other slow"), name)
            assert end["outcome"].status == "satisfied"
        settle(nobody)
    assert [each.name for each in caplog.records] == ["kintsugi"]
    assert "goes on without it" in caplog.text
    monkeypatch.undo()
    forget()


def test_without_tracing_nothing_is_sent(langsmith: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    forget()
    run(build_graph([Calls().tool("x")], settings=calm()), goal("x"))
    client_for(langsmith.url, KEY).flush()
    assert langsmith.bodies == []

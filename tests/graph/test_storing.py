"""What lies in a checkpoint comes back equal, strictly read, and a value edited as a mapping behaves the same."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from agent import Limits, Settings, build_graph
from agent.core.phase import Phase
from agent.store.checkpoints import async_saver, open_saver
from agent.store.database import Place
from agent.store.packing import Packing
from tests.builders import Calls, always, arun, calm, goal, once, questions, run, statuses, thread, values
from tests.test_boundary import http

CHANNELS = ("goal", "world", "plan", "phase", "move", "order", "ledger", "outcome", "trace", "unresolved", "attempts")


def eventful(calls: Calls) -> list[Any]:
    """Tools whose run writes something into every channel."""
    return [
        calls.tool("a", "", lambda: {"text": "é\0", "list": [1, 2.5, None, True], "deep": {"k": {"k": []}}}),
        calls.tool("b", "a", once(http(503, {"Retry-After": "0"})), requires="facts.region == 'eu'"),
        calls.tool("c", "b", lambda b: "x" * 10_000, effect="mutating", ensures="artifacts.c.size() == 10000"),
        calls.tool("d", "c", always(RuntimeError("strange")), effect="mutating"),
    ]


STATED: dict[str, Any] = {"goal": goal("d", "artifacts.b == 1", given={"n": [1]}), "facts": {"region": "eu"}}


def same(stored: Any, written: Any) -> bool:
    """Equal and of the same class, item by item; a checkpoint holds any sequence as a list."""
    if isinstance(written, list | tuple):
        return len(stored) == len(written) and all(same(*pair) for pair in zip(stored, written, strict=True))
    # LangGraph's Postgres saver keeps what is also text as text: nothing may depend on the class of the phase
    return stored == written and (type(stored) is type(written) or type(written) is Phase)


def test_every_channel_comes_back_equal(place: Place) -> None:
    with closing((saver := open_saver(place)).conn):
        graph = build_graph(eventful(Calls()), settings=calm(), checkpointer=saver)
        end = run(graph, STATED)
        assert questions(end)
        stored = build_graph(eventful(Calls()), settings=calm(), checkpointer=saver).get_state(thread())
        for name in CHANNELS:
            assert same(stored.values[name], end[name]), name
        assert stored.values["world"].artifacts["c"].stored
        assert stored.values["unresolved"]


async def test_every_channel_comes_back_equal_from_the_asynchronous_saver(place: Place) -> None:
    async with async_saver(place) as saver:
        graph = build_graph(eventful(Calls()), settings=calm(), checkpointer=saver)
        end = await arun(graph, STATED)
        stored = await graph.aget_state(thread())
        for name in CHANNELS:
            assert same(stored.values[name], end[name]), name


def test_every_snapshot_of_a_run_can_be_read_back(place: Place) -> None:
    with closing((saver := open_saver(place)).conn):
        graph = build_graph(eventful(Calls()), settings=calm(), checkpointer=saver)
        run(graph, STATED)
        history = list(graph.get_state_history(thread()))
        assert len(history) > 15
        for snapshot in history:
            if "ledger" in snapshot.values:
                assert snapshot.values["ledger"].run == 1


def test_nothing_in_a_checkpoint_is_of_a_class_that_strict_reading_refuses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graph = build_graph(eventful(Calls()), settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))
    run(graph, STATED)
    list(graph.get_state_history(thread()))
    assert "unregistered" not in caplog.text.lower()
    assert "blocked" not in caplog.text.lower()


def test_values_survive_the_serializer_of_any_saver() -> None:
    end = run(build_graph(eventful(Calls()), settings=calm(escalation="finish")), STATED)
    serde = JsonPlusSerializer()
    for name in CHANNELS:
        plain = json.loads(json.dumps(_plain(end[name])))
        assert serde.loads_typed(serde.dumps_typed(plain)) == plain


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


@pytest.mark.parametrize("channel", ["goal", "world", "plan", "ledger"])
def test_a_value_edited_as_a_mapping_is_validated_and_behaves_the_same(channel: str) -> None:
    def finished(as_mapping: bool) -> tuple[Any, Calls]:
        calls = Calls()
        tools = [calls.tool("a"), calls.tool("b", "a"), calls.tool("c", "b")]
        graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
        graph.invoke({"goal": goal("c")}, thread(), interrupt_after=["verifier"])
        value = graph.get_state(thread()).values[channel]
        edit = value.model_dump(mode="json") if as_mapping else value
        graph.update_state(thread(), {channel: edit, "phase": "dispatcher"}, as_node="verifier")
        return run(graph, None), calls

    typed, one = finished(as_mapping=False)
    plain, other = finished(as_mapping=True)
    assert typed["outcome"].model_dump() == plain["outcome"].model_dump()
    assert one == other == {"make_a": 1, "make_b": 1, "make_c": 1}
    assert type(plain[channel]) is type(typed[channel])


@pytest.mark.parametrize(
    ("channel", "edit", "why"),
    [
        ("plan", {"steps": [{"id": "x"}]}, "plan.steps.0.intent: it has to be given"),
        ("world", {"artifacts": {"a": {"name": "a"}}}, "world.artifacts.a.digest: it has to be given"),
        ("goal", {"criteria": ["artifacts.a =="]}, "goal.criteria.0.predicate: predicate does not compile at position"),
        ("goal", {"wantz": ["a"]}, "goal.wantz: there is no such field; there are: text, wants, criteria"),
        ("ledger", {"tokens": "many"}, "ledger.tokens: input should be a valid integer"),
        ("plan", {"stepz": []}, "plan.stepz: there is no such field; there are: revision"),
        ("facts", 3, "facts: input should be a valid dictionary, not 3"),
        ("phase", "nowhere", "phase: input should be 'intake', 'planner'"),
        ("outcome", {"status": "good"}, "outcome.status: input should be 'satisfied'"),
        ("attempts", 3, "attempts: input should be a valid tuple, not 3"),
        ("move", {"move": "dance"}, "move: input tag 'dance'"),
        ("granted", {"moneyy": 3}, "there is no limit 'moneyy'"),
        ("trace", [{"event": "noise"}], "trace.0: input tag 'noise'"),
        ("messages", [{"text": "hello"}], "messages: Message dict must contain 'role' and 'content'"),
        ("gaol", {"wants": ["a"]}, "the state has no 'gaol'; it has: goal, "),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused_in_a_sentence_and_loses_nothing(
    channel: str, edit: Any, why: str
) -> None:
    graph = build_graph([Calls().tool("a")], settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a"))
    before = graph.get_state(thread())
    for node in (None, "finisher"):
        with pytest.raises(ValueError, match=re.escape(why)) as refused:
            graph.update_state(thread(), {channel: edit}, as_node=node)
        assert "\n" not in str(refused.value)
    assert graph.get_state(thread()) == before


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"gaol": {"wants": ["a"]}}, "the input has no 'gaol'; it has: goal, facts, messages"),
        ({"plan": {}}, "the input has no 'plan'"),
        ({"goal": 3}, "goal: input should be a valid dictionary"),
        ({"goal": {"wantz": []}}, "goal.wantz: there is no such field"),
        ({"facts": []}, "facts: input should be a valid dictionary"),
        (Command(update={"gaol": 1}), "the state has no 'gaol'"),
    ],
)
async def test_an_input_that_makes_no_sense_is_refused_in_a_sentence_and_loses_nothing(given: Any, why: str) -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a")], settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("a"))
    before = graph.get_state(thread())
    with pytest.raises(ValueError, match=re.escape(why)):
        graph.invoke(given, thread())
    with pytest.raises(ValueError, match=re.escape(why)):
        await graph.ainvoke(given, thread())
    assert graph.get_state(thread()) == before
    assert calls == {"make_a": 1}


def test_what_is_left_empty_in_a_form_says_nothing() -> None:
    graph = build_graph([Calls().tool("a")], settings=calm(), checkpointer=InMemorySaver())
    given: Any = {"goal": {"wants": ["a"]}, "facts": None, "messages": None}
    assert graph.invoke(given, thread())["outcome"].status == "satisfied"
    graph.update_state(thread(), {"facts": {"season": "winter"}, "goal": None})
    end = run(graph, None)
    assert (end["outcome"].status, end["goal"].revision) == ("satisfied", 1)
    assert end["world"].facts["season"].value == "winter"


@pytest.mark.parametrize("channel", ["world", "plan"])
def test_a_world_or_plan_edited_after_the_end_is_taken_in_when_the_run_goes_on(channel: str) -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b", "a")], settings=calm(), checkpointer=InMemorySaver())
    edited = run(graph, goal("b"))[channel].model_dump(mode="json")
    if channel == "world":
        edited["artifacts"]["a"]["mark"] = {"cause": "I do not believe it", "root": True}
    graph.update_state(thread(), {channel: edited if channel == "world" else {}})
    assert graph.get_state(thread()).next == ("intake",)
    end = run(graph, None)
    assert (end["outcome"].status, end["ledger"].run) == ("satisfied", 2)
    assert calls == {"make_a": 2 if channel == "world" else 1, "make_b": 1}


def test_a_person_can_mark_an_artifact_and_have_it_made_again() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("a"), calls.tool("b", "a")], settings=calm(), checkpointer=InMemorySaver())
    end = run(graph, goal("b"))
    edited = end["world"].model_dump(mode="json")
    edited["artifacts"]["a"]["mark"] = {"cause": "I do not believe it", "root": True}
    graph.update_state(thread(), {"world": edited}, as_node="finisher")
    again = run(graph, goal("b"))
    assert again["outcome"] is not None
    assert again["outcome"].status == "satisfied"
    assert calls == {"make_a": 2, "make_b": 1}


def test_a_larger_budget_can_be_granted_by_editing_the_ledger() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a")]
    graph = build_graph(tools, settings=calm(steps=1), checkpointer=InMemorySaver())
    assert run(graph, goal("b"))["outcome"].status == "out_of_budget"
    assert run(graph, goal("b"))["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_b": 1}


def test_a_fork_from_an_earlier_state_repeats_no_write() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a", effect="mutating"), calls.tool("c", "b")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("c"))
    history = list(graph.get_state_history(thread()))
    early = next(each for each in reversed(history) if each.next == ("planner",))
    forked: Any = graph.invoke(None, early.config)
    assert forked["outcome"].status == "satisfied"
    assert calls["make_b"] == 1
    assert statuses(forked["plan"]) == {"a": "done", "b": "done", "c": "done"}


def test_a_large_artifact_is_stored_once_and_state_carries_its_handle(tmp_path: Path) -> None:
    body = "x" * 200_000
    calls = Calls()
    tools = [calls.tool("big", "", lambda: body)]
    tools += [calls.tool(f"r{each}", "big", lambda big: len(big)) for each in range(10)]
    graph = build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))
    end = run(graph, goal(" ".join(f"r{each}" for each in range(10))))
    assert set(values(end).values()) == {200_000, None}
    assert end["world"].artifacts["big"].value is None
    stored = sum(each.stat().st_size for each in tmp_path.iterdir())
    assert stored < 5 * len(body)


def test_artifacts_may_lie_in_a_langgraph_store() -> None:
    store = InMemoryStore()
    calls = Calls()
    tools = [calls.tool("big", "", lambda: "x" * 9000), calls.tool("n", "big", lambda big: len(big))]
    graph = build_graph(tools, settings=calm(), store=store)
    assert values(run(graph, goal("n")))["n"] == 9000
    assert len(store.search(("kintsugi", "artifacts"))) == 1


def test_a_secret_in_an_error_is_in_no_checkpoint(tmp_path: Path) -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(RuntimeError("token=hunter2secret was refused")))]
    graph = build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))
    run(graph, goal("x"))
    with closing(sqlite3.connect(tmp_path / "k.db")) as opened:
        rows = opened.execute("SELECT type, value FROM writes UNION ALL SELECT type, checkpoint FROM checkpoints")
        unpacked = repr([Packing().loads_typed(each) for each in rows])
    raw = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert "was refused" in unpacked
    assert "hunter2secret" not in unpacked
    assert b"hunter2secret" not in raw


def test_settings_beat_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINTSUGI_LIMITS__RETRY", "7")
    assert Settings().limits.retry == 7
    assert Settings(limits=Limits(retry=1)).limits.retry == 1

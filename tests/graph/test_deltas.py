"""Checkpoints of changes and checkpoints of wholes: one state, and a thread may be opened either way at any moment."""

from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.nodes.channels import Added
from agent.store.checkpoints import async_saver, open_saver
from agent.store.database import Place
from graphs.loop import LoopGraph
from tests.builders import Calls, arun, calm, goal, once, questions, run, thread, values

WAYS = {"written as changes": (True, False), "written as wholes": (False, True)}


def tools(calls: Calls) -> list[Any]:
    return [
        calls.tool("b", "", lambda: "x" * 9000, effect="mutating"),
        calls.tool("c", "b", once(RuntimeError("strange")), effect="mutating"),
        calls.tool("d", "c"),
    ]


def graph_over(saver: Any, calls: Calls, deltas: bool) -> LoopGraph:
    return build_graph(tools(calls), settings=calm(deltas=deltas), checkpointer=saver)


@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
def test_a_thread_opened_the_other_way_has_its_state_its_past_and_its_effects(
    place: Place, ways: tuple[bool, bool]
) -> None:
    calls = Calls()
    with closing((saver := open_saver(place)).conn):
        first, second = (graph_over(saver, calls, deltas) for deltas in ways)
        assert questions(run(first, goal("d")))
        before = first.get_state(thread())
        assert second.get_state(thread()).values == before.values
        past = [each.values for each in first.get_state_history(thread(), limit=6)]
        assert [each.values for each in second.get_state_history(thread(), limit=6)] == past
        # an answer and an edit the other way, another goal in the first, which reads what the other has written
        end = second.invoke(Command(resume={"choice": "answer", "value": 7}), thread())
        assert (end["outcome"].status, values(end)["c"]) == ("satisfied", 7)
        second.update_state(thread(), {"ledger": {**end["ledger"].model_dump(), "tokens": 5}})
        assert first.get_state(thread()).values == second.get_state(thread()).values
        assert first.get_state(thread()).values["ledger"].tokens == 5
        assert run(first, goal("d b"))["outcome"].status == "satisfied"
        forked: Any = second.invoke(None, before.parent_config)
        assert questions(forked)
    assert calls == {"make_b": 1, "make_c": 1, "make_d": 1}


async def test_so_it_is_through_ainvoke(place: Place) -> None:
    calls = Calls()
    async with async_saver(place) as saver:
        first, second = (graph_over(saver, calls, deltas) for deltas in (True, False))
        assert questions(await arun(first, goal("d")))
        assert (await second.aget_state(thread())).values == (await first.aget_state(thread())).values
        end = await second.ainvoke(Command(resume={"choice": "answer", "value": 7}), thread())
        assert end["outcome"].status == "satisfied"
        assert (await first.aget_state(thread())).values == (await second.aget_state(thread())).values
    assert calls["make_b"] == 1


def test_without_deltas_every_checkpoint_stands_alone() -> None:
    saver = InMemorySaver()
    graph = graph_over(saver, Calls(), deltas=False)
    run(graph, goal("b"))
    assert not [name for name, each in graph.channels.items() if isinstance(each, Added)]
    last = next(saver.list(thread())).checkpoint["channel_values"]
    assert {"goal", "world", "plan", "ledger", "trace"} <= last.keys()


def test_studio_sees_the_same_forms_either_way() -> None:
    deltas, wholes = (build_graph([], settings=calm(deltas=each)) for each in (True, False))
    assert deltas.get_input_jsonschema() == wholes.get_input_jsonschema()
    assert deltas.get_output_jsonschema() == wholes.get_output_jsonschema()

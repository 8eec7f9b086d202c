"""What Studio draws and asks for: forms that are small and described, and the edges and subgraphs there are."""

import json
from typing import Any

import pytest

from agent.core.phase import LEGAL, START, Phase
from agent.scenarios import SCENARIOS
from tests.studio.driving import Desk

GRAPHS = ("kintsugi", *SCENARIOS)


async def _assistant(desk: Desk, graph: str) -> str:
    (found,) = await desk.client.assistants.search(graph_id=graph)
    return str(found["assistant_id"])


async def test_the_runtime_and_every_scenario_are_there_and_described(desk: Desk) -> None:
    found = await desk.client.assistants.search(limit=50)
    described = {each["graph_id"]: str(each["description"]) for each in found if each["graph_id"] != "talking"}
    assert set(described) == set(GRAPHS)
    assert {name: described[name].rstrip(".") for name in SCENARIOS} == {
        name: each.description.rstrip(".") for name, each in SCENARIOS.items()
    }


@pytest.mark.parametrize("graph", ["kintsugi", "backfill"])
async def test_what_a_caller_fills_in_is_small_and_every_field_is_described(desk: Desk, graph: str) -> None:
    schemas: Any = await desk.client.assistants.get_schemas(await _assistant(desk, graph))
    form = schemas["input_schema"]
    assert set(form["properties"]) == {"goal", "facts", "messages"}
    assert not form.get("required")
    fields = {**form["properties"], **_properties(form, "Goal"), **_properties(form, "Criterion")}
    assert [name for name, each in fields.items() if not each.get("description")] == []
    ours = {name: each for name, each in form["$defs"].items() if name in ("Goal", "Criterion")}
    assert len(json.dumps([form["properties"], ours])) < 6000
    assert {"goal", "world", "plan", "outcome"} <= set(schemas["state_schema"]["properties"])
    assert {"goal", "world", "plan", "outcome"} <= set(schemas["output_schema"]["properties"])


async def test_the_context_offers_model_limits_and_approval_and_describes_them(desk: Desk) -> None:
    schemas: Any = await desk.client.assistants.get_schemas(await _assistant(desk, "kintsugi"))
    form = schemas["context_schema"]
    assert set(form["properties"]) == {"model", "limits", "approve", "approve_tools", "escalation", "strategy"}
    assert not form.get("required")
    assert all(each.get("description") for each in form["properties"].values())


async def test_the_context_is_honoured_and_a_wrong_one_is_refused_in_a_sentence(desk: Desk) -> None:
    final = await desk.run("total", context={"limits": {"steps": 1}})
    assert (final["outcome"]["status"], final["outcome"]["limit"]) == ("out_of_budget", "steps")
    await desk.run("receipt", context={"approve": "mutating"})
    (question,) = (await desk.asked()).values()
    assert question["question"].endswith("is about to call pay. May it?")
    assert desk.server.effects("paid", desk.purse) == 0
    answer = {"resume": {question["id"]: {"choice": "approve"}}}
    assert (await desk.run(command=answer, context={"approve": "mutating"}))["outcome"]["status"] == "satisfied"
    assert desk.server.effects("paid", desk.purse) == 1
    for context, why in (
        ({"limits": {"money": -1}}, "context.limits.money: input should be greater than 0, not -1"),
        ({"approve": "always"}, "context.approve: input should be 'never', 'non_idempotent' or 'mutating'"),
        ({"model": "acme:best", "limits": {}}, None),
    ):
        said = await desk.refused(input=desk.goal("total"), context=context) if why else ""
        assert said.startswith(why or "")


async def test_the_server_draws_exactly_the_edges_of_the_phase_table(desk: Desk) -> None:
    ends = {Phase.END: "__end__"}
    legal = {(source.value, ends.get(to, to.value)) for source, targets in LEGAL.items() for to in targets}
    for graph in GRAPHS:
        drawn = await desk.client.assistants.get_graph(await _assistant(desk, graph), xray=True)
        edges = {(each["source"], each["target"]) for each in drawn["edges"]}
        assert edges == {("__start__", START.value), *legal}


async def test_with_a_model_the_inner_loop_is_drawn_inside_the_executor(desk: Desk) -> None:
    drawn = await desk.client.assistants.get_graph(await _assistant(desk, "talking"), xray=True)
    assert {"executor:model", "executor:tools"} <= {str(each["id"]) for each in drawn["nodes"]}
    edges = {(each["source"], each["target"]) for each in drawn["edges"]}
    assert {("executor:model", "executor:tools"), ("executor:tools", "executor:model")} <= edges
    plain = await desk.client.assistants.get_graph(await _assistant(desk, "talking"))
    assert {str(each["id"]) for each in plain["nodes"]} == {"__start__", "__end__", *(p.value for p in LEGAL)}


def _properties(schema: Any, name: str) -> dict[str, Any]:
    return {f"{name}.{field}": each for field, each in schema["$defs"][name]["properties"].items()}

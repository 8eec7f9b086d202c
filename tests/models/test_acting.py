"""How turns are taken: by native calls or by actions under a schema, whichever the server does well."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from agent.app import build_graph
from agent.core.goal import Goal
from agent.core.plan import Step, StepId
from agent.core.value import JsonValue
from agent.models.acting import Way
from agent.models.local.weights import QWEN
from agent.ports import Result, Task
from agent.settings import Settings
from graphs.react import build_react
from tests.models.builders import REGISTRY, search
from tests.models.openai_server import Body, completion, openai_server, refused, tool_call
from tests.models.test_malformed import client

SEARCH = {"tool": "search", "args": {"query": "q"}}
SUBMIT = {"tool": "submit", "args": {"found": "it"}}


def asked(body: Body) -> str:
    """In which way a request asks for a call."""
    if "response_format" in body:
        return "schema"
    if "tools" in body:
        return "form" if body["tools"][0]["function"]["name"] == "action" else "native"
    return "text"


class Serves(NamedTuple):
    """A server: what it makes of each way to ask, and in which ways it is asked for two steps of two calls each."""

    able: Callable[[str, dict[str, Any]], tuple[int, Any]]
    ways: str
    tokens: int = 400
    """What both steps cost: 100 for each reply."""
    way: Way | None = None


def text(call: dict[str, Any]) -> tuple[int, Any]:
    return completion({"content": json.dumps({"action": call})})


def natively(call: dict[str, Any]) -> tuple[int, Any]:
    return completion(tool_call(call["tool"], json.dumps(call["args"])))


PROSE = completion({"content": "Certainly! I will look."})
BROKEN = completion(tool_call("search", '{"query": '))
NO = refused(400, "unknown field")


def does(**ways: Any) -> Callable[[str, dict[str, Any]], tuple[int, Any]]:
    """A server that answers in these ways, and as told under `else` in all others."""

    def able(way: str, call: dict[str, Any]) -> tuple[int, Any]:
        reply = ways.get(way, ways["other"])
        return reply(call) if callable(reply) else reply

    return able


def form(call: dict[str, Any]) -> tuple[int, Any]:
    return completion(tool_call("action", json.dumps({"action": call})))


SERVERS = {
    "it does all": Serves(does(native=natively, other=PROSE), "native native native native"),
    "native calls never come": Serves(
        does(native=PROSE, schema=text, other=NO), "native native schema schema schema schema", 600
    ),
    "native calls are malformed": Serves(
        does(native=BROKEN, schema=text, other=NO), "native native schema schema schema schema", 600
    ),
    "it refuses tools": Serves(does(schema=text, other=NO), "native schema schema schema schema"),
    "it refuses tools and response_format": Serves(does(text=text, other=NO), "native schema form text text text text"),
    "it refuses response_format": Serves(
        does(schema=NO, form=form, other=PROSE), "schema form form form form", way=Way.SCHEMA
    ),
    "it ignores response_format and tools": Serves(
        does(text=text, other=PROSE), "schema form text text text text", 600, Way.SCHEMA
    ),
    "it writes calls its own way": Serves(
        does(schema=lambda call: completion({"content": f"<think>hm</think>{json.dumps(call)}"}), other=NO),
        "schema schema schema schema",
        way=Way.SCHEMA,
    ),
}


async def carried_out(url: str, way: Way | None) -> Result:
    """One step with a client of its own."""

    async def call(name: str, args: dict[str, JsonValue]) -> JsonValue:
        return f"{name} {args['query']}"

    step = Step(id=StepId("s"), intent="i", instruction="look", tools=("search",), produces=("found",))
    task = Task(thread="t", step=step, args={}, inputs={}, facts={})
    return await build_react(client(url, False), REGISTRY, way=way).run(task, call)


@pytest.mark.parametrize("name", SERVERS)
async def test_turns_are_taken_as_the_server_does_them_well_and_that_is_remembered_for_it(name: str) -> None:
    serves = SERVERS[name]

    def answering(body: Body) -> tuple[int, Any]:
        looked = "search q" in json.dumps(body["messages"])
        return serves.able(asked(body), SUBMIT if looked else SEARCH)

    with openai_server(answering) as server:
        both = [await carried_out(server.url, serves.way) for _ in range(2)]
    assert [(each.value, each.error, each.tool_calls) for each in both] == [("it", None, 1)] * 2
    assert " ".join(asked(each) for each in server.requests) == serves.ways
    assert sum(each.usage.tokens for each in both) == serves.tokens
    assert sum(each.usage.calls for each in both) == len(server.requests)


async def test_an_action_has_a_branch_for_each_tool_with_its_own_arguments_and_two_to_end() -> None:
    with openai_server(lambda body: text(SUBMIT)) as server:
        await carried_out(server.url, Way.SCHEMA)
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    branches = schema["properties"]["action"]["anyOf"]
    assert [each["properties"]["tool"]["enum"] for each in branches] == [["search"], ["submit"], ["give_up"]]
    assert [each["properties"]["args"]["required"] for each in branches] == [
        ["query"],
        ["found"],
        ["reason", "scope"],
    ]
    assert "Search the web" in server.requests[0]["messages"][0]["content"], "not every server shows a schema"


@pytest.mark.parametrize("way", Way)
async def test_a_malformed_action_is_invalid_output_after_two_re_asks_and_charged(way: Way) -> None:
    with openai_server(lambda body: completion(tool_call("action", '{"action": {"tool'))) as server:
        result = await carried_out(server.url, way)
    assert result.error is not None
    assert result.error.type == "InvalidOutput"
    assert (len(server.requests), result.usage.calls, result.usage.tokens) == (3, 3, 300)
    assert ("native" in {asked(each) for each in server.requests}) is (way is Way.NATIVE), "no other way than demanded"


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({"model": QWEN.name}, "schema"),
        ({}, "native"),
        ({"actions": "schema"}, "schema"),
        ({"model": QWEN.name, "actions": "native"}, "native"),
    ],
    ids=["the local model", "another", "demanded", "demanded of the local model"],
)
async def test_the_local_model_begins_with_actions_the_others_with_native_calls(
    settings: dict[str, Any], first: str
) -> None:
    answer = {"tool": "submit", "args": {"answer": "it"}}
    with openai_server(lambda body: does(native=natively, other=text)(asked(body), answer)) as server:
        chosen = Settings(**{"model": "m", "base_url": server.url, "strategy": "single", **settings})
        state = await build_graph([search], settings=chosen).ainvoke({"goal": Goal(text="Find out")})
    assert state["outcome"].status == "satisfied"
    assert [asked(each) for each in server.requests] == [first]

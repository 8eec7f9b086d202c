"""Every malformed reply that servers are known for, to every role: read, or refused by type; asked at most thrice."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agent.core.failure import ErrorFacts, Scope
from agent.core.plan import Step, StepId
from agent.core.spending import Usage
from agent.core.value import JsonValue
from agent.models.chat import CompatibleChat
from agent.models.model_planner import ModelPlanner
from agent.models.patcher import ModelPatcher
from agent.models.scope import ModelScope
from agent.ports import PatchView, PlanningFailed, Task
from graphs.react import build_react
from tests.models.builders import REGISTRY, drafted, request, searching
from tests.models.openai_server import Answering, Body, Raw, completion, openai_server, refused, streamed, tool_call


class Came(NamedTuple):
    """What a role made of what it was sent."""

    right: bool
    """It is what the good reply says."""
    failed: str
    """The typed failure, if it is one."""
    usage: Usage


async def _plan(model: BaseChatModel) -> Came:
    try:
        draft = await ModelPlanner(model, REGISTRY).draw(request("Find out"))
    except PlanningFailed as error:
        return Came(False, str(error), error.usage)
    return Came(draft.wants == ("found",), "", draft.usage)


async def _patch(model: BaseChatModel) -> Came:
    schema = REGISTRY.schema("search")
    view = PatchView(intent="i", tool="search", args={"query": "a"}, template={}, error=ERROR, tool_schema=schema)
    proposed = await ModelPatcher(model).propose(view)
    if proposed.call is None:
        return Came(False, "no patch", proposed.usage)
    return Came(proposed.call.args == {"query": "b"}, "", proposed.usage)


async def _classify(model: BaseChatModel) -> Came:
    answer = await ModelScope(model).scope("i", "search", ERROR)
    return Came(answer.scope is Scope.GOAL, "" if answer.scope else "no scope", answer.usage)


async def _carry_out(model: BaseChatModel) -> Came:
    async def call(name: str, args: dict[str, JsonValue]) -> JsonValue:
        raise AssertionError(f"no tool was asked for, and {name}({args}) was called")

    step = Step(id=StepId("s"), intent="i", instruction="look", tools=("search",), produces=("found",))
    result = await build_react(model, REGISTRY).run(Task(thread="t", step=step, args={}, inputs={}, facts={}), call)
    failed = f"{result.error.kind} {result.error.type}: {result.error.message}" if result.error else ""
    return Came(result.value == "it" and not failed, failed, result.usage)


ERROR = ErrorFacts(kind="value", message="something odd")
GOOD: dict[str, tuple[Callable[[BaseChatModel], Awaitable[Came]], dict[str, Any]]] = {
    "planner": (_plan, json.loads(drafted(searching(), wants=["found"]))),
    "repairer": (_patch, {"reason": "r", "args": {"query": "b"}}),
    "classifier": (_classify, {"reason": "r", "scope": "goal"}),
    "executor": (_carry_out, {"found": "it"}),
}
ASKED = [each for each in GOOD if each != "executor"]
"""Roles that fill a schema; the executor calls tools."""


class Case(NamedTuple):
    """A server that answers with the good object, in its own way."""

    reply: Callable[[dict[str, Any]], tuple[int, Any]]
    read: bool
    """It can be read; else it has to end as a typed failure."""


def text(spelled: Callable[[str], Body], **more: Any) -> Callable[[dict[str, Any]], tuple[int, Any]]:
    return lambda good: completion(spelled(json.dumps(good)), **more)


FILLED = {
    "plain JSON": Case(text(lambda said: {"content": said}), True),
    "fenced": Case(text(lambda said: {"content": f"Here:\n```json\n{said}\n```\nGood luck!"}), True),
    "think tags": Case(text(lambda said: {"content": f'<think>maybe {{"x": 1}}</think>{said}'}), True),
    "an unclosed think tag": Case(text(lambda said: {"content": f"<think>hm {said}"}), True),
    "reasoning only, content null": Case(text(lambda said: {"reasoning_content": said}), True),
    "reasoning only, content empty": Case(text(lambda said: {"content": "", "reasoning": said}), True),
    "no usage": Case(text(lambda said: {"content": said}, usage=False), True),
    "JSON encoded twice": Case(text(lambda said: {"content": json.dumps(said)}), True),
    "a tool call": Case(lambda good: completion(tool_call("answer", json.dumps(good))), True),
    "a tool call with arguments as an object": Case(lambda good: completion(tool_call("answer", good)), True),
    "a tool call with arguments encoded twice": Case(
        lambda good: completion(tool_call("answer", json.dumps(json.dumps(good)))), True
    ),
    "a tool call without an id": Case(lambda good: completion(tool_call("x", json.dumps(good), None)), True),
    "a tool call of an unknown name": Case(lambda good: completion(tool_call("zzz", json.dumps(good))), True),
    "several calls under one id": Case(
        lambda good: completion(
            {"tool_calls": [*tool_call("a", '{"x": 1}')["tool_calls"], *tool_call("b", json.dumps(good))["tool_calls"]]}
        ),
        True,
    ),
    "streamed": Case(lambda good: streamed({"content": json.dumps(good)}), True),
    "arguments streamed": Case(lambda good: streamed(tool_call("answer", json.dumps(good))), True),
    "prose": Case(lambda good: completion({"content": "Certainly! I will."}), False),
    "content null and nothing else": Case(lambda good: completion({}), False),
    "truncated": Case(text(lambda said: {"content": said[:-4]}), False),
    "truncated at the token limit": Case(text(lambda said: {"content": said[:-4]}, finish="length"), False),
    "truncated within a thought": Case(text(lambda said: {"content": f"<think>{said} but"}, finish="length"), False),
    "truncated arguments": Case(lambda good: completion(tool_call("a", json.dumps(good)[:-4])), False),
    "truncated arguments, streamed": Case(lambda good: streamed(tool_call("a", json.dumps(good)[:-4])), False),
    "truncated arguments at the token limit, streamed": Case(
        lambda good: streamed(tool_call("a", json.dumps(good)[:-1]), finish="length"), False
    ),
    "no choices": Case(lambda good: (200, {"id": "1", "object": "chat.completion", "choices": []}), False),
    "choices null": Case(lambda good: (200, {"id": "1", "object": "chat.completion", "choices": None}), False),
    "an HTML page with status 200": Case(lambda good: (200, Raw("<html>Bad gateway</html>")), False),
    "an empty body": Case(lambda good: (200, Raw("", "application/json")), False),
    "a connection closed in the middle": Case(
        lambda good: (200, Raw('{"id": "1", "choi', "application/json", missing=50)), False
    ),
    "a stream that breaks off": Case(lambda good: streamed({"content": json.dumps(good)}, finish=None), False),
    "arguments in a stream that breaks off": Case(
        lambda good: streamed(tool_call("a", json.dumps(good)), finish=None), False
    ),
}
"""What any role may be sent; the object that the role wants is somewhere in it."""


SUBMITTED = tool_call("submit", '{"found": "it"}')
ACTED = {
    "a call": Case(lambda good: completion(SUBMITTED), True),
    "a call, streamed": Case(lambda good: streamed(SUBMITTED), True),
    "arguments as an object": Case(lambda good: completion(tool_call("submit", good)), True),
    "arguments encoded twice": Case(lambda good: completion(tool_call("submit", json.dumps(json.dumps(good)))), True),
    "no id": Case(lambda good: completion(tool_call("submit", json.dumps(good), None)), True),
    "no usage": Case(lambda good: completion(SUBMITTED, usage=False), True),
    "thoughts beside the call": Case(lambda good: completion({**SUBMITTED, "reasoning_content": "hm"}), True),
    "a call written as text": Case(
        lambda good: completion({"content": "```json\n" + json.dumps({"name": "submit", "arguments": good}) + "\n```"}),
        True,
    ),
    "a call written as text behind an open thought's end": Case(
        lambda good: completion({"content": f"hm</think>{json.dumps({'name': 'submit', 'parameters': good})}"}), True
    ),
    "prose": Case(lambda good: completion({"content": "It is done: found it."}), False),
    "reasoning only": Case(lambda good: completion({"reasoning_content": "I should submit."}), False),
    "truncated arguments": Case(lambda good: completion(tool_call("submit", '{"found": "i')), False),
    "truncated arguments, streamed": Case(lambda good: streamed(tool_call("submit", '{"found": "i')), False),
    "truncated arguments at the token limit, streamed": Case(
        lambda good: streamed(tool_call("submit", '{"found": "i'), finish="length"), False
    ),
    "truncated at the token limit": Case(lambda good: completion({"content": "First I"}, finish="length"), False),
    "no choices": FILLED["no choices"],
    "an HTML page with status 200": FILLED["an HTML page with status 200"],
    "a connection closed in the middle": FILLED["a connection closed in the middle"],
    "a stream that breaks off": Case(lambda good: streamed(SUBMITTED, finish=None), False),
}
"""What the inner loop may be sent; the good answer is a call of `submit`."""
ENDS_AT_ONCE = ("a connection closed in the middle", "a stream that breaks off")
"""A connection that is lost is the ladder's to mend."""


def clear() -> dict[str, Any]:
    """Connections without certificates, which take longer to load than a test to run, and none that outlives it."""
    alone: dict[str, Any] = {"verify": False, "limits": httpx.Limits(max_keepalive_connections=0)}
    return {"http_client": httpx.Client(**alone), "http_async_client": httpx.AsyncClient(**alone)}


def client(url: str, streaming: bool) -> BaseChatModel:
    return CompatibleChat(
        model_name="m",
        openai_api_base=url,
        openai_api_key=SecretStr("k"),
        streaming=streaming,
        max_retries=0,
        **clear(),
    )


async def served(role: str, answering: Answering, streaming: bool = False) -> tuple[Came, list[Body]]:
    with openai_server(answering) as server:
        return await GOOD[role][0](client(server.url, streaming)), server.requests


@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("role", ASKED)
async def test_a_malformed_answer_is_read_or_refused_by_type_after_two_re_asks(role: str, name: str) -> None:
    case, good = FILLED[name], GOOD[role][1]
    came, requests = await served(role, lambda body: case.reply(good), streaming="stream" in name)
    assert came.right is case.read, came
    assert bool(came.failed) is not case.read, "a typed failure, or the good answer, and nothing else"
    assert len(requests) == came.usage.calls == (1 if case.read else 3)
    assert came.usage.tokens > 0


@pytest.mark.parametrize("name", ACTED)
async def test_a_malformed_turn_is_read_or_ends_as_a_typed_failure_and_never_as_the_answer(name: str) -> None:
    case = ACTED[name]
    came, requests = await served("executor", lambda body: case.reply({"found": "it"}), streaming="stream" in name)
    assert came.right is case.read, came
    assert bool(came.failed) is not case.read
    assert len(requests) == came.usage.calls == (1 if case.read or name in ENDS_AT_ONCE else 3)
    assert came.usage.tokens > 0


async def test_a_model_that_mends_its_broken_turn_goes_on() -> None:
    replies = iter([completion(tool_call("submit", '{"fou')), (200, Raw("<html>")), completion(SUBMITTED)])
    came, requests = await served("executor", lambda body: next(replies))
    assert came.right
    assert "could not be read" in json.dumps(requests[2]["messages"])


async def test_several_calls_where_one_is_allowed_and_unknown_tools_are_answered_under_ids_of_their_own() -> None:
    both = {"tool_calls": [*tool_call("zzz", "{}")["tool_calls"], *SUBMITTED["tool_calls"]]}
    replies = iter([completion(both), completion(SUBMITTED)])
    came, requests = await served("executor", lambda body: next(replies))
    assert came.right
    answers = [each for each in requests[1]["messages"] if each["role"] == "tool"]
    assert len({each["tool_call_id"] for each in answers}) == 2
    assert "there is no tool 'zzz'" in answers[0]["content"]
    assert "submit alone" in answers[1]["content"]


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("role", GOOD)
async def test_no_client_retries_by_itself(role: str, status: int) -> None:
    came, requests = await served(role, lambda body: refused(status, "try again"))
    assert came.failed
    assert len(requests) == came.usage.calls == (1 if role == "executor" else 3), "asked again by us alone, and counted"
    assert came.usage.tokens == 0, "what was refused is not charged"


async def test_an_error_that_is_sent_as_an_answer_is_an_error() -> None:
    came, requests = await served("executor", lambda body: (200, {"error": {"message": "full", "code": 503}}))
    assert "ErrorReply" in came.failed
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("role", "refusing"), [("planner", 400), ("planner", 404), ("planner", 501), ("repairer", 422), ("classifier", 400)]
)
async def test_modes_that_are_refused_cost_nothing_and_are_not_tried_again(role: str, refusing: int) -> None:
    good = GOOD[role][1]

    def plain(body: Body) -> tuple[int, Any]:
        if "response_format" in body or "tools" in body:
            return refused(refusing, "unknown field")
        return completion({"content": json.dumps(good)})

    with openai_server(plain) as server:
        model = client(server.url, False)
        first, second = [await GOOD[role][0](model) for _ in range(2)]
    assert (first.right, second.right) == (True, True)
    assert len(server.requests) == 3 + 1
    assert (first.usage.tokens, second.usage.tokens) == (100, 100)


@pytest.mark.parametrize("role", GOOD)
async def test_a_client_of_the_users_own_that_stumbles_ends_in_a_typed_failure_too(role: str) -> None:
    with openai_server(lambda body: (200, {"id": "1", "object": "chat.completion", "choices": None})) as server:
        model = ChatOpenAI(
            model_name="m",
            openai_api_base=server.url,
            openai_api_key=SecretStr("k"),
            max_retries=0,
            **clear(),
        )
        came = await GOOD[role][0](model)
    assert came.failed
    assert len(server.requests) == came.usage.calls == 3

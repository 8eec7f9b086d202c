"""The client from settings, and end to end over HTTP against servers that differ in what they can do."""

import asyncio
import json
from threading import Event
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agent.core.plan import Step, StepId
from agent.core.value import JsonValue
from agent.models.chat import CompatibleChat, chat_model
from agent.models.model_planner import ModelPlanner
from agent.ports import PlanDraft, PlanningFailed, Task
from agent.settings import Settings
from graphs.react import build_react
from tests.models.builders import REGISTRY, drafted, request, searching
from tests.models.openai_server import Answering, Body, Server, completion, openai_server, refused, tool_call

GOOD = drafted(searching(), wants=["found"])


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "KINTSUGI_MODEL", "KINTSUGI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def client(**settings: Any) -> CompatibleChat:
    model = chat_model(Settings(**settings))
    assert isinstance(model, CompatibleChat)
    return model


def test_one_model_serves_a_call_after_the_other_though_each_has_an_event_loop_of_its_own() -> None:
    with openai_server(lambda body: completion({"content": "yes"}), protocol="HTTP/1.1") as server:
        model = client(model="m", base_url=server.url)
        said = [asyncio.run(model.ainvoke("Are you there?")).text for _ in range(2)]
    assert said == ["yes", "yes"]


def test_without_a_model_there_is_none_and_no_key_is_asked_for() -> None:
    assert chat_model(Settings()) is None


@pytest.mark.parametrize("settings", [{}, {"base_url": "https://models.example.org/v1"}], ids=["openai", "elsewhere"])
def test_a_missing_key_names_the_variables_and_says_which_goals_need_none(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"OPENAI_API_KEY or KINTSUGI_API_KEY.*`wants` and `criteria`.*no key"):
        chat_model(Settings(model="openai:gpt-5", **settings))


def test_a_key_is_taken_from_the_settings_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    for settings, key in (({}, "from-environment"), ({"api_key": SecretStr("own")}, "own")):
        used = client(model="gpt-5", **settings).openai_api_key
        assert isinstance(used, SecretStr)
        assert used.get_secret_value() == key


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:8080/v1",
        "http://localhost:11434/v1",
        "http://[::1]/v1",
        "http://10.0.0.7/v1",
        "http://box.local/v1",
    ],
)
def test_a_server_on_the_own_network_needs_no_key(base_url: str) -> None:
    assert client(model="qwen2.5:7b", base_url=base_url).model_name == "qwen2.5:7b"


@pytest.mark.parametrize(
    ("name", "bare"), [("openai:gpt-5", "gpt-5"), ("gpt-5", "gpt-5"), ("ft:gpt-4o:org", "ft:gpt-4o:org")]
)
def test_the_provider_is_no_part_of_the_name(name: str, bare: str) -> None:
    model = client(model=name, api_key=SecretStr("k"), max_tokens=99)
    assert (model.model_name, model.max_retries, model.max_tokens) == (bare, 0, 99)


def test_another_provider_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="names the provider 'anthropic'"):
        chat_model(Settings(model="anthropic:claude", api_key=SecretStr("k")))


async def plan(answering: Answering) -> tuple[PlanDraft, Server]:
    with openai_server(answering) as server:
        model: BaseChatModel = client(model="m", base_url=server.url)
        return await ModelPlanner(model, REGISTRY).draw(request("Find out")), server


async def test_a_server_with_json_schema_gets_the_typed_schema_and_gives_a_plan() -> None:
    draft, server = await plan(lambda body: completion({"content": GOOD}))
    (body,) = server.requests
    assert body["response_format"]["type"] == "json_schema"
    sent = body["response_format"]["json_schema"]["schema"]["properties"]
    assert [each["properties"].get("tool", {}).get("enum") for each in sent["steps"]["items"]["anyOf"]] == [
        *([name] for name in REGISTRY.names()),
        None,
    ]
    assert (body["max_tokens"], "max_completion_tokens" in body) == (2048, False)
    assert draft.wants == ("found",)
    assert (draft.usage.calls, draft.usage.tokens, draft.usage.estimated) == (1, 100, False)


def tools_only(body: Body) -> tuple[int, Body]:
    if "response_format" in body:
        return refused(400, "'response_format.type' must be 'text'")
    return completion(tool_call(body["tools"][0]["function"]["name"], GOOD))


async def test_a_server_that_refuses_response_format_is_asked_by_a_tool_call() -> None:
    draft, server = await plan(tools_only)
    assert draft.wants == ("found",)
    assert ["response_format" in body for body in server.requests] == [True, False]


async def test_what_a_server_cannot_do_is_asked_for_once() -> None:
    with openai_server(tools_only) as server:
        planner = ModelPlanner(client(model="m", base_url=server.url), REGISTRY)
        await planner.draw(request("Find out"))
        await planner.draw(request("Find out"))
    assert ["response_format" in body for body in server.requests] == [True, False, False]


async def test_a_server_that_knows_only_prose_is_given_the_schema_in_words() -> None:
    def prose(body: Body) -> tuple[int, Body]:
        if "fit this JSON schema" not in body["messages"][-1]["content"]:
            return completion({"content": "Certainly! First you should search."}, usage=False)
        return completion({"content": f"<think>hm</think>Here you are:\n```json\n{GOOD}\n```\nGood luck!"}, usage=False)

    draft, server = await plan(prose)
    assert draft.wants == ("found",)
    assert len(server.requests) == 3
    assert draft.usage.estimated
    assert draft.usage.tokens > 0


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"content": None, "reasoning_content": GOOD}, id="all in reasoning_content"),
        pytest.param(tool_call("plan", json.loads(GOOD)), id="arguments as an object"),
        pytest.param(tool_call("plan", GOOD, call_id=None), id="a call without an id"),
    ],
)
async def test_loose_replies_are_read(message: Body) -> None:
    assert (await plan(lambda body: completion(message)))[0].wants == ("found",)


async def test_a_reply_cut_at_the_token_limit_is_asked_again_and_paid_for() -> None:
    replies = iter([completion({"content": GOOD[:30]}, finish="length"), completion({"content": GOOD})])
    draft, server = await plan(lambda body: next(replies))
    assert draft.usage.tokens == 200
    assert "cut off at the token limit" in json.dumps(server.requests[1]["messages"])


async def test_a_client_that_throws_a_cut_reply_away_has_it_paid_for_all_the_same() -> None:
    replies = iter([completion({"content": GOOD[:30]}, finish="length"), completion({"content": GOOD})])
    with openai_server(lambda body: next(replies)) as server:
        plain = ChatOpenAI(model_name="m", openai_api_base=server.url, openai_api_key=SecretStr("k"), max_retries=0)
        draft = await ModelPlanner(plain, REGISTRY).draw(request("Find out"))
    assert draft.usage.tokens == 200
    assert "cut off at the token limit" in json.dumps(server.requests[1]["messages"])


async def test_a_client_that_stumbles_over_a_reply_gives_a_typed_failure() -> None:
    with openai_server(lambda body: completion(tool_call("plan", {"steps": []}))) as server:
        plain = ChatOpenAI(model_name="m", openai_api_base=server.url, openai_api_key=SecretStr("k"), max_retries=0)
        with pytest.raises(PlanningFailed, match="the reply could not be read"):
            await ModelPlanner(plain, REGISTRY).draw(request("Find out"))


async def test_an_outage_is_asked_three_times_in_all_because_no_client_retries() -> None:
    with openai_server(lambda body: refused(503, "overloaded")) as server:
        with pytest.raises(PlanningFailed, match="status 503"):
            await ModelPlanner(client(model="m", base_url=server.url), REGISTRY).draw(request("Find out"))
        assert len(server.requests) == 3


async def test_a_server_that_is_silent_is_waited_for_once_and_as_long_as_the_settings_say() -> None:
    ended = Event()

    def silent(_: Body) -> tuple[int, Body]:
        ended.wait(60)
        return completion({"content": GOOD})

    with openai_server(silent) as server, pytest.raises(PlanningFailed, match="timed out") as failed:
        try:
            model = client(model="m", base_url=server.url, model_timeout=0.2)
            await ModelPlanner(model, REGISTRY).draw(request("Find out"))
        finally:
            ended.set()
    assert failed.value.usage.calls == 1


def test_streamed_pieces_keep_thoughts_and_spell_arguments() -> None:
    piece = {**tool_call("search", {"query": "q"}), "reasoning_content": "hm", "role": "assistant"}
    piece["tool_calls"][0]["index"] = 0
    model = client(model="m", base_url="http://127.0.0.1:1/v1")
    made = model._convert_chunk_to_generation_chunk({"choices": [{"delta": piece}]}, AIMessageChunk, None)
    assert made is not None
    assert isinstance(made.message, AIMessageChunk)
    assert made.message.tool_calls[0]["args"] == {"query": "q"}
    assert made.message.additional_kwargs["reasoning_content"] == "hm"


async def test_the_inner_loop_runs_over_http_with_arguments_as_objects_and_repeated_ids() -> None:
    def react(body: Body) -> tuple[int, Body]:
        turn = sum(each["role"] == "assistant" for each in body["messages"])
        ids = [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"]
        assert len(set(ids)) == turn
        if turn < 2:
            return completion(tool_call("search", {"query": f"q{turn}"}, call_id="same"), usage=False)
        return completion(tool_call("submit", {"found": "it"}, call_id="same"))

    async def call(name: str, args: dict[str, JsonValue]) -> JsonValue:
        return f"result of {args['query']}"

    step = Step(id=StepId("s"), intent="i", instruction="look", tools=("search",), produces=("found",))
    with openai_server(react) as server:
        loop = build_react(client(model="m", base_url=server.url), REGISTRY)
        result = await loop.run(Task(thread="t", step=step, args={}, inputs={}, facts={}), call)
    assert (result.value, result.tool_calls, result.error) == ("it", 2, None)
    assert "result of q1" in json.dumps(server.requests[-1])

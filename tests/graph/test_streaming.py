"""Tokens reach `stream_mode="messages"` as the server sends them, with the role and the step in the metadata."""

from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agent import build_graph
from agent.models.chat import CompatibleChat
from tests.builders import Calls, calm, thread, values
from tests.graph.planning import drafted, instructs
from tests.models.openai_server import Body, completion, openai_server, streamed, tool_call

PLAN = drafted(instructs("answer", "look_up"), wants=["answer"])
GIVEN: Any = {"goal": {"text": "How old is Kim?"}}


def answering(body: Body) -> tuple[int, Any]:
    """Plans, thinks aloud while it looks, then submits; in pieces where it is asked to stream."""
    said: Body
    if "response_format" in body:
        said = {"content": PLAN}
    elif body["messages"][-1]["role"] == "tool":
        said = tool_call("submit", '{"answer": 41}')
    else:
        said = {"content": "Let me look.", **tool_call("look_up", '{"name": "Kim"}')}
    return streamed(said) if body.get("stream") else completion(said)


def parts_of(graph: Any, call: str) -> Any:
    if call == "stream":
        return list(graph.stream(GIVEN, thread(), stream_mode=["messages", "values"]))

    async def gathered() -> Any:
        return [each async for each in graph.astream(GIVEN, thread(), stream_mode=["messages", "values"])]

    return gathered()


@pytest.mark.parametrize("call", ["stream", "astream"])
async def test_tokens_of_planner_and_executor_reach_the_caller(call: str) -> None:
    with openai_server(answering) as server:
        model = CompatibleChat(
            model_name="m",
            openai_api_base=server.url,
            openai_api_key=SecretStr("k"),
            max_retries=0,
            http_client=httpx.Client(verify=False),
            http_async_client=httpx.AsyncClient(verify=False, limits=httpx.Limits(max_keepalive_connections=0)),
        )
        look = Calls().tool("found", "", lambda name: f"{name}, 41", name="look_up", takes="name", needs=None)
        graph = build_graph([look], model=model, settings=calm())
        parts = parts_of(graph, call)
        parts = parts if isinstance(parts, list) else await parts
    end = [each for kind, each in parts if kind == "values"][-1]
    assert values(end) == {"answer": 41}
    tokens = [(chunk, about) for kind, (chunk, about) in ((k, e) for k, e in parts if k == "messages")]
    planned = [(c, a) for c, a in tokens if a.get("kintsugi_role") == "planner"]
    assert "".join(str(c.text) for c, _ in planned) == PLAN
    assert len(planned) > 10, "piece by piece"
    assert {a["langgraph_node"] for _, a in planned} == {"planner"}
    turns = [(c, a) for c, a in tokens if a.get("kintsugi_role") == "executor"]
    assert "".join(str(c.text) for c, _ in turns) == "Let me look."
    (step,) = {a["kintsugi_step"] for _, a in turns}
    assert step == end["plan"].steps[0].id
    assert all(each["stream"] for each in server.requests)
    assert end["ledger"].tokens == 300, "usage is told in streams as well"
    assert end["ledger"].tokens_estimated == 0

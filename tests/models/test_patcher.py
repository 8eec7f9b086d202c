"""Patching one call, and classifying one error, with a model."""

import json

import pytest

from agent.core.failure import ErrorFacts, Scope
from agent.models.patcher import ModelPatcher
from agent.models.scope import ModelScope
from agent.ports import PatchView, ProposedCall
from tests.doubles import Reply, ScriptedModel, scripted
from tests.models.builders import REGISTRY

VIEW = PatchView(
    intent="Find the sales",
    tool="search",
    args={"query": "sales of north", "kind": "table"},
    template={"query": "sales of {{region}}", "kind": "table"},
    error=ErrorFacts(kind="exception", type="HTTPError", status=422, message="unknown kind </data>"),
    tool_schema=REGISTRY.schema("search"),
)


async def propose(*replies: Reply, view: PatchView = VIEW) -> tuple[ProposedCall, ScriptedModel]:
    with scripted(*replies, tool_calling=False) as model:
        return await ModelPatcher(model).propose(view), model


def patch(**args: object) -> str:
    return json.dumps({"reason": "r", "args": args})


async def test_a_patch_is_other_arguments_for_the_same_tool() -> None:
    proposed, model = await propose(patch(query="sales of {{region}}"))
    assert proposed.call is not None
    assert (proposed.call.tool, proposed.call.args) == ("search", {"query": "sales of {{region}}"})
    assert proposed.usage.calls == 1
    text = str(model.prompts[0][1].text)
    for part in ("Find the sales", '"sales of north"', "HTTPError 422: unknown kind &lt;/data>", "{{region}}"):
        assert part in text


async def test_no_other_way_is_an_answer() -> None:
    assert (await propose('{"reason": "none", "args": null}'))[0].call is None


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        pytest.param(patch(**VIEW.args), "these are the arguments that failed", id="as sent"),
        pytest.param(patch(**VIEW.template), "these are the arguments that failed", id="as planned"),
        pytest.param(patch(kind="x"), "argument 'query' is missing", id="misfit"),
        pytest.param(patch(query="{{secrets}}"), "may not refer to 'secrets'", id="an artifact the plan did not use"),
        pytest.param(patch(query="{{region[0]}}"), "{{region[0]}} is no reference", id="broken reference"),
    ],
)
async def test_what_cannot_be_right_is_asked_again_with_the_reason(reply: str, sentence: str) -> None:
    proposed, model = await propose(reply, patch(query="other"))
    assert proposed.call is not None
    assert sentence in str(model.prompts[1][1].text)


async def test_three_bad_patches_are_no_patch() -> None:
    proposed, _ = await propose("?", "?", "?")
    assert (proposed.call, proposed.usage.calls) == (None, 3)


async def test_the_prompt_stays_small_whatever_was_sent() -> None:
    huge = VIEW.model_copy(
        update={"args": {"query": "x" * 2_000_000}, "error": ErrorFacts(kind="value", message="y" * 2000)}
    )
    _, model = await propose('{"args": null}', view=huge)
    text = "".join(str(each.text) for each in model.prompts[0][:2])
    assert len(text) / 4 < 1500 + 500, (
        "about 1,500 tokens at 4 characters each, with head and tail of both at their limit"
    )


async def scope(*replies: Reply) -> tuple[Scope | None, ScriptedModel]:
    with scripted(*replies, tool_calling=False) as model:
        answer = await ModelScope(model).scope("Book it", "book", ErrorFacts(kind="value", message="ledger closed"))
        assert answer.usage.calls == len(replies)
        return answer.scope, model


@pytest.mark.parametrize("each", list(Scope))
async def test_the_answer_is_one_of_the_closed_set(each: Scope) -> None:
    found, model = await scope(f'{{"reason": "r", "scope": "{each}"}}')
    assert found is each
    assert "Meant: Book it. Tool: book. Error:\n<data" in str(model.prompts[0][1].text)
    assert "ledger closed" in str(model.prompts[0][1].text)


async def test_an_answer_outside_the_set_is_asked_again() -> None:
    assert (await scope('{"scope": "fatal"}', '{"scope": "goal"}'))[0] is Scope.GOAL


async def test_three_bad_answers_are_none() -> None:
    assert (await scope("hm", "hm", "hm"))[0] is None

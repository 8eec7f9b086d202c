"""Structured output: the mode is found out once for each model, and remembered."""

import gc

from langchain_core.messages import HumanMessage

from agent.core.failure import ErrorFacts
from agent.models.drafts import DraftedScope
from agent.models.reading import InvalidOutput
from agent.models.structured import NEGOTIATED, Mode, Structured
from tests.doubles import calling, scripted

PROMPT = [HumanMessage("Classify")]
GOOD = '{"scope": "call"}'


class BadRequestError(Exception):
    status_code = 400


async def test_a_client_without_tools_is_asked_for_plain_json_at_once() -> None:
    with scripted(GOOD, tool_calling=False) as model:
        answer = await Structured(model, "classifier").ask(list(PROMPT), DraftedScope)
    assert isinstance(answer.value, DraftedScope)
    assert "must fit this JSON schema" in str(model.prompts[0][-1].text)


async def test_a_refused_mode_is_left_for_the_next_and_not_tried_again() -> None:
    with scripted(BadRequestError("response_format"), calling("scope", scope="call"), GOOD) as model:
        asked = Structured(model, "classifier")
        first = await asked.ask(list(PROMPT), DraftedScope)
        assert asked.mode is Mode.TOOL
        assert Structured(model, "classifier").mode is Mode.TOOL, "another role with the same model knows it too"
        second = await Structured(model, "classifier").ask(list(PROMPT), DraftedScope)
    assert (first.usage.calls, second.usage.calls) == (2, 1)
    assert first.value == second.value


async def test_prose_in_a_mode_that_is_not_known_to_work_leads_whoever_asks_again_on_to_the_next() -> None:
    with scripted("Well.", "Well.", GOOD) as model:
        asked = Structured(model, "classifier")
        first, second, third = [await asked.ask(list(PROMPT), DraftedScope) for _ in range(3)]
        assert asked.mode is Mode.TEXT
    assert isinstance(first.value, InvalidOutput)
    assert isinstance(second.value, InvalidOutput)
    assert isinstance(third.value, DraftedScope)
    assert {each.usage.calls for each in (first, second, third)} == {1}


async def test_a_reply_that_its_client_stumbles_over_is_invalid_output_and_charged() -> None:
    with scripted(KeyError("choices"), GOOD) as model:
        asked = Structured(model, "classifier")
        first, second = [await asked.ask(list(PROMPT), DraftedScope) for _ in range(2)]
    assert isinstance(first.value, InvalidOutput)
    assert first.usage.tokens > 0
    assert isinstance(second.value, DraftedScope)


async def test_prose_in_a_mode_that_works_is_invalid_output() -> None:
    with scripted(calling("scope", scope="call"), "Well.") as model:
        asked = Structured(model, "classifier")
        await asked.ask(list(PROMPT), DraftedScope)
        answer = await asked.ask(list(PROMPT), DraftedScope)
    assert isinstance(answer.value, InvalidOutput)
    assert answer.raw == "Well."


async def test_an_error_that_says_nothing_about_the_mode_is_given_back_at_once() -> None:
    with scripted(TimeoutError("slow")) as model:
        asked = Structured(model, "classifier")
        answer = await asked.ask(list(PROMPT), DraftedScope)
        assert asked.mode is None
    assert isinstance(answer.value, ErrorFacts)
    assert answer.value.kind == "timeout"


async def test_a_server_that_refuses_every_mode_is_asked_once_in_each() -> None:
    with scripted(*[BadRequestError("too long")] * 3) as model:
        asked = Structured(model, "classifier")
        answer = await asked.ask(list(PROMPT), DraftedScope)
        assert asked.mode is None, "a prompt that is too long says nothing about modes"
    assert isinstance(answer.value, ErrorFacts)
    assert (answer.value.status, answer.usage.calls) == (400, 3)


async def test_what_was_found_out_is_forgotten_with_the_model() -> None:
    with scripted(GOOD) as model:
        await Structured(model, "classifier").ask(list(PROMPT), DraftedScope)
        assert len(NEGOTIATED._known) == 1
    del model
    gc.collect()
    assert len(NEGOTIATED._known) == 0

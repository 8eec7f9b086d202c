"""Reading replies: each malformed one that servers and models are known for is read, or refused by type."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from agent.models.drafts import Draft
from agent.models.reading import InvalidOutput, objects, read, spoken
from tests.doubles import calling


class Point(Draft):
    x: int


def invalid_call(args: str | None) -> AIMessage:
    return AIMessage(
        "", invalid_tool_calls=[{"name": "Point", "args": args, "id": "1", "error": "", "type": "invalid_tool_call"}]
    )


READABLE = {
    "plain": AIMessage('{"x": 1}'),
    "tool call": calling("Point", x=1),
    "fenced": AIMessage('```json\n{"x": 1}\n```'),
    "prose around": AIMessage('Sure, {name}! Here it is: {"x": 1}. Anything else?'),
    "thought before": AIMessage('<think>maybe {"x": 7}</think>{"x": 1}'),
    "thought whose opening tag is missing": AIMessage('maybe {"x": 7}</think>\n{"x": 1}'),
    "all in an open thought": AIMessage('<think>the answer is {"x": 1}'),
    "content null and all in the reasoning": AIMessage("", additional_kwargs={"reasoning_content": '{"x": 1}'}),
    "content in blocks": AIMessage([{"type": "text", "text": '{"x": 1}'}]),
    "a tool call written as text": AIMessage('{"name": "Point", "arguments": {"x": 1}}'),
    "another object first": AIMessage('{"note": "hi"} {"x": 1}'),
    "arguments with prose behind them": invalid_call('{"x": 1} done'),
    "more than was asked for": AIMessage('{"x": 1, "y": {"z": []}}'),
}


@pytest.mark.parametrize("reply", READABLE.values(), ids=READABLE)
def test_it_is_read(reply: AIMessage) -> None:
    assert read(reply, Point) == Point(x=1)


REFUSED = {
    "prose": (AIMessage("I cannot say."), "the reply has no JSON object", True),
    "nothing": (AIMessage(""), "the reply has no JSON object", True),
    "null": (AIMessage("null"), "the reply has no JSON object", True),
    "null arguments": (invalid_call(None), "the reply has no JSON object", True),
    "field missing": (AIMessage("{}"), "x: Field required", False),
    "wrong type": (
        calling("Point", x="one"),
        "x: Input should be a valid integer, unable to parse string as an integer",
        False,
    ),
    "cut": (AIMessage('{"x": '), "the JSON is broken: Expecting value (line 1, column 7)", False),
    "trailing comma": (AIMessage('{"x": 1,}'), "the JSON is broken: Illegal trailing comma", False),
    "cut arguments": (invalid_call('{"x": "1'), "the JSON is broken: Unterminated string", False),
    "cut at the token limit": (
        AIMessage('{"x": ', response_metadata={"finish_reason": "length"}),
        "the reply was cut off at the token limit; answer with less",
        False,
    ),
    "refusal": (AIMessage("", additional_kwargs={"refusal": "no"}), "the model refused: no", False),
    "too deep": (AIMessage('{"x": ' + '{"x": ' * 100_000), "the JSON", False),
}


@pytest.mark.parametrize(("reply", "reason", "prose"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_by_type_and_with_the_reason(reply: AIMessage, reason: str, prose: bool) -> None:
    found = read(reply, Point)
    assert isinstance(found, InvalidOutput)
    # Python before 3.13 words a trailing comma differently
    assert found.reason.startswith(reason) or (
        "trailing comma" in reason and found.reason.startswith("the JSON is broken")
    )
    assert found.prose is prose


@given(st.text())
def test_no_text_is_ever_a_crash(text: str) -> None:
    read(AIMessage(text), Point)
    spoken(text)


@given(st.dictionaries(st.text(), st.integers()), st.text(alphabet="ab {}<>\n"), st.text(alphabet="ab <>\n"))
def test_an_object_is_found_among_any_prose(value: dict[str, int], before: str, after: str) -> None:
    assert value in objects(before + " " + json.dumps(value) + after).objects

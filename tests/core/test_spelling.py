"""Calls are known by what was meant, not by how it is spelled."""

import pytest

from agent.core.spelling import as_meant, as_taken
from agent.core.value import JsonValue, canonical


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        (1.0, 1),
        ([{"a": -0.0}], [{"a": 0}]),
        (1.5, 1.5),
        (2.0**60, 2.0**60),
        (float("inf"), float("inf")),
        ("1.0", "1.0"),
        (True, True),
        (None, None),
    ],
)
def test_a_whole_number_is_the_same_with_or_without_its_point(spelled: JsonValue, meant: JsonValue) -> None:
    assert canonical(as_meant({"n": spelled}, {})) == canonical({"n": meant})


NUMBER, INTEGER, FLAG, TEXT = ({"type": each} for each in ("number", "integer", "boolean", "string"))


@pytest.mark.parametrize(
    ("spelled", "schema", "meant"),
    [
        pytest.param({"n": "7"}, INTEGER, {"n": 7}, id="integer in words"),
        pytest.param({"n": " 7.0 "}, NUMBER, {"n": 7}, id="number in words"),
        pytest.param({"n": "7.5"}, NUMBER, {"n": 7.5}, id="fraction in words"),
        pytest.param({"n": "True"}, FLAG, {"n": True}, id="truth in words"),
        pytest.param({"n": "maybe"}, FLAG, {"n": "maybe"}, id="no truth"),
        pytest.param({"n": "7"}, TEXT, {"n": "7"}, id="text that is a number"),
        pytest.param({"n": "7"}, {"anyOf": [INTEGER, TEXT]}, {"n": "7"}, id="either"),
        pytest.param({"n": "nan"}, NUMBER, {"n": "nan"}, id="no number"),
        pytest.param({"n": 7.0}, {**INTEGER, "default": 7}, {}, id="default"),
        pytest.param({"n": None}, {"default": None}, {}, id="default that is nothing"),
        pytest.param({"n": None}, {}, {"n": None}, id="nothing, and no default"),
    ],
)
def test_arguments_are_read_as_the_tool_will_take_them(
    spelled: dict[str, JsonValue], schema: dict[str, JsonValue], meant: dict[str, JsonValue]
) -> None:
    assert as_meant(spelled, {"properties": {"n": schema}}) == meant


@pytest.mark.parametrize(
    ("value", "schema", "sent"),
    [
        pytest.param("7", TEXT, "7", id="a text"),
        pytest.param(7, TEXT, "7", id="a number"),
        pytest.param(True, TEXT, "true", id="a truth"),
        pytest.param([{"b": 1, "a": "é"}], TEXT, '[{"a":"é","b":1}]', id="rows"),
        pytest.param(None, TEXT, None, id="nothing is no text"),
        pytest.param(7, INTEGER, 7, id="a number for a number"),
        pytest.param([1], {"anyOf": [TEXT, {"type": "array"}]}, [1], id="either"),
        pytest.param({"a": 1}, {}, {"a": 1}, id="anything"),
    ],
)
def test_what_is_no_text_is_sent_as_json_where_a_tool_takes_nothing_but_text(
    value: JsonValue, schema: dict[str, JsonValue], sent: JsonValue
) -> None:
    taken = as_taken({"n": value}, {"properties": {"n": schema}})
    assert taken == {"n": sent}
    assert as_meant({"n": value}, {"properties": {"n": schema}}) == as_meant(taken, {"properties": {"n": schema}})

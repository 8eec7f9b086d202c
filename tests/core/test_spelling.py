"""Calls are known by what was meant, not by how it is spelled."""

import pytest

from agent.core.spelling import as_meant
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

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
    assert canonical(as_meant({"n": spelled})) == canonical({"n": meant})

"""What a predicate costs is estimated before it is evaluated: the tests of `tests/tools/hostile.py`, and the edges."""

import pytest

from agent.core.predicate import PredicateError, checked, reads
from agent.core.predicate_cost import OPERATOR_LIMIT, SOURCE_LIMIT, too_costly, too_long
from agent.core.value import JsonValue

ROWS: dict[str, JsonValue] = {"rows": [{"cells": [1] * 10} for _ in range(2_000)], "ids": list(range(2_000))}


@pytest.mark.parametrize(
    ("source", "costly"),
    [
        ("artifacts.rows.all(r, r.cells.all(c, c > 0))", False),  # every cell once
        ("artifacts.ids.all(a, artifacts.ids.all(b, true))", True),  # every pair
        ("artifacts.ids.all(a, a > 0) && artifacts.ids.all(b, b > 0)", False),  # one after the other
        ("artifacts.rows.all(r, r.cells.all(c, r.cells.all(d, true)))", True),  # the second is no part of the first
        ("artifacts.rows.all(r, 'x.all(y, x.all(z, true))' != '')", False),  # a text is no macro
        ("artifacts.ids == artifacts.ids", False),
    ],
)
def test_ranges_that_are_crossed_multiply_and_those_inside_of_each_other_do_not(source: str, costly: bool) -> None:
    assert bool(too_costly(source, ROWS)) is costly


def test_an_expression_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert not too_long("'" + "a" * (SOURCE_LIMIT - 2) + "'")
    assert too_long("'" + "a" * (SOURCE_LIMIT - 1) + "'")
    assert not too_long("+".join(["1"] * (OPERATOR_LIMIT + 1)))
    with pytest.raises(PredicateError, match="split it in two"):
        checked("+".join(["1"] * (OPERATOR_LIMIT + 2)))


def test_no_spelling_of_a_text_hides_what_an_expression_reads() -> None:
    for source in (
        r"r'\' != '' && artifacts.x == '1'",
        "'''a'b''' != '' && artifacts.x == 1",
        "true // it's\n && artifacts.x == 1",
    ):
        assert reads(source) == {"x"}
    for source in ("'artifacts.x' != ''", 'r"artifacts.x\\" != ""', "true // artifacts.x"):
        assert reads(source) == frozenset()

"""The loop detector: what counts as the same call again, and what only looks like it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.failure import ErrorFacts
from agent.core.repetition import WINDOW, Asked, Heard, alike, asked, heard, looped, nudge, recalled, repetitions
from agent.core.value import JsonValue


def call(writes: bool = False, tool: str = "search", **args: Any) -> Asked:
    return asked(tool, args, writes)


def told(asked_: Asked, outcome: JsonValue | ErrorFacts = 7) -> Heard:
    return heard(asked_, outcome, "shown")


def broken(message: str) -> ErrorFacts:
    return ErrorFacts(kind="exception", type="HTTPError", status=503, message=message)


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "equal": ({"q": "pricing"}, {"q": "pricing"}),
    "case": ({"q": "pricing"}, {"q": "Pricing"}),
    "spaces": ({"q": "competitor pricing"}, {"q": " competitor  pricing "}),
    "key order": ({"q": "x", "kind": "y"}, {"kind": "y", "q": "x"}),
    "1 and 1.0": ({"n": 1}, {"n": 1.0}),
    "1 and '1'": ({"n": 1}, {"n": "1"}),
    "-0.50 and -.5 as text": ({"n": "-0.50"}, {"n": -0.5}),
    "page": ({"q": "x", "page": 1}, {"q": "x", "page": 2}),
    "a page or none": ({"q": "x"}, {"q": "x", "offset": 10}),
    "limit and cursor": ({"q": "x", "limit": 5}, {"q": "x", "cursor": "abc", "limit": 50}),
    "request id": ({"q": "x", "requestId": "1"}, {"q": "x", "requestId": "2"}),
    "timestamp": ({"q": "x", "timestamp": 1}, {"q": "x", "timestamp": 2}),
    "null and nothing": ({"q": "x", "kind": None}, {"q": "x"}),
    "inside lists": ({"q": ["A", {"b": 1}]}, {"q": ["a ", {"b": "1.0"}]}),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_a_cosmetic_change_is_none(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert repetitions(call(**other), [told(call(**one))]) == 1


DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another word": ({"q": "pricing"}, {"q": "prices"}),
    "another number": ({"n": 1}, {"n": 1.5}),
    "another sign": ({"n": 1}, {"n": -1}),
    "true and 1": ({"n": True}, {"n": 1}),
    "another argument": ({"q": "x"}, {"p": "x"}),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_another_call_is_another_call(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert repetitions(call(**other), [told(call(**one))]) == 0


def test_another_tool_is_another_call() -> None:
    assert repetitions(call(tool="find", q="x"), [told(call(q="x"))]) == 0


def test_calls_are_counted_with_others_in_between() -> None:
    a, b = call(q="a"), call(q="b")
    assert repetitions(a, [told(a), told(a), told(b, 8), told(a)]) == 3


def test_calls_are_forgotten_that_lie_further_back_than_the_window() -> None:
    others = [told(call(q=f"other {n} x"), n) for n in range(WINDOW)]
    assert repetitions(call(q="a"), [told(call(q="a")), *others]) == 0


def test_pages_that_differ_are_read_on() -> None:
    pages = [told(call(q="x", page=n), [f"row {n} of x"]) for n in range(9)]
    assert repetitions(call(q="x", page=9), [told(each.asked, [f"a{n}"]) for n, each in enumerate(pages)]) == 1


def test_pages_that_say_the_same_are_a_loop() -> None:
    pages = [told(call(q="x", page=n), []) for n in range(2)]
    assert repetitions(call(q="x", page=2), pages) == 2


def test_a_word_in_another_case_that_finds_something_else_is_no_repetition() -> None:
    assert repetitions(call(q="ORDERS"), [told(call(q="orders"), 1), told(call(q="Orders"), 2)]) == 1


def test_equal_errors_differ_in_numbers_and_ids_only() -> None:
    a = call(q="a")
    history = [
        told(a, broken("busy since 12:01, request 9f86d081884c")),
        told(a, broken("busy since 12:07, request 1")),
    ]
    assert repetitions(a, history) == 2
    assert repetitions(a, [told(a, broken("busy")), told(a, broken("gone"))]) == 1


def test_writes_that_go_through_keep_their_paging() -> None:
    loads = [told(call(writes=True, offset=n * 500), {"ok": True}) for n in range(3)]
    assert repetitions(call(writes=True, offset=1500), loads) == 0


def test_writes_that_fail_alike_are_a_loop_whatever_their_paging() -> None:
    loads = [told(call(writes=True, offset=n * 500), broken("no disk")) for n in range(2)]
    assert repetitions(call(writes=True, offset=1000), loads) == 2


def test_a_read_is_recalled_only_exactly_and_only_when_it_went_through() -> None:
    a = call(q="a")
    assert recalled(a, [told(a, 7)]) == told(a, 7)
    assert recalled(call(q="A"), [told(a, 7)]) is None
    assert recalled(a, [told(a, broken("busy"))]) is None
    assert recalled(a, []) is None


def test_a_write_is_never_recalled() -> None:
    w = call(writes=True, q="w")
    assert recalled(w, [told(w)]) is None


def test_a_write_makes_every_read_new_and_no_write() -> None:
    a, w = call(q="a"), call(writes=True, tool="put", q="w")
    history = [told(a), told(a), told(w)]
    assert recalled(a, history) is None
    assert repetitions(a, history) == 0
    assert repetitions(w, history) == 1


def test_the_same_write_again_makes_no_read_new() -> None:
    a, w = call(q="a"), call(writes=True, tool="put", q="w")
    assert repetitions(a, [told(w), told(a), told(w), told(a)]) == 2


def test_a_nudge_says_what_happens_and_gives_a_way_out() -> None:
    said = nudge("search", 2)
    for part in ("search 2 times", "arguments are not the problem", "another tool", "submit", "give up"):
        assert part in said


def test_a_step_that_fails_by_repeating_itself_says_so() -> None:
    assert looped("search", 2).startswith("search was called 2 times with the same or nearly the same arguments")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_is_like_itself(value: JsonValue) -> None:
    assert alike(value, value)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 1)), max_size=30))
def test_a_call_that_always_tells_the_same_is_stopped_whatever_is_called_between(
    calls: list[tuple[str, bool, int]],
) -> None:
    """Reads alone: of each at most three in any window get through, when a third is not carried out."""
    history: list[Heard] = []
    for name, _, _ in calls:
        if repetitions(call(q=name), history) < 2:
            history.append(told(call(q=name), name))
    assert all(sum(each.asked == call(q=name) for each in history[-WINDOW:]) <= 2 for name in "abc")

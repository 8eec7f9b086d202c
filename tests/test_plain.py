"""Anything a tool may return is kept: exactly where JSON or bytes can say it, else as text with a note."""

import tracemalloc
from collections import deque
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from agent import build_graph
from agent.core.value import JsonValue, canonical, digest
from agent.plain import NOTES_LIMIT, as_json, as_python, noted
from agent.store.checkpoints import open_saver
from agent.trace.story import story
from tests.builders import Calls, calm, goal, run, thread, values


class Scalar:
    """A number as numeric libraries have them."""

    dtype = "int64"
    shape = ()

    def __init__(self, value: int) -> None:
        self.value = value

    def tolist(self) -> int:
        return self.value


class Array(Scalar):
    def tolist(self) -> Any:
        return [[1, 2.5], [float("nan"), 4]]

    def __iter__(self) -> Iterator[Scalar]:
        return iter([Scalar(1)])


class Table:
    """A table whose iteration gives the names of its columns only."""

    columns = ("name", "rows")

    def to_dict(self, orient: str) -> list[dict[str, object]]:
        assert orient == "records"
        return [{"name": "a", "rows": Scalar(3)}]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


class Hostile:
    """Throws at whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")


def kept(value: object) -> tuple[JsonValue, list[str]]:
    with noted() as notes:
        plain = as_json(value)
    return plain, notes


@pytest.mark.parametrize(
    ("value", "plain", "note"),
    [
        pytest.param(Fraction(1, 3), "1/3", "kept as text: $ (Fraction)", id="fraction"),
        pytest.param({"a": [Decimal("1.10")]}, {"a": ["1.10"]}, "kept as text: $.a[0] (Decimal)", id="decimal"),
        pytest.param([date(2026, 1, 2)], ["2026-01-02"], "kept as text: $[0] (date)", id="date"),
        pytest.param(UUID(int=1), f"{UUID(int=1)}", "kept as text: $ (UUID)", id="uuid"),
        pytest.param(Path("a"), "a", "kept as text: $ (PosixPath)", id="path"),
        pytest.param(2**70, str(2**70), "kept as text: $ (int)", id="huge"),
        pytest.param(float("nan"), "nan", "kept as text: $ (float)", id="nan"),
        pytest.param(ValueError("no"), "no", "kept as text: $ (ValueError)", id="exception"),
        pytest.param(len, str(len), "kept as text: $ (builtin_function_or_method)", id="function"),
        pytest.param(int, "<class 'int'>", "kept as text: $ (type)", id="class"),
        pytest.param({3, 1}, [1, 3], "kept as a list: $ (set)", id="set"),
        pytest.param(deque([1]), [1], "kept as a list: $ (deque)", id="deque"),
        pytest.param((x for x in "ab"), ["a", "b"], "kept as a list: $ (generator)", id="generator"),
        pytest.param({1: 2}, {"1": 2}, "named '1': $ (int)", id="key"),
        pytest.param("\ud800", "\\ud800", "kept with its lone surrogates spelled out: $ (str)", id="surrogate"),
        pytest.param(Hostile(), "<Hostile that cannot be shown>", "kept as text: $ (Hostile)", id="hostile"),
    ],
)
def test_what_json_cannot_say_is_kept_otherwise_and_told(value: object, plain: JsonValue, note: str) -> None:
    assert kept(value) == (plain, [note])


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param({"a": (1, 2.5, None, True, "é\0")}, {"a": [1, 2.5, None, True, "é\0"]}, id="json"),
        pytest.param(b"\0\xff", {"$bytes": "AP8=", "size": 2}, id="bytes"),
        pytest.param([bytearray(b"a"), memoryview(b"ab")], [as_json(b"a"), as_json(b"ab")], id="kinds of bytes"),
        pytest.param(Scalar(7), 7, id="scalar of a numeric library"),
        pytest.param(Table(), [{"name": "a", "rows": 3}], id="table"),
    ],
)
def test_what_can_be_kept_as_it_is_needs_no_words(value: object, plain: JsonValue) -> None:
    assert kept(value) == (plain, [])


def test_an_array_is_kept_by_its_elements_and_told_of_where_they_are_no_numbers() -> None:
    assert kept(Array(0)) == ([[1, 2.5], ["nan", 4]], ["kept as text: $[1][0] (float)"])


def test_a_value_that_is_full_of_oddities_is_told_of_briefly() -> None:
    _, notes = kept([Fraction(1, 3)] * 1000)
    assert len(notes) == NOTES_LIMIT + 1
    assert notes[-1] == f"and {1000 - NOTES_LIMIT} more like these"
    _, notes = kept({"k" * 10_000: Fraction(1, 3)})
    assert len(notes[0]) < 300


@given(st.recursive(st.binary() | st.text() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_bytes_come_back_as_they_were_wherever_they_are(value: Any) -> None:
    plain, notes = kept(value)
    assert as_python(plain) == value
    assert as_json(as_python(plain)) == plain
    assert notes == []


@pytest.mark.parametrize(
    "value",
    [{"$bytes": "not base64", "size": 3}, {"$bytes": "AP8=", "size": 9}, {"$bytes": "AP8="}, {"$bytes": 1, "size": 1}],
)
def test_a_mapping_that_only_looks_like_bytes_is_left_alone(value: JsonValue) -> None:
    assert as_python(value) == value


def test_a_large_text_is_neither_copied_piece_by_piece_nor_several_times_over() -> None:
    text = "x" * 50_000_000
    tracemalloc.start()
    assert as_json({"text": text}) == {"text": text}
    digest(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(text)


# --- through the graph ------------------------------------------------------------------------------------------


def test_bytes_go_from_tool_to_tool_as_bytes_and_predicates_can_ask_their_size(tmp_path: Path) -> None:
    got: list[object] = []

    def take(photo: Any) -> int:
        got.append(photo)
        return len(photo)

    calls, photo = Calls(), bytes(range(256)) * 100
    tools = [
        calls.tool("photo", "", lambda: photo, ensures="artifacts.photo.size == 25600"),
        calls.tool("n", "photo", take, effect="mutating", idempotent=True),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))
    assert values(run(graph, goal("n")))["n"] == 25600
    assert got == [photo]


@pytest.mark.parametrize("where", ["state", "database", "store"])
def test_what_was_not_kept_as_it_was_stands_in_the_trace(where: str, tmp_path: Path) -> None:
    odd = {"ratio": Fraction(1, 3), "raw": b"\0" * 9000 if where != "state" else b"\0", "z": "\0"}
    calls, seen = Calls(), list[Any]()

    def take(x: Any) -> int:
        seen.append(x)
        return 1

    tools = [calls.tool("x", "", lambda: odd), calls.tool("y", "x", take)]
    store = InMemoryStore() if where == "store" else None
    graph = build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"), store=store)
    end = run(graph, goal("y"))
    assert end["outcome"].status == "satisfied"
    assert seen == [{**odd, "ratio": "1/3"}]
    assert end["world"].artifacts["x"].stored == (where != "state")
    told = [line for _, keyword, line in story(end["trace"], end["plan"]) if keyword == "back"]
    assert told[0].endswith("; make_x: kept as text: $.ratio (Fraction)")
    assert "kept" not in told[1]
    assert graph.get_state(thread()).values["world"] == end["world"]


def test_what_a_write_gave_is_kept_in_the_journal_just_the_same(tmp_path: Path) -> None:
    calls = Calls()
    tools = [calls.tool("x", "", lambda: {"raw": b"\xff", "at": Fraction(1, 3)}, effect="mutating")]

    def again() -> Any:
        return run(build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db")), goal("x"))

    first = canonical(values(again()))
    assert canonical(values(again())) == first
    assert calls["make_x"] == 1

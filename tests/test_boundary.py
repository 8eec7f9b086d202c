"""Whatever a tool throws or returns: facts, or a plain value, and never an exception further in."""

import asyncio
import dataclasses
import enum
import io
import itertools
import json
import threading
import urllib.error
from collections import OrderedDict
from datetime import UTC, datetime
from email.message import Message
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool
from pydantic import BaseModel, SecretStr

from agent import build_graph
from agent.boundary import error_in, facts_of, guarded, masked, shortened
from agent.core.failure import ErrorFacts
from agent.core.value import canonical, digest
from agent.plain import DEPTH_LIMIT, as_json
from agent.ports import Observation
from agent.store.checkpoints import open_saver
from agent.tools.calling import Caller
from agent.tools.registry import Registry
from tests.builders import Calls, always, arun, calm, goal, run, rungs, thread

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REQUEST = httpx.Request("POST", "https://api.example/v1/rows")


def http(status: int, headers: dict[str, str] | None = None, body: str = "") -> httpx.HTTPStatusError:
    response = httpx.Response(status, headers=headers, text=body, request=REQUEST)
    return httpx.HTTPStatusError(f"status {status}", request=REQUEST, response=response)


def urllib_error(status: int, headers: dict[str, str] | None = None) -> urllib.error.HTTPError:
    message = Message()
    for name, value in (headers or {}).items():
        message[name] = value
    return urllib.error.HTTPError("https://api.example", status, "said no", message, io.BytesIO(b""))


def openai_error(status: int) -> openai.APIStatusError:
    response: Any = httpx.Response(status, request=REQUEST)
    return openai.APIStatusError("said no", response=response, body=None)


@pytest.mark.parametrize(
    ("thrown", "status"),
    [
        pytest.param(http(429), 429, id="httpx"),
        pytest.param(urllib_error(503), 503, id="urllib"),
        pytest.param(openai_error(401), 401, id="openai"),
        pytest.param(type("E", (Exception,), {"status": 404})(), 404, id="status attribute"),
        pytest.param(type("E", (Exception,), {"code": "rate_limited"})(), None, id="a code in words"),
        pytest.param(type("E", (Exception,), {"code": 17})(), None, id="a code that is no status"),
        pytest.param(type("E", (Exception,), {"status_code": True})(), None, id="a truth value is no status"),
        pytest.param(ValueError("404"), None, id="a number in words is no status"),
    ],
)
def test_the_status_is_found_wherever_a_client_keeps_it(thrown: Exception, status: int | None) -> None:
    assert facts_of(thrown).status == status


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Fri, 02 Jan 2026 03:04:35 GMT", 30.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_and_as_a_date(said: str, seconds: float | None) -> None:
    for thrown in (http(429, {"Retry-After": said}), urllib_error(429, {"Retry-After": said})):
        assert facts_of(thrown, now=lambda: NOW).retry_after == seconds


@pytest.mark.parametrize("said", ["nan", "inf", "1e400"])
def test_a_retry_after_that_is_no_time_is_no_wait(said: str) -> None:
    assert facts_of(http(429, {"Retry-After": said}), now=lambda: NOW).retry_after is None


def test_the_body_of_an_answer_is_part_of_the_message() -> None:
    assert "column revenue_net not found" in facts_of(http(422, body="column revenue_net not found")).message


def test_bases_are_named_nearest_first_without_the_trivial_ones() -> None:
    facts = facts_of(ConnectionResetError("gone"))
    assert (facts.type, facts.bases) == ("ConnectionResetError", ("ConnectionError", "OSError"))


def test_a_time_out_has_a_kind_of_its_own() -> None:
    assert facts_of(TimeoutError()).kind == "timeout"
    assert facts_of(TimeoutError()).message == "TimeoutError"


def test_a_group_of_errors_says_what_all_of_them_said() -> None:
    assert facts_of(ExceptionGroup("both", [ValueError("one"), KeyError("two")])).message == "one; 'two'"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh12345678",
        "key sk-abcdefgh12345678 was refused",
        "https://x.example/?api_key=hunter2secret&page=1",
        'password="hunter2secret"',
        "'token': 'hunter2secret'",
        "postgres://user:hunter2secret@db.example/x",
    ],
)
def test_what_looks_like_a_credential_is_hidden(text: str) -> None:
    for shown in (masked(text), facts_of(ValueError(text)).message):
        assert "hunter2secret" not in shown
        assert "abcdefgh12345678" not in shown
        assert "***" in shown


def test_an_ordinary_text_is_not_touched() -> None:
    text = "the tokens of week 3 were counted: 17 of 20 (see https://x.example:8080/a)"
    assert masked(text) == text


def test_a_long_text_keeps_head_and_tail_and_says_what_is_left_out() -> None:
    text = shortened("a" * 3000 + "b" * 3000, limit=100)
    assert text.startswith("a" * 50)
    assert text.endswith("b" * 50)
    assert "5900 characters left out" in text
    assert shortened("short", limit=100) == "short"


class Crash(BaseException):
    """What test runners and some C extensions throw past `Exception`."""


@pytest.mark.parametrize(
    "thrown",
    [ValueError("x"), Crash("x"), SystemExit(3), GeneratorExit(), asyncio.CancelledError("not ours"), StopIteration()],
    ids=lambda each: type(each).__name__,
)
async def test_whatever_the_work_throws_is_data(thrown: BaseException) -> None:
    async def work() -> int:
        if isinstance(thrown, StopIteration):
            next(iter(()))
        raise thrown

    found = await guarded(work(), 5)
    assert isinstance(found, ErrorFacts)


async def test_a_cancellation_of_our_own_task_passes_through() -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(guarded(work(), 60))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_work_may_not_take_for_ever() -> None:
    found = await guarded(asyncio.Event().wait(), 0.001)
    assert isinstance(found, ErrorFacts)
    assert found.kind == "timeout"


async def test_work_that_ends_gives_its_value() -> None:
    assert await guarded(asyncio.sleep(0, result=7), 5) == 7


def test_a_keyboard_interrupt_is_no_failure_of_the_work() -> None:
    async def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(guarded(work(), 5))


@pytest.mark.parametrize(
    ("value", "status"),
    [
        pytest.param({"error": "no such table"}, None, id="error text"),
        pytest.param({"error": {"code": 429, "message": "slow down"}}, 429, id="error object with a code"),
        pytest.param({"error": "gone", "status": 410}, 410, id="status beside the error"),
        pytest.param({"isError": True, "content": "x"}, None, id="isError"),
        pytest.param({"is_error": True}, None, id="is_error"),
        pytest.param("Error: no such file", None, id="text"),
        pytest.param("  Traceback (most recent call last)", None, id="traceback"),
    ],
)
def test_an_error_returned_as_a_value_is_seen(value: Any, status: int | None) -> None:
    facts = error_in(value)
    assert facts is not None
    assert (facts.kind, facts.status) == ("value", status)


@pytest.mark.parametrize(
    "value",
    [
        {"error": None, "rows": 3},
        {"error": "", "rows": 3},
        {"error": False},
        {"isError": False},
        "errors were counted: 3",
        "Error rates are falling",
        {"message": "error"},
        [{"error": "x"}],
        None,
        0,
    ],
    ids=repr,
)
def test_a_value_that_only_speaks_of_errors_is_a_value(value: Any) -> None:
    assert error_in(value) is None


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


class Row(BaseModel):
    name: str
    key: SecretStr = SecretStr("hunter2")


@dataclasses.dataclass
class Point:
    x: int
    where: PurePosixPath


class Mute:
    def __str__(self) -> str:
        raise ValueError("nothing to say")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param(Fraction(1, 3), "1/3", id="fraction"),
        pytest.param(1 + 2j, "(1+2j)", id="complex"),
        pytest.param(PurePosixPath("/a/b"), "/a/b", id="path"),
        pytest.param(NOW, "2026-01-02T03:04:05+00:00", id="time"),
        pytest.param(range(3), [0, 1, 2], id="range"),
        pytest.param((each for each in "ab"), ["a", "b"], id="generator"),
        pytest.param({"b", "a"}, ["a", "b"], id="set"),
        pytest.param(frozenset({2, 1}), [1, 2], id="frozen set"),
        pytest.param(b"a\xff", {"$bytes": "Yf8=", "size": 2}, id="bytes"),
        pytest.param(Colour.RED, "red", id="enum"),
        pytest.param({Colour.RED: Level.HIGH}, {"red": 3}, id="enums as key and value"),
        pytest.param(Text("x"), "x", id="text of another class"),
        pytest.param(True, True, id="truth value"),
        pytest.param(float("nan"), "nan", id="not a number"),
        pytest.param(float("-inf"), "-inf", id="infinity"),
        pytest.param(2**63 - 1, 2**63 - 1, id="largest integer"),
        pytest.param(2**70, "1180591620717411303424", id="larger than a checkpoint can hold"),
        pytest.param(-(2**70), "-1180591620717411303424", id="smaller than a checkpoint can hold"),
        pytest.param("a\ud800b", "a\\ud800b", id="half a character"),
        pytest.param({"a\ud800": 1}, {"a\\ud800": 1}, id="half a character in a key"),
        pytest.param("a\0b", "a\0b", id="zero byte"),
        pytest.param({1: "a", "1": "b"}, {"1": "a", "1'": "b"}, id="two keys that are spelled alike"),
        pytest.param({(1, 2): 1, None: 2}, {"(1, 2)": 1, "None": 2}, id="keys of any kind"),
        pytest.param(OrderedDict(a=(1, [2])), {"a": [1, [2]]}, id="nested"),
        pytest.param(Row(name="r"), {"name": "r", "key": "**********"}, id="model, its secrets hidden"),
        pytest.param(Point(1, PurePosixPath("p")), {"x": 1, "where": "p"}, id="dataclass"),
        pytest.param(Mute(), "<Mute that cannot be shown>", id="an object that cannot be spelled"),
        pytest.param([Mute()], ["<Mute that cannot be shown>"], id="one inside a list"),
    ],
)
def test_whatever_a_tool_returns_has_a_plain_form(value: Any, plain: Any) -> None:
    assert as_json(value) == plain


def test_a_number_that_python_refuses_to_spell_is_kept_in_hexadecimal() -> None:
    assert as_json(16**10_000) == "0x1" + "0" * 10_000


def test_what_contains_itself_is_named_and_not_followed() -> None:
    loop: dict[str, Any] = {"n": 1}
    loop["again"] = loop
    assert as_json(loop) == {"n": 1, "again": "<dict left out: too deep, too large or inside itself>"}


def test_what_is_nested_too_deeply_is_named_at_the_limit() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    plain = canonical(as_json(deep))
    assert plain.count("[") == DEPTH_LIMIT + 1
    assert "left out" in plain


def test_a_small_object_that_unfolds_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.plain.PARTS_LIMIT", 1000)
    shared: list[Any] = []
    for _ in range(60):
        shared = [shared, shared]
    assert len(canonical(as_json(shared))) < 1_000_000


def test_an_endless_result_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.plain.ENDLESS", 3)
    assert as_json(itertools.count()) == [0, 1, 2, "<the rest left out>"]


def test_reading_a_lazy_result_is_the_tools_own_work_and_may_fail() -> None:
    def rows() -> Any:
        yield 1
        raise ConnectionResetError("half way")

    with pytest.raises(ConnectionResetError):
        as_json(rows())


nasty = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.fractions()
    | st.dates(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none() | st.booleans(), inner)
        | st.frozensets(st.integers() | st.text())
    ),
    max_leaves=20,
)


@given(nasty)
def test_the_plain_form_survives_json_and_is_plain_already(value: Any) -> None:
    plain = as_json(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert as_json(plain) == plain
    assert canonical(plain).encode()
    assert digest(as_json(plain)) == digest(plain)


@given(
    st.dictionaries(st.integers(-3, 3) | st.text("0123-'", max_size=2) | st.booleans() | st.none(), st.integers(0, 9))
)
def test_no_entry_of_a_mapping_is_lost(value: dict[Any, int]) -> None:
    plain = as_json(value)
    assert isinstance(plain, dict)
    assert sorted(plain.values()) == sorted(value.values())  # type: ignore[type-var]


# --- the same through the graph -------------------------------------------------------------------------------


async def exits() -> int:
    raise SystemExit(3)


def leaves() -> int:
    raise SystemExit(4)


@pytest.mark.parametrize("does", [exits, leaves], ids=["async", "sync"])
async def test_a_tool_that_exits_ends_its_step_and_not_the_program(does: Any) -> None:
    calls = Calls()
    graph = build_graph([calls.tool("x", "", does)], settings=calm(escalation="finish"))
    for end in (await arun(graph, goal("x"), "1"), await asyncio.to_thread(run, graph, goal("x"), "2")):
        assert end["outcome"].status == "handed_over"
        assert rungs(end)


def test_an_interrupt_inside_a_tool_reaches_the_caller_and_hangs_nothing() -> None:
    async def interrupted() -> int:
        raise KeyboardInterrupt

    graph = build_graph([Calls().tool("x", "", interrupted)], settings=calm())
    with pytest.raises(KeyboardInterrupt):
        run(graph, goal("x"))
    assert "kintsugi-loop" not in [each.name for each in threading.enumerate()]


@pytest.mark.parametrize(
    "value", [2**70, float("nan"), {"a\ud800": "\ud800"}, Mute()], ids=["int", "nan", "text", "mute"]
)
def test_a_step_is_not_lost_for_what_it_returned(value: Any, tmp_path: Any) -> None:
    calls = Calls()
    graph = build_graph(
        [calls.tool("x", "", lambda: value)], settings=calm(), checkpointer=open_saver(tmp_path / "k.db")
    )
    end = run(graph, goal("x"))
    assert end["outcome"].status == "satisfied"
    assert graph.get_state(thread()).values["world"] == end["world"]


# --- calls and probes -------------------------------------------------------------------------------------------


def sees(value: Any) -> dict[str, Any]:
    """Every way to write a probe that sees a value."""

    def plain(n: int = 0) -> Any:
        return value

    async def coroutine(n: int = 0) -> Any:
        return value

    return {
        "function": plain,
        "coroutine": coroutine,
        "gives a coroutine": lambda n=0: coroutine(n),
        "tool": Calls().tool("probe", "", lambda: value),
        "takes everything": lambda **_: value,
    }


@pytest.mark.parametrize("kind", list(sees(1)))
async def test_a_probe_may_be_written_in_any_way(kind: str) -> None:
    observe = sees({1, 2})[kind]
    caller = Caller(Registry([Calls().tool("x", observe=observe), Calls().tool("probe", "", lambda: {1, 2})]), 5)
    found = await caller.look("make_x", {"n": 3, "other": 4})
    assert found == Observation(value=[1, 2])


async def test_a_probe_that_fails_could_not_look_and_one_that_is_not_there_says_nothing() -> None:
    broken = always(ConnectionError("no sight"))
    caller = Caller(Registry([Calls().tool("x", observe=broken), Calls().tool("y")]), 5)
    found = await caller.look("make_x", {})
    assert found is not None
    assert found.error is not None
    assert (found.error.kind, found.error.message) == ("probe", "no sight")
    assert await caller.look("make_y", {}) is None


async def test_a_probe_that_is_a_tool_and_fails_could_not_look_either() -> None:
    probe = Calls().tool("probe", "", always(ConnectionError("no sight")))
    found = await Caller(Registry([Calls().tool("x", observe=probe), probe]), 5).look("make_x", {})
    assert found is not None
    assert found.error is not None
    assert found.error.kind == "probe"


async def test_a_call_that_takes_too_long_is_given_up() -> None:
    never = threading.Event()

    async def waits() -> None:
        await asyncio.Event().wait()

    caller = Caller(Registry([Calls().tool("x", "", waits), Calls().tool("y", "", lambda: never.wait(20))]), 0.01)
    for name in ("make_x", "make_y"):
        found = await caller.call(name, {})
        assert isinstance(found, ErrorFacts)
        assert found.kind == "timeout"
    never.set()


async def test_arguments_are_refused_before_the_tool_runs_and_only_then() -> None:
    class Answer(BaseModel):
        total: int

    def parse(n: Any) -> Any:
        return Answer.model_validate({"total": "many"})

    @tool
    def typed(n: int) -> int:
        """Take a number."""
        return n

    caller = Caller(Registry([typed, Calls().tool("x", "n", parse)]), 5)
    kinds = [
        await caller.call("typed", {"n": "many"}),
        await caller.call("make_x", {"n": 1}),
        await caller.call("no", {}),
    ]
    assert [(each.kind, each.type) for each in kinds if isinstance(each, ErrorFacts)] == [
        ("refused", "ValidationError"),
        ("exception", "ValidationError"),
        ("refused", "UnknownTool"),
    ]
    assert await caller.call("typed", {"n": 3}) == 3


async def test_many_synchronous_calls_run_side_by_side() -> None:
    together = threading.Barrier(12, timeout=20)
    caller = Caller(Registry([Calls().tool("x", "", together.wait)]), 30)
    assert sorted(await asyncio.gather(*(caller.call("make_x", {}) for _ in range(12)))) == list(range(12))  # type: ignore[type-var]

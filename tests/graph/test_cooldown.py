"""Parallel steps meet a rate limit together: they wait together, come back spread, and nothing that is done is lost."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
import pytest

from agent.app import assemble
from agent.core.ladder import choose_rung
from agent.store.database import memory_database
from graphs.loop import LoopGraph
from tests.builders import Calls, arun, calm, goal, rungs, values


class Tide:
    """Virtual time: it moves to the soonest sleeper when nothing else has happened for a moment of real time."""

    def __init__(self, share: float = 0.0) -> None:
        self.at, self.share, self.slept, self.until = 1000.0, share, list[float](), list[float]()
        self.touched = 0.0

    def now(self) -> float:
        self.touched = time.monotonic()
        return self.at

    def jitter(self) -> float:
        return self.share

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        self.slept.append(seconds)
        until = self.now() + seconds
        self.until.append(until)
        while self.at < until:
            await asyncio.sleep(0.01)
            if time.monotonic() - self.touched > 0.15 and until == min(self.until):
                self.at = until
        self.until.remove(until)
        self.touched = time.monotonic()


def limit(host: str = "api.example", **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", f"https://{host}/v1/rows")
    response = httpx.Response(429, headers=headers, request=request)
    return httpx.HTTPStatusError("429 Too Many Requests", request=request, response=response)


class Endpoint:
    """Refuses its first calls, and remembers when it was called."""

    def __init__(self, clock: Tide, refusals: int, error: Callable[[], Any]) -> None:
        self.clock, self.left, self.error = clock, refusals, error
        self.called: list[float] = []

    async def call(self, **_: Any) -> Any:
        self.called.append(self.clock.at)
        if self.left > 0:
            self.left -= 1
            told = self.error()
            if isinstance(told, Exception):
                raise told
            return told
        return len(self.called)


def parallel(endpoint: Endpoint, steps: int, calls: Calls, **promised: Any) -> list[Any]:
    return [calls.tool(f"x{n}", "", endpoint.call, **promised) for n in range(steps)]


def built(tools: list[Any], clock: Tide, **limits: Any) -> LoopGraph:
    return assemble(tools, memory_database(), calm(**limits), clock=clock)


def wants(steps: int) -> Any:
    return goal(" ".join(f"x{n}" for n in range(steps)))


ERRORS = {
    "a header": lambda: limit(**{"retry-after": "2"}),
    "a JSON body": lambda: {"error": {"code": 429, "message": "slow down"}, "retry_after": 2},
    "words": lambda: "Error: rate limit reached, please try again in 2s",
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("effect", ["read_only", "mutating"])
async def test_eight_steps_whose_first_twelve_calls_are_refused_all_end_well(error: Any, effect: str) -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 12, error)
    tools = [calls.tool("done"), *parallel(endpoint, 8, calls, effect=effect)]
    end = await arun(built(tools, clock, replan=0), goal("done " + " ".join(f"x{n}" for n in range(8))))
    assert end["outcome"].status == "satisfied"
    assert len(values(end)) == 9
    assert calls["make_done"] == 1
    assert set(rungs(end)) == {"retry"}
    if not isinstance(error(), Exception):
        return  # tools that name no host rest one by one
    assert len(endpoint.called) == 20
    assert [sum(at == each for each in endpoint.called) for at in (1000.0, 1002.0, 1004.0)] == [8, 8, 4]


async def test_nobody_calls_an_endpoint_while_it_rests() -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 24, lambda: limit(**{"retry-after": "5"}))
    end = await arun(built(parallel(endpoint, 8, calls), clock, replan=0), wants(8))
    assert end["outcome"].status == "satisfied"
    moments = sorted(set(endpoint.called))
    assert all(later - sooner >= 5 for sooner, later in pairwise(moments))


async def test_those_who_wait_together_are_charged_once_and_are_no_run_without_progress() -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 60, lambda: limit(**{"retry-after": "2"}))
    end = await arun(built(parallel(endpoint, 60, calls), clock, barren=5, retries_per_run=1), wants(60))
    assert end["outcome"].status == "satisfied"
    assert sum(end["ledger"].retry.values()) - end["ledger"].together == 1
    assert set(end["ledger"].retry.values()) == {1}
    joined = [each.choice.joined for each in end["trace"] if each.event == "recovered"]
    assert joined == [False] + [True] * 59


async def test_an_endpoint_that_never_recovers_ends_the_waiting_within_the_budgets() -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 10_000, lambda: limit(**{"retry-after": "2"}))
    tools = [calls.tool("done"), *parallel(endpoint, 8, calls)]
    graph = built(tools, clock, replan=0, escalation="finish", barren=1000)
    end = await arun(graph, goal("done " + " ".join(f"x{n}" for n in range(8))))
    assert end["outcome"].status != "satisfied"
    assert values(end) == {"done": 1}
    assert len(endpoint.called) == 8 * (1 + 3)
    assert max(end["ledger"].retry.values()) <= 3


async def test_another_endpoint_is_called_meanwhile() -> None:
    clock, calls = Tide(), Calls()
    busy = Endpoint(clock, 1, lambda: limit(**{"retry-after": "60"}))
    free = Endpoint(clock, 0, lambda: limit("other.example"))
    tools = [calls.tool("x", "", busy.call), calls.tool("y", "", free.call), calls.tool("z", "y", free.call, takes="y")]
    end = await arun(built(tools, clock), goal("x z"))
    assert end["outcome"].status == "satisfied"
    assert busy.called == [1000.0, 1060.0]
    assert max(free.called) < 1060.0


async def test_a_step_that_starts_later_waits_for_the_endpoint_that_its_tool_was_seen_to_call() -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 1, lambda: limit(**{"retry-after": "30"}))
    slow = asyncio.Event()

    async def source() -> int:
        await asyncio.sleep(0.01)
        slow.set()
        return 1

    tools = [
        calls.tool("source", "", source),
        calls.tool("loaded_{part}", "", endpoint.call, name="load", takes="part", each={"part": "parts"}),
    ]
    given = goal("source", "artifacts.loaded_a >= 1 && artifacts.loaded_b >= 1", given={"parts": ["a", "b"]})
    end = await arun(built(tools, clock, parallel=2), given)
    assert end["outcome"].status == "satisfied"
    assert [each for each in endpoint.called if 1000.0 < each < 1030.0] == []


async def test_a_longer_wait_that_is_asked_for_later_holds_for_those_who_wait_already() -> None:
    clock, calls = Tide(), Calls()
    asked = iter(["2", "20"])
    endpoint = Endpoint(clock, 2, lambda: limit(**{"retry-after": next(asked)}))
    end = await arun(built(parallel(endpoint, 2, calls), clock), wants(2))
    assert end["outcome"].status == "satisfied"
    assert min(each for each in endpoint.called if each > 1000.0) == 1020.0


async def test_jitter_spreads_those_who_come_back() -> None:
    clock, calls = Tide(share=0.5), Calls()
    endpoint = Endpoint(clock, 1, lambda: limit(**{"retry-after": "10"}))
    graph = assemble(parallel(endpoint, 1, calls), memory_database(), calm(jitter=0.4), clock=clock)
    end = await arun(graph, wants(1))
    assert end["outcome"].status == "satisfied"
    assert endpoint.called == [1000.0, pytest.approx(1012.0)]


async def test_a_wait_that_outlasts_the_run_is_not_waited() -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 99, lambda: limit(**{"retry-after": "7200"}))
    graph = built([calls.tool("done"), *parallel(endpoint, 1, calls)], clock, seconds=600.0, escalation="finish")
    end = await arun(graph, goal("done x0"))
    assert values(end) == {"done": 1}
    assert max(clock.slept, default=0.0) < 600
    (passed, *_) = [each.choice.passed for each in end["trace"] if each.event == "recovered"]
    assert "it asks to wait 7200 s" in passed[0].reason


async def test_every_choice_is_made_again_from_its_record() -> None:
    clock, calls = Tide(), Calls()
    endpoint = Endpoint(clock, 12, lambda: limit(**{"retry-after": "2"}))
    end = await arun(built(parallel(endpoint, 8, calls), clock), wants(8))
    taken = [each for each in end["trace"] if each.event == "recovered"]
    assert len(taken) == 12
    for each in taken:
        again = choose_rung(each.classified, each.options, each.limits, each.ledger, each.ordered, each.resting)
        assert again == each.choice

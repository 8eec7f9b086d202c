"""Runs that are cancelled, or that meet on one thread: no write is made twice, and no goal is lost in silence."""

import asyncio
from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError

from tests.studio.driving import Desk, made


async def _let_go_while(desk: Desk, doing: Any) -> None:
    """Let the wire answer while something else is on its way."""
    going = asyncio.ensure_future(doing)
    await asyncio.sleep(0)
    desk.let("go")
    await going


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_a_write_in_flight_when_its_run_is_cancelled_is_recorded_and_not_made_again(
    desk: Desk, action: Any
) -> None:
    run = await desk.begun("wire")
    await desk.wired()
    await _let_go_while(desk, desk.client.runs.cancel(desk.thread, run, wait=True, action=action))
    await desk.idle()
    final = await desk.run("wire", "total")
    assert final["outcome"]["status"] == "satisfied"
    assert final["outcome"]["artifacts"]["wire"]["value"] == "wired"
    assert desk.server.effects("wired", desk.purse) == 1


async def test_a_cancelled_run_goes_on_where_it_was(desk: Desk) -> None:
    run = await desk.begun("wire")
    await desk.wired()
    await _let_go_while(desk, desk.client.runs.cancel(desk.thread, run, wait=True))
    await desk.idle()
    state = await desk.state()
    assert (await desk.client.threads.get(desk.thread))["status"] == "interrupted"
    assert state["next"] == ["executor"]
    final = await desk.run()
    assert (final["outcome"]["status"], final["ledger"]["run"]) == ("satisfied", 1)
    assert desk.server.effects("wired", desk.purse) == 1


async def test_a_second_goal_is_refused_when_the_caller_says_reject_and_the_first_is_reached(desk: Desk) -> None:
    run = await desk.begun("wire")
    await desk.wired()
    with pytest.raises(ConflictError, match="already running"):
        await desk.begun("total", multitask_strategy="reject")
    desk.let("go")
    final: Any = await desk.client.runs.join(desk.thread, run)
    assert made(final) == ["wire"]


async def test_a_second_goal_waits_for_the_first_when_the_caller_says_enqueue(desk: Desk) -> None:
    await desk.begun("wire")
    await desk.wired()
    second = await desk.begun("total", multitask_strategy="enqueue")
    desk.let("go")
    final: Any = await desk.client.runs.join(desk.thread, second)
    assert (final["outcome"]["status"], final["goal"]["revision"], final["ledger"]["run"]) == ("satisfied", 2, 2)
    assert set(final["world"]["artifacts"]) == {"purse", "wire", "numbers", "total"}
    assert desk.server.effects("wired", desk.purse) == 1


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
async def test_a_second_goal_that_takes_over_repeats_no_write_of_the_first(desk: Desk, strategy: Any) -> None:
    await desk.begun("wire")
    await desk.wired()
    second = await desk.begun("wire", "total", multitask_strategy=strategy)
    desk.let("go")
    final: Any = await desk.client.runs.join(desk.thread, second)
    assert final["outcome"]["status"] == "satisfied"
    assert set(final["world"]["artifacts"]) == {"purse", "wire", "numbers", "total"}
    # what was interrupted is told of in the second run; what was rolled back was to be forgotten, but for the world
    assert final["goal"]["revision"] == (2 if strategy == "interrupt" else 1)
    assert desk.server.effects("wired", desk.purse) == 1


async def test_two_goals_at_once_are_both_reached_one_after_the_other(desk: Desk) -> None:
    runs = await asyncio.gather(*(desk.begun(each, multitask_strategy="enqueue") for each in ("receipt", "total")))
    ends: list[Any] = [await desk.client.runs.join(desk.thread, each) for each in runs]
    assert [(await desk.client.runs.get(desk.thread, each))["status"] for each in runs] == ["success", "success"]
    assert set(ends[-1]["world"]["artifacts"]) == {"purse", "numbers", "total", "receipt"}
    assert desk.server.effects("paid", desk.purse) == 1

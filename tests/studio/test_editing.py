"""Edits in Studio's state panel: another goal is an intent change, another world an observation; nothing is lost."""

from typing import Any

import pytest
from langgraph_sdk.errors import BadRequestError

from tests.studio.driving import Desk, made


async def test_another_goal_given_changes_the_intent_and_keeps_what_is_done(desk: Desk) -> None:
    assert (await desk.run("total"))["goal"]["revision"] == 1
    final = await desk.run("total", "receipt")
    assert (final["goal"]["revision"], final["outcome"]["status"]) == (2, "satisfied")
    assert made(final) == ["receipt"]
    assert desk.server.effects("paid", desk.purse) == 1


@pytest.mark.parametrize("node", [None, "finisher"])
async def test_a_goal_edited_in_the_state_is_what_the_next_run_reaches(desk: Desk, node: str | None) -> None:
    await desk.run("numbers")
    await desk.edit(desk.goal("total"), node)
    final = await (desk.run(input={"facts": {}}) if node == "finisher" else desk.run())
    assert final["goal"]["revision"] == 2
    assert made(final) == ["total"]


async def test_a_fact_edited_while_the_run_pauses_does_not_lose_its_way(desk: Desk) -> None:
    paused = await desk.run("total", interrupt_before=["verifier"])
    assert paused["phase"] == "verifier"
    assert paused["attempts"]
    await desk.edit({"facts": {"season": "winter"}})
    assert (await desk.state())["next"] == ["intake"]  # what a caller may state comes in where callers state it
    final = await desk.run()
    assert final["outcome"]["status"] == "satisfied"
    assert made(final) == ["numbers", "total"]
    assert final["world"]["facts"]["season"]["value"] == "winter"


@pytest.mark.parametrize("node", [None, "finisher"])
async def test_an_artifact_taken_out_of_the_world_is_made_again_but_nothing_is_paid_twice(
    desk: Desk, node: str | None
) -> None:
    world = (await desk.run("receipt"))["world"]
    for name in ("total", "receipt"):
        del world["artifacts"][name]
    world["facts"] = {"season": {"name": "season", "value": "winter"}}
    await desk.edit({"world": world}, node)
    final = await (desk.run("receipt") if node else desk.run())
    assert final["outcome"]["status"] == "satisfied"
    assert final["world"]["facts"]["season"]["version"] == 1
    assert made(final) == ["total", "receipt"]
    assert desk.server.effects("paid", desk.purse) == 1


@pytest.mark.parametrize("node", [None, "finisher"])
async def test_a_plan_thrown_away_is_drawn_again_and_no_work_is_repeated(desk: Desk, node: str | None) -> None:
    await desk.run("receipt")
    await desk.edit({"plan": {}}, node)
    final = await (desk.run("receipt") if node else desk.run())
    assert (final["outcome"]["status"], made(final)) == ("satisfied", [])
    assert desk.server.effects("paid", desk.purse) == 1


async def test_what_a_node_wrote_can_be_edited_as_studio_shows_it(desk: Desk) -> None:
    await desk.run("receipt")
    shown: Any = None
    history = await desk.client.threads.get_history(desk.thread, limit=100)
    for each in history:
        shown = next((task for task in each["tasks"] if task["name"] == "executor"), shown)
        if shown is not None:
            break
    values = {name: each for name, each in shown["result"].items() if name != "trace"}
    await desk.client.threads.update_state(desk.thread, values, as_node="executor", checkpoint=each["checkpoint"])
    final = await desk.run()
    assert final["outcome"]["status"] == "satisfied"
    assert desk.server.effects("paid", desk.purse) == 1


NO_EDITS: dict[str, dict[str, Any]] = {
    "the state has no 'gaol'; it has: goal, ": {"gaol": {}},
    "goal.wantz: there is no such field; there are: text, wants": {"goal": {"wantz": []}},
    "world.artefacts: there is no such field": {"world": {"artefacts": {}}},
    "plan.steps: input should be a valid tuple, not 3": {"plan": {"steps": 3}},
    "phase: input should be 'intake'": {"phase": "nowhere"},
    "outcome.status: input should be": {"outcome": {"status": "good"}},
}


async def test_an_edit_that_makes_no_sense_is_refused_in_a_sentence_and_changes_nothing(desk: Desk) -> None:
    await desk.run("numbers")
    before = await desk.state()
    for why, edit in NO_EDITS.items():
        for node in (None, "finisher"):
            with pytest.raises(BadRequestError) as refused:
                await desk.edit(edit, node)
            assert why in str(refused.value)
    assert await desk.state() == before


async def test_an_input_that_makes_no_sense_is_refused_in_a_sentence_and_changes_nothing(desk: Desk) -> None:
    before = (await desk.run("numbers"))["world"]
    assert (await desk.refused(input={"gaol": {}})) == "the input has no 'gaol'; it has: goal, facts, messages"
    assert (await desk.refused(input={"goal": {"wants": 3}})).startswith("goal.wants: input should be a valid tuple")
    assert "predicate does not compile" in await desk.refused(input={"goal": {"criteria": ["artifacts.a >"]}})
    assert (await desk.state())["values"]["world"] == before
    assert made(await desk.run("total")) == ["total"]

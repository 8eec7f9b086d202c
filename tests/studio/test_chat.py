"""Chat mode: a message states the goal, progress is told, and the answer comes back as a message."""

from typing import Any

from tests.studio.driving import Desk, made


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def test_a_message_is_a_goal_and_a_second_one_another_goal_that_keeps_what_is_done(desk: Desk) -> None:
    first = await desk.run(graph="talking", input=_said("Please count the numbers"))
    assert [each["type"] for each in first["messages"]] == ["human", "ai"]
    assert first["messages"][-1]["content"].startswith("satisfied: every step and criterion is verified\n- numbers")
    assert (first["goal"]["text"], first["goal"]["wants"]) == ("Please count the numbers", ["total"])
    second = await desk.run(graph="talking", input=_said(f"Please settle from {desk.purse} now"))
    assert [each["type"] for each in second["messages"]] == ["human", "ai", "human", "ai"]
    assert second["goal"]["text"] == f"Please settle from {desk.purse} now"
    assert (second["outcome"]["status"], made(second)) == ("satisfied", ["receipt"])
    assert desk.server.effects("paid", desk.purse) == 1


async def test_the_same_message_again_pays_nothing_again(desk: Desk) -> None:
    for _ in range(2):
        final = await desk.run(graph="talking", input=_said(f"Please settle from {desk.purse} now"))
        assert final["outcome"]["status"] == "satisfied"
    assert desk.server.effects("paid", desk.purse) == 1


async def test_a_model_named_in_the_context_reads_the_message(desk: Desk) -> None:
    without = await desk.run(input=_said("Please count the numbers"))
    assert "a goal that is only text needs a model" in without["messages"][-1]["content"]
    final = await desk.run(input=_said("Please count them"), context={"model": "openai:scripted"})
    assert final["outcome"]["status"] == "satisfied"
    assert final["messages"][-1]["content"].startswith("satisfied")

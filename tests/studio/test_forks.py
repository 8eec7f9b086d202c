"""Time travel: a run that goes on from any checkpoint repeats no effect."""

from typing import Any

from tests.studio.driving import Desk, made


async def test_a_fork_from_any_checkpoint_of_a_finished_run_does_not_pay_again(desk: Desk) -> None:
    await desk.run("receipt")
    history = await desk.client.threads.get_history(desk.thread, limit=100)
    places = [each for each in history if each["next"]]
    assert {each["next"][0] for each in places} >= {"intake", "dispatcher", "planner", "executor"}
    for each in places:
        final = await desk.run(checkpoint=each["checkpoint"])
        assert final["outcome"]["status"] == "satisfied", each["next"]
        assert final["outcome"]["artifacts"]["receipt"]["value"] == {"paid": sum(range(5000))}
    assert desk.server.effects("paid", desk.purse) == 1


async def test_a_fork_with_another_goal_keeps_what_the_world_has(desk: Desk) -> None:
    await desk.run("receipt")
    history = await desk.client.threads.get_history(desk.thread, limit=100)
    early = next(each for each in reversed(history) if each["next"] == ["executor"])
    await desk.client.threads.update_state(
        desk.thread, desk.goal("receipt", "approval"), checkpoint=early["checkpoint"]
    )
    desk.let("open")
    final = await desk.run()
    assert (final["goal"]["revision"], final["outcome"]["status"]) == (2, "satisfied")
    assert desk.server.effects("paid", desk.purse) == 1


async def test_a_copy_of_a_thread_is_a_thread_of_its_own(desk: Desk) -> None:
    await desk.run("total")
    copy: Any = await desk.client.http.post(f"/threads/{desk.thread}/copy", json=None)
    other = desk._replace(thread=copy["thread_id"])
    final: Any = await other.client.runs.wait(other.thread, "kintsugi", input=desk.goal("receipt"))
    assert final["outcome"]["status"] == "satisfied"
    assert made(final) == ["receipt"]
    assert desk.server.effects("paid", desk.purse) == 1

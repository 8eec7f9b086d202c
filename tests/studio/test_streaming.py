"""What a user of the development server sees of a run while it goes on, in each of the stream modes."""

from typing import Any

from tests.studio.driving import Desk

PHASES = ["intake", "dispatcher", "planner", "dispatcher", "executor", "executor", "dispatcher", "finisher"]


def _steps(world: dict[str, Any]) -> set[str]:
    return set(world["artifacts"]) - {"purse"}


async def test_values_show_the_world_grow_and_the_outcome_at_the_end(desk: Desk) -> None:
    states = [each.data for each in await desk.streamed("values", "total") if each.data.get("phase")]
    assert [each["phase"] for each in states if "phase" in each][-1] == "__end__"
    seen = [_steps(each["world"]) for each in states]
    assert seen == sorted(seen, key=len)
    assert seen[-1] == {"numbers", "total"}
    assert states[-1]["outcome"]["status"] == "satisfied"
    assert states[-1]["outcome"]["artifacts"]["total"]["value"] == sum(range(5000))
    assert states[-1]["world"]["artifacts"]["numbers"]["stored"] is True
    history: Any = await desk.client.threads.get_history(desk.thread, limit=100)
    kept = [each["values"] for each in reversed(history)]
    for name in ("world", "plan"):
        assert [each[name] for each in kept if each.get("phase")] == [each[name] for each in states]


async def test_updates_name_the_phases_in_the_order_of_the_loop(desk: Desk) -> None:
    assert [phase for each in await desk.streamed("updates", "total") for phase in each.data] == PHASES


async def test_custom_tells_every_record_of_the_trace_as_it_is_written(desk: Desk) -> None:
    told = [each.data for each in await desk.streamed("custom", "total")]
    assert [each["intent"] for each in told if each["event"] == "step_started"] == [
        "Fetch more numbers than fit into state",
        "Add up",
    ]
    assert told[-1]["reason"] == "every step and criterion is verified"
    assert told == (await desk.state())["values"]["trace"]


async def test_messages_bring_the_answer(desk: Desk) -> None:
    parts = await desk.streamed("messages", "total")
    (answer,) = [message for each in parts if each.event == "messages/complete" for message in each.data]
    assert answer["type"] == "ai"
    assert answer["content"].splitlines()[0] == "satisfied: every step and criterion is verified"
    parts = await desk.streamed("messages-tuple", "total")
    assert [each.data[0]["content"].splitlines()[0] for each in parts if each.event == "messages"] == [
        "satisfied: every step and criterion is verified"
    ]


async def test_debug_tasks_and_checkpoints_show_each_phase_with_its_checkpoint(desk: Desk) -> None:
    parts = await desk.streamed("debug", "total")
    of_tasks = [each.data for each in parts if each.data["type"] == "task_result"]
    assert [each["payload"]["name"] for each in of_tasks] == PHASES
    assert not any(each["payload"]["error"] for each in of_tasks)
    assert sum(each.data["type"] == "checkpoint" for each in parts) >= len(PHASES)


async def test_events_tell_of_every_phase_and_of_nothing_twice(desk: Desk) -> None:
    parts = await desk.streamed("events", "total")
    ended = [each.data["name"] for each in parts if each.data["event"] == "on_chain_end"]
    assert [each for each in ended if each in PHASES] == PHASES


async def test_several_modes_at_once_and_subgraphs_are_one_run(desk: Desk) -> None:
    parts = [
        part
        async for part in desk.client.runs.stream(
            desk.thread,
            "kintsugi",
            input=desk.goal("receipt"),
            stream_mode=["values", "updates", "custom", "messages", "debug"],
            stream_subgraphs=True,
        )
    ]
    kinds = {each.event.split("/")[0] for each in parts}
    assert {"metadata", "values", "updates", "custom", "messages", "debug"} <= kinds
    assert desk.server.effects("paid", desk.purse) == 1

"""The records of a trace can be followed one by one while a run goes on, sync and async."""

from typing import Any

from agent import build_graph
from tests.builders import Calls, calm, goal, once, thread


async def test_records_are_streamed_as_they_are_written() -> None:
    graph: Any = build_graph([Calls().tool("x", "", once(ConnectionError("reset")))], settings=calm())
    for parts in (
        list(graph.stream({"goal": goal("x")}, thread(), stream_mode=["custom", "values"])),
        [each async for each in graph.astream({"goal": goal("x")}, thread(), stream_mode=["custom", "values"])],
    ):
        streamed = [part for mode, part in parts if mode == "custom"]
        assert [each.event for each in streamed][:4] == ["run_started", "triaged", "planned", "step_started"]
        assert streamed == parts[-1][1]["trace"]

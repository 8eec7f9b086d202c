"""The server itself: it dies without a word and comes back, and nothing of ours holds up its event loop."""

from pathlib import Path

import pytest
from langgraph_sdk import get_client

from agent.settings import Settings
from graphs.runtime import make_graph
from tests.studio.driving import Desk
from tests.studio.server import Server, kill, started


async def test_a_server_killed_in_the_midst_of_a_write_leaves_behind_what_the_next_one_needs(
    tmp_path: Path, server: Server
) -> None:
    first = started(tmp_path, server.folder / "home")
    try:
        async with get_client(url=first.url) as client:
            desk = await Desk.opened(client, first)
            await desk.run("receipt")
            await desk.begun("receipt", "wire")
            await desk.wired()
    finally:
        kill(first)
    async with get_client(url=server.url) as client:
        # what the first had kept in memory of the thread is lost; what it did in the world is not
        await client.threads.create(thread_id=desk.thread)
        desk = desk._replace(client=client)
        await desk.run("receipt", "wire")
        (question,) = (await desk.asked()).values()
        assert "the effect of the call is unknown" in question["learned"]
        final = await desk.answer({question["id"]: {"choice": "answer", "value": "the bank says: wired"}})
        assert final["outcome"]["status"] == "satisfied"
        assert final["outcome"]["artifacts"]["wire"]["value"] == "the bank says: wired"
    assert first.effects("paid", desk.purse) == first.effects("wired", desk.purse) == 1
    assert server.effects("paid", desk.purse) == server.effects("wired", desk.purse) == 0


def test_nothing_in_our_code_blocks_the_event_loop(server: Server) -> None:
    # among the last of those that use the server: it reads what all of them made it say
    assert "BlockingError" not in server.log
    assert "Blocking call" not in server.log


def test_without_tools_the_graph_is_there_and_says_how_to_name_some(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graph = make_graph(Settings(home=tmp_path, tools=None))
    assert "name some in KINTSUGI_TOOLS" in caplog.text
    assert graph.get_graph().edges
    assert (graph.checkpointer, graph.store) == (None, None)  # the server refuses a graph that brings its own

"""What LangGraph Studio sees: the development server, started for real, driven by its own client."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from agent.core.phase import LEGAL, START, Phase

ROOT = Path(__file__).parents[2]
PATIENCE = 120
"""Polls, half a second apart: a first start on a busy machine reads many modules."""

TOOLS = '''
"""Read numbers, add them up, pay the sum; and a desk that is closed until somebody opens it."""

from pathlib import Path

from langchain_core.tools import tool

from agent import contract

PAID, OPEN = Path("paid.txt"), Path("open")


@contract(effect="read_only")
@tool
def numbers() -> list[int]:
    """Fetch more numbers than fit into state."""
    return list(range(5000))


@contract(effect="read_only", ensures="artifacts.total > 0")
@tool
async def total(numbers: list[int]) -> int:
    """Add up."""
    return sum(numbers)


@contract(produces="receipt", ensures="artifacts.receipt.paid == artifacts.total", idempotent=False)
@tool
def pay(total: int) -> dict:
    """Pay the sum; doing it twice costs twice."""
    with PAID.open("a") as book:
        book.write(f"{total}\\n")
    return {"paid": total}


@contract(produces="approval", effect="read_only")
@tool
def approve(total: int) -> str:
    """Ask the desk."""
    if not OPEN.exists():
        raise PermissionError("the desk is closed: access denied")
    return "approved"


TOOLS = [numbers, total, pay, approve]
'''


class Server(NamedTuple):
    url: str
    folder: Path
    log: Path

    @property
    def paid(self) -> list[str]:
        book = self.folder / "paid.txt"
        return book.read_text().split() if book.exists() else []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("studio")
    (folder / "studio_tools.py").write_text(TOOLS)
    config = json.loads((ROOT / "langgraph.json").read_text())
    config["graphs"] = {name: str(ROOT / path) for name, path in config["graphs"].items()}
    (folder / "langgraph.json").write_text(json.dumps({**config, "env": {}}))
    port = _free_port()
    log = folder / "server.log"
    with log.open("w") as sink:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("langgraph"), "dev", "--no-browser", "--no-reload", "--port", str(port)],
            cwd=folder,
            env=_environment(folder),
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_up(f"http://127.0.0.1:{port}/ok", process, log)
        yield Server(f"http://127.0.0.1:{port}", folder, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KINTSUGI_", "LANGSMITH_"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "KINTSUGI_HOME": str(folder / "home"),
        "KINTSUGI_TOOLS": "studio_tools:TOOLS",
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_STRICT_MSGPACK": "true",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(PATIENCE):
        try:
            with urlopen(url, timeout=2) as answer:
                assert answer.status == 200
                return
        except (URLError, OSError):
            assert process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.5)
    raise AssertionError(f"the server did not come up: {log.read_text()[-3000:]}")


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server.url) as connected:
        yield connected


async def _thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


def _goal(*wants: str) -> dict[str, Any]:
    return {"goal": {"wants": list(wants)}}


async def _run(client: LangGraphClient, thread: str, *wants: str, **more: Any) -> dict[str, Any]:
    """Run to the end, or to the question; a run that broke is an error here."""
    given: dict[str, Any] = {"input": _goal(*wants)} if wants else {}
    final: Any = await client.runs.wait(thread, "kintsugi", **given, **more)
    assert isinstance(final, dict)
    assert "__error__" not in final, final["__error__"]
    return final


def _artifacts(state: Any) -> set[str]:
    return set(state["values"]["world"]["artifacts"])


def _made(final: dict[str, Any]) -> list[str]:
    """Names in the order they were committed in this run; those that came out the same included."""
    run = final["ledger"]["run"]
    return [each["name"] for each in final["trace"] if each["event"] == "committed" and each["run"] == run]


async def test_a_run_is_streamed_phase_by_phase_to_its_end(client: LangGraphClient) -> None:
    thread, phases, last = await _thread(client), [], {}
    async for part in client.runs.stream(thread, "kintsugi", input=_goal("total"), stream_mode=["updates", "values"]):
        assert part.event != "error", part.data
        if part.event == "updates":
            phases += list(part.data)
        elif part.event == "values":
            last = part.data
    assert phases[:4] == ["intake", "dispatcher", "planner", "dispatcher"]
    assert phases[-2:] == ["dispatcher", "finisher"]
    assert last["outcome"]["status"] == "satisfied"
    assert last["outcome"]["artifacts"]["total"]["value"] == sum(range(5000))
    assert last["world"]["artifacts"]["numbers"]["stored"] is True


async def test_a_run_with_no_way_out_asks_and_goes_on_with_the_answer(client: LangGraphClient, server: Server) -> None:
    thread = await _thread(client)
    await _run(client, thread, "approval")
    state: Any = await client.threads.get_state(thread)
    (asked,) = [each for task in state["tasks"] for each in task["interrupts"]]
    (question,) = asked["value"]["questions"].values()
    assert "the desk is closed" in question["error"]
    (server.folder / "open").touch()
    final = await _run(client, thread, command={"resume": {question["id"]: {"choice": "retry"}}})
    assert final["outcome"]["status"] == "satisfied"
    assert final["outcome"]["artifacts"]["approval"]["value"] == "approved"


async def test_a_goal_stated_as_a_plain_object_changes_the_intent_and_keeps_what_is_done(
    client: LangGraphClient, server: Server
) -> None:
    thread, before = await _thread(client), len(server.paid)
    assert (await _run(client, thread, "total"))["goal"]["revision"] == 1
    final = await _run(client, thread, "total", "receipt")
    assert final["goal"]["revision"] == 2
    assert final["outcome"]["status"] == "satisfied"
    assert _made(final) == ["receipt"]
    assert len(server.paid) == before + 1


async def test_a_goal_edited_in_the_state_is_what_the_next_run_reaches(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await _run(client, thread, "numbers")
    await client.threads.update_state(thread, {"goal": {"wants": ["total"]}}, as_node="finisher")
    final = await _run(client, thread, input={"facts": {}})
    assert final["goal"]["revision"] == 2
    assert _made(final) == ["total"]


async def test_a_fact_edited_while_the_run_pauses_does_not_lose_its_way(client: LangGraphClient) -> None:
    thread = await _thread(client)
    paused = await _run(client, thread, "total", interrupt_before=["verifier"])
    assert paused["phase"] == "verifier"
    assert paused["attempts"]
    await client.threads.update_state(thread, {"facts": {"season": "winter"}})
    state: Any = await client.threads.get_state(thread)
    assert state["next"] == ["intake"]  # what a caller may state comes in where callers state it
    final = await _run(client, thread)
    assert final["outcome"]["status"] == "satisfied"
    assert _made(final) == ["numbers", "total"]


async def test_an_artifact_taken_out_of_the_world_by_hand_is_made_again_but_nothing_is_paid_twice(
    client: LangGraphClient, server: Server
) -> None:
    thread, before = await _thread(client), len(server.paid)
    world = (await _run(client, thread, "receipt"))["world"]
    world["artifacts"] = {name: each for name, each in world["artifacts"].items() if name == "numbers"}
    world["facts"] = {"season": {"name": "season", "value": "winter"}}
    await client.threads.update_state(thread, {"world": world}, as_node="finisher")
    final = await _run(client, thread, "receipt")
    assert final["outcome"]["status"] == "satisfied"
    assert final["world"]["facts"]["season"]["version"] == 1
    assert _made(final) == ["total", "receipt"]
    assert len(server.paid) == before + 1


async def test_a_plan_thrown_away_by_hand_is_drawn_again_and_no_work_is_repeated(
    client: LangGraphClient, server: Server
) -> None:
    thread, before = await _thread(client), len(server.paid)
    await _run(client, thread, "receipt")
    await client.threads.update_state(thread, {"plan": {}}, as_node="finisher")
    final = await _run(client, thread, "receipt")
    assert final["outcome"]["status"] == "satisfied"
    assert _made(final) == []
    assert len(server.paid) == before + 1


async def test_an_edit_that_is_no_world_is_refused_and_changes_nothing(client: LangGraphClient) -> None:
    thread = await _thread(client)
    before = (await _run(client, thread, "total"))["world"]
    with pytest.raises(Exception, match="artefacts"):
        await client.threads.update_state(thread, {"world": {"artefacts": {}}}, as_node="finisher")
    state: Any = await client.threads.get_state(thread)
    assert state["values"]["world"] == before


async def test_a_fork_from_before_the_payment_does_not_pay_again(client: LangGraphClient, server: Server) -> None:
    thread, before = await _thread(client), len(server.paid)
    await _run(client, thread, "receipt")
    history = await client.threads.get_history(thread, limit=100)
    # its step is marked running there already, as after a kill
    earlier = next(
        each for each in history if each["next"] == ["executor"] and _artifacts(each) == {"numbers", "total"}
    )
    final = await _run(client, thread, checkpoint=earlier["checkpoint"])
    assert final["outcome"]["status"] == "satisfied"
    assert _made(final) == ["numbers", "total", "receipt"]
    assert len(server.paid) == before + 1


async def test_every_checkpoint_of_the_history_holds_the_world_as_it_was(client: LangGraphClient) -> None:
    thread = await _thread(client)
    seen = [
        (part.data["world"], part.data["plan"])
        async for part in client.runs.stream(thread, "kintsugi", input=_goal("receipt"), stream_mode=["values"])
        if part.event == "values" and part.data.get("world")
    ]
    history: Any = await client.threads.get_history(thread, limit=100)
    kept = [(each["values"]["world"], each["values"]["plan"]) for each in reversed(history)]
    assert kept[-len(seen) :] == seen


async def test_the_server_draws_exactly_the_edges_of_the_phase_table(client: LangGraphClient) -> None:
    (assistant,) = await client.assistants.search(graph_id="kintsugi")
    drawn = await client.assistants.get_graph(assistant["assistant_id"])
    ends = {Phase.END: "__end__"}
    legal = {(source.value, ends.get(to, to.value)) for source, targets in LEGAL.items() for to in targets}
    assert {(each["source"], each["target"]) for each in drawn["edges"]} == {("__start__", START.value), *legal}


async def test_what_a_caller_has_to_fill_in_is_small(client: LangGraphClient) -> None:
    (assistant,) = await client.assistants.search(graph_id="kintsugi")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    schema = schemas["input_schema"]
    assert schema is not None
    assert set(schema["properties"]) == {"goal", "facts", "messages"}
    assert not schema.get("required")
    assert {"goal", "world", "plan", "outcome"} <= set((schemas["state_schema"] or {})["properties"])


def test_nothing_in_our_code_blocks_the_event_loop(server: Server) -> None:
    # last of those that use the server, in the order of this file: it reads what all of them made it say
    said = server.log.read_text()
    assert "BlockingError" not in said
    assert "Blocking call" not in said


def test_each_graph_can_be_loaded_by_its_path_from_any_folder(tmp_path: Path) -> None:
    graphs = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    loading = textwrap.dedent(
        """
        import importlib.util, sys
        path, _, name = sys.argv[1].rpartition(":")
        spec = importlib.util.spec_from_file_location("loaded_by_path", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert getattr(module, name).get_graph().edges
        """
    )
    for entry in graphs.values():
        done = subprocess.run(
            [sys.executable, "-c", loading, str(ROOT / entry)],
            cwd=tmp_path,
            env={**_environment(tmp_path), "KINTSUGI_TOOLS": ""},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr

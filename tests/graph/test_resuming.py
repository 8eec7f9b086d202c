"""An attempt that was broken off goes on after its last turn: what was said is not asked again, nor paid twice."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent.core.lease import Superseded
from agent.core.plan import Step, StepId
from agent.ports import Said, Task
from agent.secrecy import HIDDEN, keep
from agent.store.artifacts import DatabaseArtifacts
from agent.store.checkpoints import open_saver
from agent.store.collecting import collect, forget
from agent.store.database import Database, Place, open_database
from agent.store.leases import Leases
from agent.store.postgres import Postgres
from agent.store.turns import DatabaseTurns
from graphs.resuming import INTERRUPTED
from tests.builders import arun, run, thread, values
from tests.forks import Fork
from tests.graph.broken_off import LARGE, TEXT, graph, live, playing, tools, turn
from tests.models.openai_server import Server, openai_server

GOAL: Any = {"goal": {"text": TEXT}}


def kept(database: Database) -> int:
    return int(database.quick.call(lambda c: c.execute("SELECT count(*) FROM kintsugi_turns").fetchone())[0])


def asked(server: Server) -> list[int]:
    return [turn(each) for each in server.requests]


@pytest.mark.parametrize(
    ("doomed", "turns"),
    [("note", [0, 1, 2, 3]), ("look b", [0, 1, 2, 3]), ("", [0, 1, 2, 3, 3])],
    ids=["in a write", "in a read", "while the model is asked"],
)
def test_a_killed_step_goes_on_after_its_last_turn(doomed: str, turns: list[int], place: Place, tmp_path: Path) -> None:
    lives: list[Fork] = []

    def before(number: int) -> None:
        if not doomed and number == 3 and lives[0].returncode is None:
            os.kill(lives[0].pid, signal.SIGKILL)

    where = place.url if isinstance(place, Postgres) else str(place)
    with openai_server(playing(before)) as server, open_database(place) as database:
        lives.append(Fork(live, ["life", where, server.url, doomed], tmp_path, dict(os.environ)))
        told = lives[0].communicate()[1]
        assert lives[0].returncode == -signal.SIGKILL, told
        assert kept(database) == 1
        with closing((saver := open_saver(place)).conn):
            end = run(graph(saver, server.url, tools(tmp_path / "world")), None)
        assert kept(database) == 0
    assert (values(end), end["outcome"].status) == ({"answer": "done"}, "satisfied")
    assert (tmp_path / "world").read_text() == "milk\n"
    assert asked(server) == turns
    assert end["ledger"].executor_turns == len(turns), "also what nobody heard the answer of is charged"
    assert end["ledger"].tokens > 400 if not doomed else end["ledger"].tokens == 400
    answers = [each["content"] for each in server.requests[-1]["messages"] if each["role"] == "tool"]
    assert [INTERRUPTED in each for each in answers] == [each == doomed for each in ("look a", "note", "look b")]
    assert "read_more" in answers[2] and len(answers[2]) < len(LARGE)


async def broken_off(url: str, world: Path, saver: InMemorySaver) -> None:
    """A run that is cancelled in the write of its step, which is not waited for."""
    running: list[asyncio.Task[Any]] = []
    loop, over = asyncio.get_running_loop(), threading.Event()

    def reach(name: str) -> None:
        if name == "note":
            loop.call_soon_threadsafe(running[0].cancel)
            assert over.wait(60)

    app = graph(saver, url, tools(world, reach))
    app.grace = 0.0
    running.append(asyncio.create_task(arun(app, GOAL)))
    with pytest.raises(asyncio.CancelledError):
        await running[0]
    over.set()


async def test_a_cancelled_step_goes_on_after_its_last_turn(tmp_path: Path) -> None:
    saver = InMemorySaver()
    with openai_server(playing()) as server:
        await broken_off(server.url, tmp_path / "world", saver)
        assert asked(server) == [0, 1]
        end = await arun(graph(saver, server.url, tools(tmp_path / "world")), None)
    assert values(end) == {"answer": "done"}
    assert asked(server) == [0, 1, 2, 3]
    assert (tmp_path / "world").read_text() == "milk\n"


def another_goal(app: Any) -> Any:
    return app.invoke({"goal": {"text": TEXT, "constraints": ["Be quick"]}}, thread())


def a_fork(app: Any) -> Any:
    older = next(each for each in app.get_state_history(thread()) if each.next == ("planner",))
    return app.invoke(None, older.config)


def another_instruction(app: Any) -> Any:
    plan = app.get_state(thread()).values["plan"]
    app.update_state(thread(), {"plan": plan.with_steps(plan.steps[0].model_copy(update={"hint": "Be quick"}))})
    return app.invoke(None, thread())


@pytest.mark.parametrize("again", [another_goal, a_fork, another_instruction])
async def test_turns_are_not_taken_up_where_they_do_not_belong(again: Callable[[Any], Any], tmp_path: Path) -> None:
    saver = InMemorySaver()
    with openai_server(playing()) as server:
        await broken_off(server.url, tmp_path / "world", saver)
        before = asked(server)
        app = graph(saver, server.url, tools(tmp_path / "world"))
        await asyncio.to_thread(again, app)
    assert before == [0, 1]
    assert asked(server)[2] == 0, "the model is asked from the start"
    assert (tmp_path / "world").read_text() == "milk\n", "and the journal knows what it did"


def task(step: str = "s", start: str = "1", fence: int | None = None) -> Task:
    done = Step(id=StepId(step), intent="i", instruction="look")
    return Task(thread="t", step=done, args={}, inputs={}, facts={}, start=start, fence=fence)


async def test_what_is_kept_is_masked_and_fenced_swept_collected_and_forgotten(place: Place) -> None:
    keep("a-secret-of-ours")
    said = Said(talk={"messages": ["use a-secret-of-ours"]}, kept={"r1": LARGE, "r2": "small"}, told=True)
    with open_database(place) as database, closing((saver := open_saver(place)).conn):
        turns = DatabaseTurns(database, DatabaseArtifacts(database), 4096, now=lambda: 1.0)
        for step in ("s", "other"):
            await (await turns.of(task(step))).keep(said)
        found = (await turns.of(task())).begun
        assert found == said.model_copy(update={"talk": {"messages": [f"use {HIDDEN}"]}})
        assert (await turns.of(task(start="2"))).begun is None
        await turns.sweep("t", ["s"])
        assert ((await turns.of(task())).begun, (await turns.of(task("other"))).begun) == (found, None)
        leases = Leases(database, 30.0)
        with leases.held("t"):
            pass
        with leases.held("t") as hold:
            with pytest.raises(Superseded):
                await (await turns.of(task(fence=hold.token - 1))).keep(said)
            with pytest.raises(Superseded):
                await turns.sweep("t", (), hold.token - 1)
        assert collect(database, saver, now=lambda: 2.0).bodies == 0
        assert (await turns.of(task())).begun == found, "its large results are reached through it"
        assert (kept(database), collect(database, saver, now=lambda: 1e12).bodies, kept(database)) == (1, 1, 0)
        await (await turns.of(task())).keep(said)
        forget(database, saver, "t")
        assert kept(database) == 0

"""Databases of every released schema are still understood: runs listed, state read, resumed, effects found."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from agent.app import assemble
from agent.core.effect import EffectStatus
from agent.core.limits import Limits
from agent.settings import Settings
from agent.store.artifacts import DatabaseArtifacts
from agent.store.checkpoints import open_saver
from agent.store.database import Database, Place, open_database
from agent.store.inbox import GoalInbox
from agent.store.journal import DatabaseJournal
from agent.store.runs import RunIndex
from agent.store.schema import SCHEMA
from graphs.loop import LoopGraph
from tests.store.conftest import GOLDEN
from tests.store.golden.jobs import TEXT, TOOLS


@pytest.fixture
def golden(old: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A golden database, in the world that its killed run left behind."""
    monkeypatch.chdir(tmp_path)
    Path("parcel").write_text("800")
    with open_database(old) as database:
        yield database


def graph(database: Database) -> LoopGraph:
    settings = Settings(limits=Limits(backoff=0.01))
    return assemble(TOOLS, database, settings, checkpointer=open_saver(database))


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def calls() -> list[str]:
    return Path("calls").read_text().split() if Path("calls").exists() else []


def test_its_runs_are_listed(golden: Database) -> None:
    found = {run.thread: (run.status, run.tools) for run in RunIndex(golden).list()}
    tools = "tests.store.golden.jobs:TOOLS"
    assert found == {
        "finished": ("satisfied", tools),
        "killed": ("running", tools),
        "waiting": ("waiting", tools),
    }


def test_its_state_effects_and_artifacts_are_read(golden: Database) -> None:
    state = graph(golden).get_state(thread("finished")).values
    assert state["outcome"].status == "satisfied"
    assert {type(each).__name__ for each in state["trace"]} > {"Committed", "Recovered", "StepStarted"}
    orders = state["world"].artifacts["orders"]
    assert orders.stored
    assert len(asyncio.run(DatabaseArtifacts(golden).get(orders.digest))) == 800  # type: ignore[arg-type]
    entries = asyncio.run(DatabaseJournal(golden).entries("finished"))
    assert [(each.identity.tool, each.status) for each in entries] == [
        ("reserve", EffectStatus.DONE),
        ("ship", EffectStatus.DONE),
    ]
    assert entries[0].result == {"count": 800, "text": TEXT}
    assert len(list(graph(golden).get_state_history(thread("finished")))) > 20


def test_its_killed_run_goes_on_to_the_end_and_repeats_nothing(golden: Database) -> None:
    end = graph(golden).invoke(None, thread("killed"))
    assert end["outcome"].status == "satisfied"
    assert end["world"].artifacts["report"].value == 800
    assert calls() == []
    (_, ship) = asyncio.run(DatabaseJournal(golden).entries("killed"))
    assert ship.status is EffectStatus.ADOPTED


def test_its_waiting_run_takes_an_answer(golden: Database) -> None:
    loop = graph(golden)
    assert loop.get_state(thread("waiting")).interrupts
    end = loop.invoke(Command(resume={"choice": "answer", "value": "paid by hand"}), thread("waiting"))
    assert end["world"].artifacts["receipt"].value == "paid by hand"
    assert "pay" not in calls()


def test_a_letter_in_its_inbox_is_heard(golden: Database) -> None:
    goal = GoalInbox(golden).unheard("waiting", 0)
    assert goal is not None
    assert goal.wants == ("reservation",)


def test_none_is_missing_and_none_is_of_a_schema_to_come() -> None:
    for first, kind in ((1, "db"), (2, "sql")):  # no Postgres had schema 1
        found = sorted(each.name for each in GOLDEN if each.suffixes == [f".{kind}", ".gz"])
        assert found == [f"schema-{number}.{kind}.gz" for number in range(first, first + len(found))]
        assert first <= first + len(found) - 1 <= SCHEMA

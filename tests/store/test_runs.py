from collections.abc import Callable

import pytest

from agent.store.database import Database, Place, open_database
from agent.store.runs import RUNNING, WAITING, Run, RunIndex
from tests.store.conftest import Child, spelled


def test_an_accepted_run_is_listed_with_its_goal(database: Database) -> None:
    index = RunIndex(database)
    index.started("42", goal="load it", tools="jobs:TOOLS", source="goal.toml", at=1.5)
    assert index.list() == (
        Run(
            thread="42",
            goal="load it",
            status=RUNNING,
            tools="jobs:TOOLS",
            source="goal.toml",
            started_at=1.5,
            updated_at=1.5,
        ),
    )


def test_a_run_that_ended_shows_how_and_when(database: Database) -> None:
    index = RunIndex(database)
    index.started("42", goal="load it", at=1.0)
    index.ended("42", WAITING, at=2.0)
    index.ended("42", "satisfied", at=3.0)
    run = index.get("42")
    assert run is not None
    assert (run.status, run.started_at, run.updated_at) == ("satisfied", 1.0, 3.0)


def test_a_resumed_run_keeps_its_first_start_and_what_is_not_given_again(database: Database) -> None:
    index = RunIndex(database)
    index.started("42", goal="load it", tools="jobs:TOOLS", source="backfill", at=1.0)
    index.ended("42", "cancelled", at=2.0)
    index.started("42", goal="load it all", at=3.0)
    run = index.get("42")
    assert run is not None
    assert (run.goal, run.status, run.tools, run.source) == ("load it all", RUNNING, "jobs:TOOLS", "backfill")
    assert (run.started_at, run.updated_at) == (1.0, 3.0)


def test_the_run_that_changed_last_comes_first(database: Database) -> None:
    index = RunIndex(database)
    for at, thread in enumerate("abc"):
        index.started(thread, goal="g", at=float(at))
    index.ended("a", "satisfied", at=9.0)
    assert [run.thread for run in index.list()] == ["a", "c", "b"]


def test_an_unknown_thread_is_none_to_ask_for_and_a_mistake_to_end(database: Database) -> None:
    assert RunIndex(database).get("42") is None
    with pytest.raises(LookupError, match="'42'"):
        RunIndex(database).ended("42", "satisfied", at=1.0)


def test_goal_and_source_may_be_any_string_a_shell_hands_over(database: Database) -> None:
    RunIndex(database).started("42", goal="\udcff\0 lädt", source="goal-\udce9.toml", at=1.0)
    run = RunIndex(database).get("42")
    assert run is not None
    assert (run.goal, run.source) == ("\udcff\0 lädt", "goal-\udce9.toml")


ACCEPT_THEN_STALL = """
import sys
from agent.store.database import open_database
from agent.store.runs import RunIndex
index = RunIndex(open_database(sys.argv[1]))
index.started("42", goal="load it", at=1.0)
print("accepted", flush=True)
sys.stdin.read()
"""


def test_a_run_killed_before_its_first_checkpoint_is_listed(place: Place, child: Callable[..., Child]) -> None:
    killed = child(ACCEPT_THEN_STALL, spelled(place))
    assert killed.stdout is not None
    assert killed.stdout.readline() == "accepted\n"
    killed.kill()
    killed.wait()
    with open_database(place) as database:
        assert [(run.thread, run.goal, run.status) for run in RunIndex(database).list()] == [("42", "load it", RUNNING)]

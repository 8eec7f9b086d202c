"""The world of the config-report scenario: a config file, a schema file, and what happens to both.

What happens waits for what has to come before it, not for a time: one order of events on any machine.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from pydantic import JsonValue

from agent.core.goal import Criterion, Goal
from agent.scenarios.publisher import COMPLETE, DRAFT, publish
from agent.scenarios.report import CHECKLIST, REPORT, as_written
from agent.scenarios.scenario import ChangeGoal, Conditions, tally_in, write_whole

CONFIG_CHANGED = "config-changed"
CRITERIA_CHANGED = "criteria-changed"

PATIENCE = 5.0
"""Seconds that one thing waits for another at most: a plan of somebody else's may do without the other."""
SLOWER = 0.1
"""Seconds that what has waited still takes: the answer it has waited for is on its way."""

CONFIG = """\
title = "Budget by region"
currency = "EUR"
database = "reporting.db"

[budget]
north = 1200
south = 950
west = 700
"""
CHANGED_CONFIG = CONFIG.replace("EUR", "USD").replace("950", "1010")

GOAL = Goal(
    text="Provision the reporting database and write the budget report",
    wants=("db_handle", "report"),
    criteria=(
        Criterion(
            id="users",
            text="the database has the users table",
            predicate="artifacts.db_handle.tables.exists(t, t == 'users')",
        ),
    ),
)
_TOTAL = Criterion(id="total", text="the report shows a total", predicate="artifacts.report.text.contains('| total |')")
CHANGED_GOAL = GOAL.model_copy(
    update={
        "text": f"{GOAL.text}, with a total, and a checklist for its release",
        "wants": (*GOAL.wants, "checklist"),
        "criteria": (*GOAL.criteria, _TOTAL),
    }
)
"""One more criterion, which the finished report meets, and one more artifact, which is still to make."""


class ConfigWorld:
    """The files of one workspace, counted when they are used, and the event that changes one of them."""

    def __init__(self, workspace: Path, conditions: Conditions, change_goal: ChangeGoal) -> None:
        """Find the files of an earlier run, or write new ones."""
        self.tally = tally_in(workspace)
        self.config = workspace / "config.toml"
        self.schema = workspace / "schema.json"
        self.report = workspace / REPORT
        self.checklist = workspace / CHECKLIST
        self._conditions = conditions
        self._change_goal = change_goal
        self._fetched = Event()
        self._finished = Event()
        self._looked = False
        self._told = False
        if not self.config.exists():
            write_whole(self.config, CONFIG)
        if not self.schema.exists():
            publish(self.schema, DRAFT if conditions.faults else COMPLETE)

    @property
    def goal(self) -> Goal:
        """The goal as it stands: the changed one from the moment of the event on."""
        changed = self._conditions.event == CRITERIA_CHANGED and self._over
        return CHANGED_GOAL if changed else GOAL

    @contextmanager
    def tended(self) -> Iterator[None]:
        """Let happen now what fell out while nobody was here; at the end nobody is left waiting."""
        if self.tally.count("fetch_schema"):
            self._fetched.set()
        if self.report.exists():
            self._happen()
        try:
            yield
        finally:
            self._let_go()

    def fetch_schema(self) -> JsonValue:
        """The schema file."""
        self.tally.add("fetch_schema")
        found: JsonValue = json.loads(self.schema.read_text())
        self._looked = False
        self._fetched.set()
        return found

    def look_at_schema(self) -> JsonValue:
        """The schema as it stands: once more as it was fetched, then not before the report is finished."""
        if self._fetched.is_set() and self._conditions.faults:
            if self._looked and not self._finished.is_set():
                self._await_report()
            self._looked = True
        found: JsonValue = json.loads(self.schema.read_text())
        return found

    def fetch_config(self) -> str:
        """The config file, from a share that is slower than the schema's."""
        if self._conditions.faults and not self._fetched.is_set():
            self._fetched.wait(PATIENCE)
            time.sleep(SLOWER)
        self.tally.add("fetch_config")
        return self.read_config()

    def read_config(self) -> str:
        """The config file as it stands."""
        self._tell()
        return self.config.read_text()

    def look_at_report(self) -> JsonValue:
        """The report as it stands; None when it is not there. Whoever has seen it has finished it."""
        found = as_written(self.report)
        if found is not None and not self._finished.is_set():
            self._happen()
            self._tell()
        return found

    def _await_report(self) -> None:
        if self._finished.wait(PATIENCE):
            time.sleep(SLOWER)
        else:
            self._happen()

    @property
    def _over(self) -> bool:
        return self.tally.count("event") > 0

    def _tell(self) -> None:
        """Tell the run that the goal has changed; after a kill again, until there are signs that it was heard."""
        if self.goal is CHANGED_GOAL and not self._told and not self.checklist.exists():
            self._told = True
            self._change_goal(CHANGED_GOAL)

    def _happen(self) -> None:
        """The event, once, and the complete schema."""
        if self._conditions.event and not self._over:
            if self._conditions.event == CONFIG_CHANGED:
                write_whole(self.config, CHANGED_CONFIG)
            # noted after the edit, which may safely be made twice, so that no kill can make it fall out
            self.tally.add("event")
        publish(self.schema, COMPLETE)
        self._let_go()

    def _let_go(self) -> None:
        """Nobody waits any more."""
        self._fetched.set()
        self._finished.set()

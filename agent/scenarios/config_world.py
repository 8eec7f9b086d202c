"""The world of the config-report scenario: a config file, a schema file, and what happens to both."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from agent.core.goal import Criterion, Goal
from agent.scenarios.publisher import COMPLETE, DRAFT, Publisher, publish
from agent.scenarios.report import CHECKLIST, REPORT
from agent.scenarios.scenario import ChangeGoal, Conditions, tally_in, write_whole

CONFIG_CHANGED = "config-changed"
CRITERIA_CHANGED = "criteria-changed"

SLOWER = 0.5
"""Seconds that the config's share waits at most for the schema to be fetched first."""

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
        self._publisher = Publisher(self.schema)
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
        """Keep the publisher at work; what it and the event missed while nobody was here happens now."""
        if self.tally.count("fetch_schema"):
            self._publisher.note_fetch()
        if self.report.exists():
            self._go_on()
        with self._publisher.working() if self._conditions.faults else nullcontext():
            yield

    def schema_fetched(self) -> None:
        """Note a fetch of the schema."""
        self._publisher.note_fetch()

    def report_written(self) -> None:
        """Note that the report has been written: the moment of the event, then of the complete schema."""
        self._go_on()
        self._tell()

    def fetch_config(self) -> str:
        """The config file, from a share that is slower than the schema's: the same order of events on any machine."""
        if self._conditions.faults:
            self._publisher.await_fetch(SLOWER)
        return self.read_config()

    def read_config(self) -> str:
        """The config file as it stands."""
        self._tell()
        return self.config.read_text()

    @property
    def _over(self) -> bool:
        return self.tally.count("event") > 0

    def _tell(self) -> None:
        """Tell the run that the goal has changed; after a kill again, until there are signs that it was heard."""
        if self.goal is CHANGED_GOAL and not self._told and not self.checklist.exists():
            self._told = True
            self._change_goal(CHANGED_GOAL)

    def _go_on(self) -> None:
        if self._conditions.event and not self._over:
            if self._conditions.event == CONFIG_CHANGED:
                write_whole(self.config, CHANGED_CONFIG)
            # noted after the edit, which may safely be made twice, so that no kill can make it fall out
            self.tally.add("event")
        self._publisher.note_report()

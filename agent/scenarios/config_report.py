"""Scenario `config-report`: the invalidation trace of seed 2, over real files and a real database.

    S1 fetch_config -> config_raw          S3 fetch_schema -> schema
    S2 parse_config -> settings            S4 provision_db -> db_handle   (settings, schema)
                                           S5 generate_report -> report   (settings)

The schema lacks the table that S4 stands on until it is fetched again. The report has been written by then, and
that is when an event, if one is asked for, changes the config file or the goal.
"""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.scenarios.config_tools import config_tools, tables_in
from agent.scenarios.config_world import CONFIG_CHANGED, CRITERIA_CHANGED, ConfigWorld
from agent.scenarios.publisher import COMPLETE
from agent.scenarios.report import CHECKLIST, REPORT, as_written, checklist_text, report_text
from agent.scenarios.scenario import ChangeGoal, Conditions, Prepared, Scenario, conditions_in

_LABELS = {
    "fetch_config": "S1",
    "parse_config": "S2",
    "fetch_schema": "S3",
    "provision_db": "S4",
    "generate_report": "S5",
    "write_checklist": "S6",
}


@contextmanager
def _open(workspace: Path, conditions: Conditions, change_goal: ChangeGoal) -> Iterator[Prepared]:
    world = ConfigWorld(workspace, conditions, change_goal)
    with world.tended():
        yield Prepared(goal=world.goal, tools=config_tools(world), notes=(f"files: {workspace}",))


def _check(workspace: Path) -> list[str]:
    """Compare the files with what config and schema ask for, past all tools."""
    config = tomllib.loads((workspace / "config.toml").read_text())
    schema = json.loads((workspace / "schema.json").read_text())
    report = report_text(config["title"], config["currency"], config["budget"])
    database = str(config["database"])
    problems = {
        "the schema was not published complete": schema["tables"] != COMPLETE,
        "the database does not have the tables of the schema": tables_in(workspace / database) != COMPLETE,
        "the report is not what the config asks for": not _says(workspace / REPORT, report),
    }
    if conditions_in(workspace).event == CRITERIA_CHANGED:
        checklist = checklist_text(database, COMPLETE)
        problems["the checklist is not there"] = not _says(workspace / CHECKLIST, checklist)
    return [sentence for sentence, wrong in problems.items() if wrong]


def _says(path: Path, text: str) -> bool:
    return as_written(path) == {"file": path.name, "text": text}


CONFIG_REPORT = Scenario(
    name="config-report",
    description="Provision a database and write a report, from a config and a schema that comes too late.",
    open=_open,
    check=_check,
    events=(CONFIG_CHANGED, CRITERIA_CHANGED),
    labels=_LABELS,
)

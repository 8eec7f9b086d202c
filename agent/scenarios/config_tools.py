"""The five tools of the config-report scenario, and a sixth that only the changed goal has a use for.

Each says what it needs, what must hold before and after, and how to look at its artifact again.
"""

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from agent.scenarios.config_world import ConfigWorld
from agent.scenarios.report import as_written, checklist_text, report_text, written
from agent.tools.contracts import contract


def config_tools(world: ConfigWorld) -> list[BaseTool]:
    """All tools, working on one world."""
    return [
        _fetch_config(world),
        _parse_config(world),
        _fetch_schema(world),
        _provision_db(world),
        _generate_report(world),
        _write_checklist(world),
    ]


def tables_in(path: Path) -> dict[str, JsonValue]:
    """Tables of a database file with their columns, read back from the database itself."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return {
            table: [column for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")')]
            for (table,) in tables
        }


def _fetch_config(world: ConfigWorld) -> BaseTool:
    @contract(
        produces="config_raw",
        effect="read_only",
        ensures="size(artifacts.config_raw) > 0",
        observe=world.read_config,
    )
    def fetch_config() -> str:
        """Fetch the config file."""
        return world.fetch_config()

    return fetch_config


def _parse_config(world: ConfigWorld) -> BaseTool:
    @contract(produces="settings", effect="read_only", ensures="size(artifacts.settings.budget) > 0")
    def parse_config(config_raw: str) -> dict[str, JsonValue]:
        """Parse the config into settings."""
        world.tally.add("parse_config")
        return tomllib.loads(config_raw)

    return parse_config


def _fetch_schema(world: ConfigWorld) -> BaseTool:
    @contract(
        produces="schema",
        effect="read_only",
        ensures="size(artifacts.schema.tables) > 0",
        observe=world.look_at_schema,
    )
    def fetch_schema() -> JsonValue:
        """Fetch the database schema."""
        return world.fetch_schema()

    return fetch_schema


def _provision_db(world: ConfigWorld) -> BaseTool:
    folder = world.config.parent

    def tables(database: str) -> JsonValue:
        found = tables_in(folder / database)
        return {"file": database, "tables": found} if found else None

    @contract(
        produces="db_handle",
        args={"database": "{{settings.database}}", "tables": "{{schema.tables}}"},
        requires="artifacts.schema.tables.exists(t, t == 'users')",
        ensures="artifacts.db_handle.tables == artifacts.schema.tables",
        effect="mutating",
        observe=tables,
    )
    def provision_db(database: str, tables: dict[str, list[str]]) -> JsonValue:
        """Provision the reporting database."""
        world.tally.add("provision_db")
        _create(folder / database, tables)
        return {"file": database, "tables": tables_in(folder / database)}

    return provision_db


def _create(path: Path, tables: dict[str, list[str]]) -> None:
    """Create all tables or none. Not idempotent: a table that is there already is an error."""
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for table, columns in tables.items():
            connection.execute(f'CREATE TABLE "{table}" ({", ".join(f"{each} TEXT" for each in columns)})')
        connection.execute("COMMIT")


def _generate_report(world: ConfigWorld) -> BaseTool:
    @contract(
        produces="report",
        args={name: f"{{{{settings.{name}}}}}" for name in ("title", "currency", "budget")},
        ensures=(
            "artifacts.report.text.contains(artifacts.settings.title)",
            "artifacts.settings.budget.all(r, artifacts.report.text.contains("
            "r + ' | ' + string(artifacts.settings.budget[r]) + ' ' + artifacts.settings.currency))",
        ),
        effect="mutating",
        idempotent=True,
        observe=world.look_at_report,
    )
    def generate_report(title: str, currency: str, budget: dict[str, int]) -> JsonValue:
        """Generate the report."""
        world.tally.add("generate_report")
        return written(world.report, report_text(title, currency, budget))

    return generate_report


def _write_checklist(world: ConfigWorld) -> BaseTool:
    @contract(
        produces="checklist",
        args={"file": "{{db_handle.file}}", "tables": "{{db_handle.tables}}"},
        ensures="artifacts.db_handle.tables.all(t, artifacts.checklist.text.contains('table ' + t))",
        effect="mutating",
        idempotent=True,
        observe=lambda: as_written(world.checklist),
    )
    def write_checklist(file: str, tables: dict[str, list[str]]) -> JsonValue:
        """Write the release checklist."""
        world.tally.add("write_checklist")
        return written(world.checklist, checklist_text(file, tables))

    return write_checklist

"""Tools over one SQLite file: read what is there, and change it behind a guard.

What a statement may do is decided by the engine while it compiles, never by looking at its text.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool, tool
from pydantic import Field

from agent.core.value import JsonValue
from agent.tools.builtin.refusal import Outdated
from agent.tools.builtin.sqlite_guard import Bounds, Manner, Scalars, executed, opened, outline
from agent.tools.contracts import contract

Statement = Annotated[
    str, Field(description="one SQL statement; values go into `parameters` and are written ? or :name")
]


def sqlite_tools(
    file: Path | str,
    *,
    read_only: bool = False,
    schema_changes: bool = False,
    seconds: float = 10.0,
    rows: int = 1_000,
    size: int = 1_000_000,
) -> list[BaseTool]:
    """Tools over a SQLite file. No other file is opened, no extension loaded, no setting changed.

    Args:
        file: the database; it has to exist.
        read_only: leave out the tool that changes rows.
        schema_changes: whether that tool may also create, alter and drop tables, indexes, views and triggers.
        seconds: one statement may take.
        rows: one query may give; more is an error, so that no answer is half of one.
        size: bytes that a value may have, and all values of an answer together.

    Raises:
        ValueError: there is no such file.
    """
    path, bounds = Path(file).resolve(), Bounds(seconds, rows, size)
    if not path.is_file():
        raise ValueError(f"{str(file)!r} is no SQLite file; make the database first, or name another")
    looking = [_describe_database(path, bounds), _query_database(path, bounds)]
    return looking if read_only else [*looking, _change_database(path, bounds, schema_changes)]


def _describe_database(path: Path, bounds: Bounds) -> BaseTool:
    @contract(effect="read_only", ensures="size(result.tables) >= 0")
    def describe_database() -> dict[str, object]:
        """Tell the tables and views of the database: gives tables, each with name, type and sql."""
        sql = "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        return {"tables": _rows(path, bounds, sql, [])}

    return describe_database


def _query_database(path: Path, bounds: Bounds) -> BaseTool:
    @contract(needs="sql", effect="read_only", ensures="size(result.rows) >= 0")
    @tool(
        description=f"Read rows with one SELECT, which can join, filter, count, sum and sort{_from(path, bounds)}: "
        "gives rows, each with its columns by name, and value where it is a single one."
    )
    def query_database(sql: Statement, parameters: Scalars = []) -> dict[str, object]:  # noqa: B006 - never changed
        rows = _rows(path, bounds, sql, parameters)
        single = len(rows) == 1 and len(rows[0]) == 1
        return {"rows": rows, **({"value": next(iter(rows[0].values()))} if single else {})}

    return query_database


def _change_database(path: Path, bounds: Bounds, schema_changes: bool) -> BaseTool:
    manner = Manner.SCHEMA if schema_changes else Manner.WRITE

    def look(check: str) -> dict[str, JsonValue] | None:
        """The change is there when its check holds; it is asked as a query, which can change nothing."""
        return {"check": check, "holds": True} if _holds(_rows(path, bounds, check, [])) else None

    @contract(
        needs="sql check",
        effect="mutating",
        idempotent=True,
        ensures="result.holds",
        observe=look,
        free="check rows",
    )
    def change_database(
        sql: Statement,
        check: Annotated[str, Field(description="a SELECT that gives 1 once the change is made, and not before")],
        parameters: Scalars = [],  # noqa: B006 - never changed
        rows: Annotated[int | None, Field(ge=0, description="how many rows must change, no more and no fewer")] = None,
    ) -> JsonValue:
        """Change rows of the database with one statement; nothing is changed unless the check then holds."""
        with closing(opened(path, bounds, manner)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if _holds(executed(connection, bounds, Manner.READ, check, [])[0]):
                return {"check": check, "holds": True, "changed": 0}
            _, changed = executed(connection, bounds, manner, sql, parameters)
            if rows is not None and changed != rows:
                raise Outdated(f"the statement would have changed {changed} rows, not {rows}; nothing was changed")
            if not _holds(executed(connection, bounds, Manner.READ, check, [])[0]):
                raise ValueError("the check would not have held after the statement; nothing was changed")
            connection.execute("COMMIT")
        return {"check": check, "holds": True, "changed": changed}

    return change_database


def _from(path: Path, bounds: Bounds) -> str:
    """The tables as they are now: who writes a statement without having looked knows them by this alone."""
    with suppress(sqlite3.Error), closing(opened(path, bounds, Manner.READ)) as connection:
        there = outline(connection)
        return f" over {there}" if there else ""
    return ""


def _rows(path: Path, bounds: Bounds, sql: str, parameters: Scalars) -> list[dict[str, object]]:
    with closing(opened(path, bounds, Manner.READ)) as connection:
        rows, _ = executed(connection, bounds, Manner.READ, sql, parameters)
    return rows


def _holds(rows: object) -> bool:
    """Whether a check says yes: one row with one value that is true."""
    if not isinstance(rows, list) or len(rows) != 1 or len(rows[0]) != 1:
        raise ValueError("a check must be a SELECT of one row with one value, as in SELECT count(*) = 2 FROM t")
    return bool(next(iter(rows[0].values())))

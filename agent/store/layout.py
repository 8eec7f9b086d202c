"""How LangGraph's tables lie in our file: in the order of their keys, without a second copy of every key.

Their keys are long (three UUIDs) and their rows small once packed, so an index of its own would be a third of
the file. Tables that are there already stay as they are; LangGraph's savers read and write both alike.
"""

import sqlite3
from contextlib import closing

from langgraph.checkpoint.sqlite import SqliteSaver


def lay_out(connection: sqlite3.Connection) -> None:
    """Create the checkpoint tables of the installed LangGraph, unless they are there."""
    for table in _tables():
        connection.execute(table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1) + " WITHOUT ROWID")


def _tables() -> list[str]:
    with closing(sqlite3.connect(":memory:")) as scratch:
        SqliteSaver(scratch).setup()
        return [row[0] for row in scratch.execute("SELECT sql FROM sqlite_master WHERE type = 'table'")]

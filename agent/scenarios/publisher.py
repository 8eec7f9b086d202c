"""What a team elsewhere publishes: a first release of the schema, which lacks a table, and the complete one."""

import json
from pathlib import Path

from agent.scenarios.scenario import write_whole

DRAFT = {"orders": ["id", "user_id", "amount"], "products": ["id", "name"]}
COMPLETE = {**DRAFT, "users": ["id", "name", "email"]}
"""Tables and their columns."""


def publish(path: Path, tables: dict[str, list[str]]) -> None:
    """Release a schema: from one moment to the next every reader sees the new one."""
    write_whole(path, json.dumps({"tables": tables}, indent=2))

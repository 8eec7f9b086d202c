"""The report and the checklist that the config-report scenario writes, as text and as files."""

from pathlib import Path

from pydantic import JsonValue

from agent.scenarios.scenario import write_whole

REPORT = "report.md"
CHECKLIST = "checklist.md"


def report_text(title: str, currency: str, budget: dict[str, int]) -> str:
    """The budget by region as Markdown."""
    rows = [f"| {region} | {amount} {currency} |" for region, amount in budget.items()]
    table = ["| region | budget |", "|---|---|", *rows, f"| total | {sum(budget.values())} {currency} |"]
    return "\n".join([f"# {title}", "", *table, ""])


def checklist_text(file: str, tables: dict[str, list[str]]) -> str:
    """What a reviewer ticks off, as Markdown."""
    rows = [f"- [x] table {table}: {', '.join(columns)}" for table, columns in sorted(tables.items())]
    return "\n".join([f"# Checked for release: {file}", "", *rows, ""])


def written(path: Path, text: str) -> JsonValue:
    """Write a file and say what is there."""
    write_whole(path, text)
    return as_written(path)


def as_written(path: Path) -> JsonValue:
    """The file as it stands; None when it is not there."""
    return {"file": path.name, "text": path.read_text()} if path.exists() else None

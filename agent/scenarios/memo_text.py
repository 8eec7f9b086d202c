"""What is read for the memo, and how it is written: notes from Markdown documents, two pages of Markdown from notes.

Notes are `{"summary": ..., "facts": [...], "sources": [...]}`: the lines of their facts, and where they were found.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

TOPICS = ("team", "market", "product", "risks")
"""What there is a document about. Traction comes from elsewhere."""
_SECTIONS = ("team", "market", "product", "traction", "risks")

Notes = Mapping[str, Any]


def notes_of(document: Path, source: str) -> dict[str, JsonValue]:
    """Summary and facts of one document.

    Raises:
        FileNotFoundError: there is no such document.
        ValueError: it states no fact.
    """
    paragraphs = [each.replace("\n", " ") for each in document.read_text().split("\n\n") if not each.startswith("#")]
    facts: list[JsonValue] = [line[2:] for line in document.read_text().splitlines() if line.startswith("- ")]
    if not facts:
        raise ValueError(f"{source} states no fact: there is no line that begins with a dash")
    return {"summary": paragraphs[0], "facts": facts, "sources": [source]}


def published_notes(folder: Path) -> dict[str, JsonValue] | None:
    """What the company said of itself, in the order of its dates; None when it published nothing."""
    found = [notes_of(each, f"{folder.name}/{each.name}") for each in sorted(folder.glob("*.md"))]
    if not found:
        return None
    return {
        "summary": "The funding records could not be reached. What follows is what the company published itself.",
        "facts": _joined(found, "facts"),
        "sources": _joined(found, "sources"),
    }


def funding_notes(company: Notes, rounds: Iterable[Mapping[str, Any]]) -> dict[str, JsonValue]:
    """The rounds of a company as notes."""
    rows = list(rounds)
    facts: list[JsonValue] = [f"{each['round']}: {each['raised']:,} EUR, closed {each['closed']}." for each in rows]
    raised = sum(each["raised"] for each in rows)
    return {
        "summary": f"{company['name']} has raised {raised:,} EUR in {len(rows)} closings.",
        "facts": facts,
        "sources": [f"funding records, {company['id']}"],
    }


def no_notes(why: str) -> dict[str, JsonValue]:
    """Notes that say that there are none."""
    return {"summary": f"Missing: {why}", "facts": [], "sources": []}


def memo_text(company: Notes, notes: Mapping[str, Notes]) -> str:
    """The memo. Every fact carries the number of its source, and the list of sources ends it.

    Args:
        company: its record.
        notes: by section: team, market, product, traction, risks.
    """
    sources = _joined((notes[section] for section in _SECTIONS), "sources")
    lines = [f"# Investment memo: {company['name']}", "", f"Seat: {company['seat']}. Founded: {company['founded']}."]
    for section in _SECTIONS:
        each = notes[section]
        cited = "".join(f" [{sources.index(source) + 1}]" for source in each["sources"])
        lines += ["", f"## {section.capitalize()}", "", f"{each['summary']}{cited}"]
        lines += ["", *(f"- {fact}" for fact in each["facts"])] if each["facts"] else []
    lines += ["", "## Sources", "", *(f"{number}. {source}" for number, source in enumerate(sources, 1)), ""]
    return "\n".join(lines)


def _joined(found: Iterable[Notes], field: str) -> list[Any]:
    return [each for notes in found for each in notes[field]]

"""How does a value look in a notebook? A table in plain HTML, everything in it escaped."""

from collections.abc import Iterable
from html import escape

_ROWS = 200
"""Rows shown; a plan may have thousands."""


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table under a line of text."""
    found = [tuple(each) for each in rows]
    shown = [f"<tr>{''.join(f'<td>{_cell(each)}</td>' for each in row)}</tr>" for row in found[:_ROWS]]
    columns = "".join(f"<th>{_cell(each)}</th>" for each in head)
    more = f"<p>and {len(found) - _ROWS} more</p>" if len(found) > _ROWS else ""
    return f"<p><b>{_cell(title)}</b></p><table><tr>{columns}</tr>{''.join(shown)}</table>{more}"


def _cell(value: object) -> str:
    return escape(str(value))

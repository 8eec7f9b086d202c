"""How does a report become one HTML file? A template, and beside it style, script and the library that draws.

Everything is in the file, and its policy lets nothing else in: no request leaves the page, and no text in it can
become a script, for the template escapes and the script writes texts only.
"""

import base64
import hashlib
import json
from collections import Counter
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from agent.core.ladder import LADDER
from agent.trace.html.clean import cleaned
from agent.trace.html.model import Cell, Drawn, Report, StepLine
from agent.trace.html.wording import count, listed, seconds, size

_FOLDER = files("agent.trace.html") / "page"
_SCRIPTS = ("vendor/cytoscape.min.js", "vendor/cytoscape-dagre.min.js", "page.js")
_LIVE = "connect-src 'self'"
"""A page that is served asks its own server for news; one in a file asks nobody."""

CHANGES = {
    "kept": "untouched",
    "found": "looked at and kept",
    "again": "done again",
    "new": "new",
    "dropped": "dropped",
}

ROWS = 500
"""Rows of the table of steps; the drawing has them all, for it bundles those that are alike."""


def page(report: Report, live: bool = False) -> str:
    """The report as one HTML document.

    Args:
        report: what it says.
        live: it is served, and asks for news.
    """
    report = cleaned(report)
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            live=live,
            policy=policy(live),
            rows=_rows(report.steps),
            graph=_as_block(_graph(report)),
            style=Markup(_text("page.css")),
            scripts=[Markup(_script(each)) for each in _SCRIPTS],
            notice=Markup(_text("vendor/NOTICE")),
            ladder=LADDER,
        )
    )


@cache
def policy(live: bool = False) -> str:
    """The content security policy: the scripts and the style that are in the page, and nothing else."""
    scripts = " ".join(_hash(_script(each)) for each in _SCRIPTS)
    rules = ["default-src 'none'", f"script-src {scripts}", f"style-src {_hash(_text('page.css'))}", "img-src data:"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'", *([_LIVE] if live else [])])


@cache
def _environment() -> Environment:
    from jinja2 import FunctionLoader

    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"seconds": seconds, "size": size, "listed": listed, "counted": count, "says": _says}
    return environment


@cache
def _text(name: str) -> str:
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")


def _script(name: str) -> str:
    text = _text(name)
    assert "</script" not in text.lower(), f"{name} would end its own element"
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _graph(report: Report) -> dict[str, object]:
    """What the script draws from. Of each revision only what differs from the one before is told."""
    known = {each.id for each in report.steps}
    return {
        "steps": [
            {
                "id": each.id,
                "intent": each.intent,
                "does": each.does,
                "makes": listed(each.makes),
                "after": [other for other in each.after if other in known],
                "bundle": each.bundle,
                "story": each.story,
                "reason": each.reason,
            }
            for each in report.steps
        ],
        "drawn": [{"says": _says(each), "cells": cells} for each, cells in _changes(report.drawn, known)],
    }


def _rows(steps: tuple[StepLine, ...]) -> list[StepLine]:
    """Rows of the table: of too many steps those about which there is something to tell, then the first."""
    eventful = sorted(steps, key=lambda each: not each.story)
    chosen = {each.id for each in eventful[:ROWS]}
    return [each for each in steps if each.id in chosen]


def _says(drawn: Drawn) -> str:
    changes = Counter(each.change for each in drawn.cells.values())
    said = ", ".join(f"{changes[change]} {words}" for change, words in CHANGES.items() if changes[change])
    return f"Plan {drawn.revision}, after {seconds(drawn.at)}: {drawn.why}" + (
        f" ({said})" if set(changes) != {"kept"} else ""
    )


def _changes(drawn: tuple[Drawn, ...], known: set[str]) -> list[tuple[Drawn, dict[str, list[object] | None]]]:
    before: dict[str, Cell] = {}
    found = []
    for each in drawn:
        now = {step: cell for step, cell in each.cells.items() if step in known}
        changed: dict[str, list[object] | None] = {
            step: [cell.status, cell.change, cell.tries, cell.broke]
            for step, cell in now.items()
            if before.get(step) != cell
        }
        found.append((each, changed | dict.fromkeys(before.keys() - now.keys())))
        before = now
    return found


def _as_block(value: object) -> Markup:
    """JSON inside a script element: no character in it can end the element or begin a comment."""
    spelled = json.dumps(value, separators=(",", ":"))
    for each in "<>&":
        spelled = spelled.replace(each, f"\\u{ord(each):04x}")
    return Markup(spelled)

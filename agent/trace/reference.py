"""What is in a trace, field by field? The reference in `docs/trace.md`, written from the types themselves.

`make docs` writes it anew; a test says when it is due.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from textwrap import dedent
from typing import Any, get_args

from agent.core.record import SCHEMA, Record, TraceRecord
from agent.core.value import Value

RECORDS: tuple[type[Record], ...] = get_args(get_args(TraceRecord)[0])
"""Every kind of record, in the order in which a run writes them first."""

HEAD = f"""\
# The records of a trace

Written by `make docs` from `agent/core/record.py`; do not edit.

Everything that happens on a thread is a record in the state's `trace`: `kintsugi trace THREAD --json` prints one
JSON object a line, `graph.get_state(config).values["trace"]` holds the values themselves. Records are only ever added.
They hold names, digests and decisions; contents lie in the world and the artifact store.

This is schema {SCHEMA}. Every record says in which schema it was written (`schema_version`; the first did not say).
Records of an earlier schema are read, and one of a later schema is refused with a sentence.

**A recovery** is one `recovered`, with all that the decision was made from, and, when it changed the plan, one
`repaired` or `planned` that names it as its `cause`: together they hold trigger, scope, origin, rung, what was
invalidated, what is reused, how the plan changed, and what it cost. A retry and a question to a person leave the plan
as it is. `kintsugi trace THREAD --verify` makes every decision once more from its record, and says which differ.
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD, "## Every record\n", _table(_documented(Record))]
    parts += ["## Kinds\n", *(_section(each, skipped=("event", *Record.model_fields)) for each in RECORDS)]
    values = _below(RECORDS)
    parts += ["## Values inside\n", *(_section(each) for each in values if issubclass(each, Value))]
    parts += ["## Closed sets\n", *(_closed(each) for each in values if issubclass(each, StrEnum))]
    return "\n".join(parts)


def documented(kind: type[Value]) -> dict[str, str]:
    """What is said of each field of a type, its bases' included; empty where the name says it all."""
    return {name: said for each in reversed(kind.__mro__) for name, (_, said) in _documented(each).items()}


def _section(kind: type[Any], skipped: Iterable[str] = ()) -> str:
    name = kind.model_fields["event"].default if issubclass(kind, Record) else kind.__name__
    fields: dict[str, tuple[str, str]] = {}
    for each in reversed(kind.__mro__):
        fields |= _documented(each)
    shown = {field: each for field, each in fields.items() if field not in set(skipped)}
    return f"### `{name}`\n\n{_paragraph(kind)}\n\n{_table(shown)}"


def _closed(kind: type[StrEnum]) -> str:
    return f"### `{kind.__name__}`\n\n{_paragraph(kind)} {', '.join(f'`{each.value}`' for each in kind)}.\n"


def _paragraph(kind: type[Any]) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def _table(fields: dict[str, tuple[str, str]]) -> str:
    rows = [f"| `{name}` | `{_cell(type_)}` | {_cell(said)} |" for name, (type_, said) in fields.items()]
    return "\n".join(["| field | type | what it is |", "|---|---|---|", *rows, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _documented(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Type and docstring of the fields that a class declares itself, as its source has them."""
    if kind in (Value, object) or not issubclass(kind, Value):
        return {}
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node, after in pairwise([*body.body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_field(kind, node.target.id):
            said = after.value if isinstance(after, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            found[node.target.id] = (ast.unparse(node.annotation), text)
    return found


def _is_field(kind: type[Value], name: str) -> bool:
    return name in kind.model_fields


def _below(kinds: Iterable[type[Value]]) -> list[type[Any]]:
    """The types that these are made of, in the order in which they are met."""
    found: dict[type[Any], None] = {}
    due = list(kinds)
    while due:
        for field in due.pop(0).model_fields.values():
            for each in _named(field.annotation):
                if each not in found:
                    found[each] = None
                    due += [each] if issubclass(each, Value) else []
    return list(found)


def _named(annotation: object) -> Iterator[type[Any]]:
    if isinstance(annotation, type) and issubclass(annotation, Value | StrEnum):
        yield annotation
    for each in get_args(annotation):
        yield from _named(each)


if __name__ == "__main__":
    print(reference(), end="")

"""What is in a trace, field by field? The reference in `docs/trace.md`, written from the types themselves.

`make docs` writes it anew; a test says when it is due.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, get_args

from agent.core.record import SCHEMA, Record, TraceRecord
from agent.core.value import Value
from agent.reference.fields import below, closed, documented, paragraph, table

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


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## Every record\n", table(documented(Record))]
    parts += ["## Kinds\n", *(_section(each, skipped=("event", *Record.model_fields)) for each in RECORDS)]
    values = below(RECORDS)
    parts += ["## Values inside\n", *(_section(each) for each in values if issubclass(each, Value))]
    sets = [each for each in values if issubclass(each, StrEnum)]
    parts += ["## Closed sets\n", *(f"### `{each.__name__}`\n\n{closed(each)}" for each in sets)]
    return "\n".join(parts)


def _section(kind: type[Any], skipped: Iterable[str] = ()) -> str:
    name = kind.model_fields["event"].default if issubclass(kind, Record) else kind.__name__
    shown = {field: each for field, each in documented(kind).items() if field not in set(skipped)}
    return f"### `{name}`\n\n{paragraph(kind)}\n\n{table(shown)}"

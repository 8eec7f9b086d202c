"""How long does a tool usually take? From the attempts of earlier runs that went well."""

from collections.abc import Iterable, Mapping
from statistics import median

from agent.core.plan import Plan
from agent.core.record import AttemptEnded, TraceRecord

_MADE = ("called", "turns")
"""How an attempt ended that did its work; one that found it done was quicker."""


def usual(trace: Iterable[TraceRecord], plan: Plan) -> Mapping[str, float]:
    """Seconds by tool: the median of its good attempts; instructions count by what they are for."""
    names = {each.id: each.call.tool if each.call else each.intent for each in plan.steps}
    taken: dict[str, list[float]] = {}
    for record in trace:
        if isinstance(record, AttemptEnded) and record.ok and record.how in _MADE and record.step in names:
            taken.setdefault(names[record.step], []).append(record.seconds)
    return {name: median(each) for name, each in taken.items()}

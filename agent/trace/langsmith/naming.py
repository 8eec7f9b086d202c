"""How is a span called, so that a trace is read at a glance? By what the phase node decided, or the step it is for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from agent.core.control import Cause
from agent.core.ladder import Rung
from agent.core.plan import Step
from agent.core.predicate import Verdict
from agent.core.record import (
    Committed,
    Ended,
    Judged,
    Paused,
    Planned,
    PlanRejected,
    Recovered,
    Redrawn,
    Repaired,
    RunStarted,
    TraceRecord,
)

_LINE = 80
"""Characters of a name."""
_BACK = 400
"""Records that are looked through for why a step is tried again."""


@dataclass(frozen=True)
class Label:
    """How a span is called and found again."""

    name: str
    tags: tuple[str, ...] = ()


def of_attempt(step: Step, trace: Sequence[TraceRecord]) -> Label:
    """The label of one try: what the step is for, which try it is, and the recovery that it is part of."""
    label = f"executor: {line(step.intent or step.key)} (attempt {step.attempts})"
    return Label(label, (f"attempt:{step.attempts}", f"effect:{step.effect.value}", *_recovered(step, trace)))


def of_run(goal: object) -> Label | None:
    """The label of a whole run; None when no goal is stated with it."""
    text = str(getattr(goal, "text", "") or ", ".join(getattr(goal, "wants", ()) or ()))
    return Label(f"kintsugi: {line(text)}") if text else None


def of_phase(phase: str, update: Mapping[str, Any]) -> Label:
    """The label of a phase node, by what it returned."""
    records = update.get("trace") or ()
    said = [each for record in records if (each := _said(record))]
    move = getattr(update.get("move"), "move", "") if phase == "dispatcher" else ""
    steps = ", ".join(getattr(update.get("move"), "steps", ())) if move == "start" else ""
    what = "; ".join(said) or f"{move} {steps}".strip()
    tags = {tag for each in records for tag in _tags(each)}
    return Label(f"{phase}: {line(what)}" if what else phase, tuple(sorted(tags)))


def line(text: str) -> str:
    """A text on one line of bounded length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE else f"{flat[: _LINE - 1]}…"


def _recovered(step: Step, trace: Sequence[TraceRecord]) -> tuple[str, ...]:
    for each in reversed(trace[-_BACK:]):
        match each:
            case Redrawn(cause=Cause() as cause) if step.id in (*each.delta.added, *each.delta.reopened):
                return _of_cause(cause)
            case Recovered() if each.classified.failure.step == step.id and each.choice.rung is Rung.RETRY:
                return _of_cause(each.cause)
            case Repaired(cause=Cause() as cause) if each.step == step.id:
                return _of_cause(cause)
            case RunStarted():
                return ()
            case _:
                pass
    return ()


def _of_cause(cause: Cause) -> tuple[str, ...]:
    return (f"rung:{cause.rung}", f"scope:{cause.scope}", f"origin:{cause.origin}")


def _tags(record: TraceRecord) -> Iterable[str]:
    match record:
        case Recovered():
            return _of_cause(record.cause)
        case Redrawn(cause=Cause() as cause):
            return _of_cause(cause)
        case Ended():
            return (f"outcome:{record.status}",)
        case _:
            return ()


@singledispatch
def _said(_record: object) -> str:
    """What a record adds to the name; most add nothing."""
    return ""


@_said.register
def _(record: Recovered) -> str:
    return f"{record.classified.failure.key}: {record.classified.scope} -> {record.choice.rung}"


@_said.register
def _(record: Repaired) -> str:
    return f"{record.rung}, plan {record.revision}"


@_said.register
def _(record: Planned) -> str:
    return f"plan {record.revision} ({str(record.trigger).replace('_', ' ')})"


@_said.register
def _(record: PlanRejected) -> str:
    return f"no plan: {record.reason}"


@_said.register
def _(record: Committed) -> str:
    return f"{record.name} version {record.version}"


@_said.register
def _(record: Judged) -> str:
    verified = record.judgements and all(each.verdict is Verdict.VERIFIED for each in record.judgements)
    return "" if verified else f"{record.step} not verified"


@_said.register
def _(record: Paused) -> str:
    return f"paused: {record.reason}"


@_said.register
def _(record: Ended) -> str:
    return str(record.status)

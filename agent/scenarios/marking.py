"""What each event of a run marked, as the table of seed 2: status before and after, and what is reusable.

Every cell is read from the trace and from the plan; nothing about a scenario is known here but its labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agent.core.failure import Classified
from agent.core.plan import Plan, Step, StepId, StepStatus
from agent.core.record import (
    AttemptEnded,
    Committed,
    IntentChanged,
    Invalidated,
    Planned,
    Recovered,
    Repaired,
    StepStarted,
    TraceRecord,
)

ABSENT = "-"
"""Status of a step that is not in the plan yet."""


@dataclass(frozen=True)
class Row:
    """What one event did to one step."""

    label: str
    intent: str
    before: str
    after: str
    artifact: str
    reusable: bool
    why: str


@dataclass(frozen=True)
class Marking:
    """What one event did to the plan."""

    cause: str
    rows: tuple[Row, ...]


@dataclass
class _Replay:
    """Statuses of the steps, followed from record to record."""

    status: dict[StepId, StepStatus] = field(default_factory=dict)
    fresh: set[StepId] = field(default_factory=set)
    """Started since the last attempt came back."""

    def snapshot(self) -> dict[StepId, StepStatus]:
        """Statuses as they were when the predicates were judged: what is ready starts in the same round."""
        return self.status | dict.fromkeys(self.fresh, StepStatus.PENDING)

    def follow(self, record: TraceRecord) -> None:
        match record:
            case Planned() | Repaired():
                self._replanned(record)
            case StepStarted():
                self.status[record.step] = StepStatus.RUNNING
                self.fresh.add(record.step)
            case AttemptEnded():
                self.status[record.step] = StepStatus.PENDING
                self.fresh.clear()
            case Committed(step=step) if step is not None:
                self.status[step] = StepStatus.DONE
            case Invalidated():
                fallen = (*record.what.steps, *record.what.flagged)
                self.status.update(dict.fromkeys(fallen, StepStatus.INVALID))
            case _:
                pass

    def _replanned(self, record: Planned | Repaired) -> None:
        self.status.update(dict.fromkeys((*record.delta.added, *record.delta.reopened), StepStatus.PENDING))
        for step in record.delta.superseded:
            self.status.pop(step, None)


def markings(plan: Plan, trace: Sequence[TraceRecord], labels: Mapping[str, str]) -> tuple[Marking, ...]:
    """One table for every event that marked something, in the order they happened.

    Args:
        plan: as it stands; names the steps of the records.
        trace: all records of the thread.
        labels: tool -> label of its row; tools that are not named have no row. No labels, no tables.
    """
    if not labels:
        return ()
    steps = [each for label in labels for each in plan.steps if each.call and each.call.tool == label]
    named = [(labels[each.call.tool], each) for each in steps if each.call]
    return tuple(_tables(trace, named))


def _tables(trace: Sequence[TraceRecord], named: list[tuple[str, Step]]) -> Iterator[Marking]:
    replay = _Replay()
    for before, record in pairwise([None, *trace]):
        assert record is not None
        if isinstance(record, Invalidated) and isinstance(before, Recovered):
            yield _invalidation(record, before.classified, replay.snapshot(), named)
        if isinstance(record, Planned) and isinstance(before, IntentChanged):
            yield _intent_change(record, before, replay.snapshot(), named)
        replay.follow(record)


def _invalidation(
    record: Invalidated,
    classified: Classified,
    status: dict[StepId, StepStatus],
    named: list[tuple[str, Step]],
) -> Marking:
    # what a probe saw changed has fallen itself; what only fails a predicate is complete, and the cause
    stale = classified.failure.error.kind == "stale"
    fallen = {*record.what.steps, *(record.what.flagged if stale else ())}
    rows = []
    for label, step in named:
        if step.id in status:
            after = StepStatus.INVALID if step.id in fallen else status[step.id]
            reusable, why = after is not StepStatus.INVALID, _why(step, record, classified, fallen)
            rows.append(_row(label, step, status[step.id], after, reusable, why))
    return Marking(record.what.cause, tuple(rows))


def _why(step: Step, record: Invalidated, classified: Classified, fallen: set[StepId]) -> str:
    inputs = ", ".join(sorted(step.reads()))
    if step.id in fallen:
        broken = ", ".join(sorted(step.reads() & set(record.what.artifacts)))
        if step.id == classified.failure.step:
            return f"precondition false: {classified.failure.predicate or classified.failure.error.message}"
        return f"made from {broken}" if broken else record.what.cause
    if step.id in record.what.flagged:
        return "but flagged as the cause"
    return f"depends only on {inputs}" if inputs else "untouched"


def _intent_change(
    record: Planned, change: IntentChanged, status: dict[StepId, StepStatus], named: list[tuple[str, Step]]
) -> Marking:
    after: dict[StepId, str] = dict(status)
    after |= dict.fromkeys((*record.delta.added, *record.delta.reopened), StepStatus.PENDING)
    after |= dict.fromkeys(record.delta.superseded, StepStatus.SUPERSEDED)
    rows = []
    for label, step in named:
        if step.id in after:
            reusable = set(step.produces) <= set(change.still_serving)
            why = "still serves" if reusable else "not made yet"
            rows.append(_row(label, step, status.get(step.id, ABSENT), after[step.id], reusable, why))
    return Marking(f"the goal changed (revision {change.goal_revision})", tuple(rows))


def _row(label: str, step: Step, before: str, after: str, reusable: bool, why: str) -> Row:
    return Row(label, step.intent, str(before), str(after), " ".join(step.produces), reusable, why)

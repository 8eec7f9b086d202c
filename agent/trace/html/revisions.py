"""How did the plan change? Its revisions are replayed from the records: what was kept, what was mended."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.core.failure import Trigger
from agent.core.ladder import Rung
from agent.core.plan import Plan, Step, StepId, edges
from agent.core.predicate import Verdict
from agent.core.record import (
    AttemptEnded,
    Committed,
    Invalidated,
    Judged,
    Planned,
    Recovered,
    Repaired,
    StepStarted,
    TraceRecord,
)
from agent.trace.html.model import Cell, Drawn

FOUND = ("adopted", "recorded")
"""How an attempt ended that made nothing: the effect was there."""

_AFTER = {Rung.RETRY: "pending", Rung.PATCH: "failed", Rung.REWRITE: "failed"}
"""How a failed step stands while its recovery is carried out; on the higher rungs the world says it."""


def revisions(trace: Iterable[TraceRecord], plan: Plan, began: float) -> tuple[Drawn, ...]:
    """Every revision, each as it stood when the next was drawn; the last as the plan stands now."""
    replay = _Replay(edges(plan.steps), began)
    for record in trace:
        replay.take(record)
    if not replay.drawn and not plan.steps:
        return ()
    replay.close({each.id: each for each in plan.steps})
    return tuple(replay.closed)


@dataclass
class _Replay:
    """Statuses of steps, brought forward record by record."""

    needs: Mapping[StepId, frozenset[StepId]]
    began: float
    status: dict[StepId, str] = field(default_factory=dict)
    change: dict[StepId, str] = field(default_factory=dict)
    tries: dict[StepId, int] = field(default_factory=dict)
    broke: set[StepId] = field(default_factory=set)
    """Steps that failed since the revision was drawn, and were not retried."""
    how: dict[StepId, str] = field(default_factory=dict)
    cause: str = ""
    """Of the replan that is due."""
    drawn: tuple[int, float, str] | None = None
    closed: list[Drawn] = field(default_factory=list)

    def take(self, record: TraceRecord) -> None:
        """Bring the statuses forward."""
        match record:
            case Planned() | Repaired():
                self._redraw(record)
            case StepStarted() | AttemptEnded() | Judged():
                self._tried(record)
            case Committed() if record.step is not None:
                self._committed(record.step, record.unchanged)
            case Invalidated():
                self.status |= dict.fromkeys((*record.what.steps, *record.what.flagged), "invalid")
            case Recovered():
                self._recovered(record)
            case _:
                pass

    def close(self, final: Mapping[StepId, Step] | None = None) -> None:
        """End the present revision; the last one stands as the plan says."""
        if final is not None:
            self.status = {key: each.status.value for key, each in final.items()}
            self.tries = {key: each.attempts for key, each in final.items()}
        revision, at, why = self.drawn or (0, self.began, "stated in the state")
        known = (key for key, status in self.status.items() if status != "superseded" or self._just_dropped(key))
        cells = {
            str(key): Cell(
                status=self.status[key],
                change=self.change.get(key, "kept"),
                tries=self.tries.get(key, 0),
                broke=final is None and key in self.broke,
            )
            for key in known
        }
        self.closed.append(Drawn(revision=revision, at=max(0.0, at - self.began), why=why, cells=cells))

    def _just_dropped(self, step: StepId) -> bool:
        return self.change.get(step) == "dropped"

    def _redraw(self, record: Planned | Repaired) -> None:
        if self.drawn:
            self.close()
        first = not self.drawn
        delta = record.delta
        self.drawn = (record.revision, record.at, _why(record, self.cause))
        self.broke.clear()
        self.change = dict.fromkeys(delta.superseded, "dropped")
        self.status |= dict.fromkeys(delta.superseded, "superseded")
        self.change |= dict.fromkeys(delta.reopened, "again") | dict.fromkeys(delta.added, "kept" if first else "new")
        self.status |= dict.fromkeys((*delta.reopened, *delta.added), "pending")

    def _tried(self, record: StepStarted | AttemptEnded | Judged) -> None:
        match record:
            case StepStarted():
                self.tries[record.step] = record.attempt
                self.status[record.step] = "running"
            case AttemptEnded():
                self.how[record.step] = record.how
                self.status[record.step] = "running" if record.ok else "failed"
            case Judged() if record.judgements:
                verified = all(each.verdict is Verdict.VERIFIED for each in record.judgements)
                self.status[record.step] = "done" if verified else "failed"
            case _:
                pass

    def _committed(self, step: StepId, unchanged: bool) -> None:
        self.status[step] = "done"
        if self.change.get(step) == "again" and self.how.get(step) in FOUND:
            self.change[step] = "found"
        if unchanged:
            self._lift(step)

    def _lift(self, step: StepId) -> None:
        """The same content again: what was made from it holds again, as far as its other sources do."""
        for other, needs in self.needs.items():
            standing = all(self.status.get(each) == "done" for each in needs)
            if step in needs and standing and self.status.get(other) == "invalid" and self.change.get(other) != "again":
                self.status[other] = "done"
                self._lift(other)

    def _recovered(self, record: Recovered) -> None:
        step, rung = record.classified.failure.step, record.choice.rung
        if rung is Rung.REPLAN and not record.choice.joined:
            self.cause = record.classified.failure.error.message
        if step is None:
            return
        self.status[step] = _AFTER.get(rung, "failed")
        if rung is not Rung.RETRY:
            self.broke.add(step)


def story(step: StepId, drawn: Sequence[Drawn]) -> str:
    """What the revisions did with one step, in words."""
    words = {"again": "to be done again", "found": "looked at again, and found standing", "new": "new"}
    words["dropped"] = "dropped"
    parts = []
    for each in drawn:
        cell = each.cells.get(step)
        if cell and cell.change in words:
            parts.append(f"{words[cell.change]} in plan {each.revision}")
        if cell and cell.broke:
            parts.append(f"broke under plan {each.revision}")
    return "; ".join(parts)


def _why(record: Planned | Repaired, cause: str) -> str:
    if isinstance(record, Repaired):
        return f"{record.rung}, {record.because}"
    if record.trigger is Trigger.INITIAL:
        return f"drawn by the {record.planner} planner"
    if record.trigger is Trigger.INTENT_CHANGE:
        return f"drawn anew by the {record.planner} planner, for the goal was changed"
    return f"replan by the {record.planner} planner, for {cause or str(record.trigger).replace('_', ' ')}"

"""When did what run, and how short could it have been? Attempts on one axis, against the longest chain of the plan."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.core.plan import Plan, StepId, edges
from agent.core.record import AttemptEnded, StepStarted, TraceRecord
from agent.trace.html.model import Bar, Row, Timeline
from agent.trace.html.revisions import FOUND

IDLE = 5.0
"""Seconds in which nothing ran; a longer stretch (somebody was away) is left out of the axis."""

ROWS = 400
"""Steps that are shown; a longer picture is read by nobody."""


@dataclass(frozen=True)
class Try:
    """One attempt, as the records tell it."""

    step: StepId
    number: int
    marked: float
    """When it was marked running, in seconds since the epoch; likewise the next two."""
    start: float
    end: float
    ended: AttemptEnded | None

    @property
    def seconds(self) -> float:
        """How long it worked."""
        return self.end - self.start


def tries(trace: Sequence[TraceRecord]) -> tuple[Try, ...]:
    """All attempts in the order they were started; one that never came back ends where the records do."""
    last = trace[-1].at if trace else 0.0
    open_: dict[StepId, StepStarted] = {}
    found: list[Try] = []
    for record in trace:
        if isinstance(record, StepStarted):
            if record.step in open_:  # its process was killed
                found.append(_lost(open_[record.step], open_[record.step].at))
            open_[record.step] = record
        elif isinstance(record, AttemptEnded) and record.step in open_:
            begun = open_.pop(record.step)
            start = max(begun.at, record.at - record.seconds)
            found.append(Try(record.step, record.attempt, begun.at, start, record.at, record))
    found += [_lost(each, last) for each in open_.values()]
    return tuple(sorted(found, key=lambda each: each.marked))


def timeline(trace: Sequence[TraceRecord], attempts: Sequence[Try], plan: Plan) -> Timeline:
    """The picture of all attempts."""
    if not trace:
        return Timeline()
    axis = _Axis(trace, attempts)
    worked = _worked(attempts)
    chain = critical_chain(plan, {step: each.seconds for step, each in worked.items()})
    decisive = {id(worked[step]) for step in chain if step in worked}
    by_step: dict[StepId, list[Bar]] = {}
    for each in attempts:
        by_step.setdefault(each.step, []).append(_bar(each, axis, id(each) in decisive))
    intents = {each.id: each.intent for each in plan.steps}
    rows = [Row(step=step, intent=intents.get(step, step), bars=tuple(bars)) for step, bars in by_step.items()]
    shown = _most_telling(rows)
    return Timeline(
        rows=shown,
        seconds=axis.at(trace[-1].at),
        paused=axis.paused,
        critical=sum(worked[step].seconds for step in chain if step in worked),
        chain=tuple(intents.get(step, step) for step in chain),
        left_out=len(rows) - len(shown),
    )


def critical_chain(plan: Plan, seconds: Mapping[StepId, float]) -> tuple[StepId, ...]:
    """The chain of live steps that takes longest, first one first; it bounds any run of the plan from below."""
    needs = edges(plan.live())
    longest: dict[StepId, float] = {}
    before: dict[StepId, StepId | None] = {}
    for step in _in_order(needs):
        before[step] = max(needs[step], key=lambda each: longest[each], default=None)
        longest[step] = seconds.get(step, 0.0) + (longest[before[step]] if before[step] else 0.0)  # type: ignore[index] # of a step
    at = max(longest, key=lambda each: longest[each], default=None)
    chain: list[StepId] = []
    while at is not None:
        chain.append(at)
        at = before[at]
    return tuple(reversed(chain))


def _in_order(needs: Mapping[StepId, frozenset[StepId]]) -> Iterable[StepId]:
    """Steps after what they depend on; those in a cycle, which an edited plan may have, are left out."""
    done: set[StepId] = set()
    remaining = dict(needs)
    while free := [step for step, before in remaining.items() if before <= done]:
        done |= set(free)
        for each in free:
            del remaining[each]
        yield from free


class _Axis:
    """Seconds since the start, less the pauses in which nothing ran."""

    def __init__(self, trace: Sequence[TraceRecord], attempts: Sequence[Try]) -> None:
        self._began = trace[0].at
        self._pauses = tuple(_pauses(trace, attempts))
        self.paused = sum(end - start for start, end in self._pauses)

    def at(self, moment: float) -> float:
        gone = sum(min(moment, end) - start for start, end in self._pauses if start < moment)
        return max(0.0, moment - self._began - gone)


def _pauses(trace: Sequence[TraceRecord], attempts: Sequence[Try]) -> Iterable[tuple[float, float]]:
    spans = sorted((each.marked, each.end) for each in attempts if each.ended)
    busy = [(record.at, record.at) for record in trace] + spans
    reached = trace[0].at
    for start, end in sorted(busy):
        if start - reached > IDLE:
            yield reached, start
        reached = max(reached, end)


def _worked(attempts: Iterable[Try]) -> dict[StepId, Try]:
    """By step the attempt that counts: the last that succeeded, one that did the work rather than found it done."""
    good = [each for each in attempts if each.ended and each.ended.ok]
    found = {each.step: each for each in good}
    return found | {each.step: each for each in good if each.ended and each.ended.how not in FOUND}


def _lost(begun: StepStarted, end: float) -> Try:
    return Try(begun.step, begun.attempt, begun.at, min(end, begun.at + begun.delay), max(end, begun.at), None)


def _bar(each: Try, axis: _Axis, critical: bool) -> Bar:
    ended = each.ended
    start = axis.at(each.start)
    fate = "open" if ended is None else "failed" if not ended.ok else "found" if ended.how in FOUND else "done"
    return Bar(
        number=each.number,
        start=start,
        seconds=max(0.0, axis.at(each.end) - start),
        wait=max(0.0, start - axis.at(each.marked)),
        fate=fate,
        critical=critical,
        said=ended.error if ended else "nothing came back",
    )


def _most_telling(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows themselves; of too many those in which something happened, then the first."""
    if len(rows) <= ROWS:
        return tuple(rows)
    eventful = [row for row in rows if len(row.bars) > 1 or any(b.critical or b.fate != "done" for b in row.bars)]
    chosen = set(list(dict.fromkeys(row.step for row in [*eventful, *rows]))[:ROWS])
    return tuple(row for row in rows if row.step in chosen)

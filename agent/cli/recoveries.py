"""Which recoveries did a run take? Read from the trace: each failure, its rung, and what that changed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agent.core.ladder import Rung
from agent.core.merge import PlanDelta
from agent.core.record import Invalidated, Planned, Recovered, Repaired, TraceRecord
from agent.core.value import ArtifactName


@dataclass(frozen=True)
class Taken:
    """One recovery, told by the records that follow the choice."""

    choice: Recovered
    invalidated: tuple[ArtifactName, ...] = ()
    because: str = ""
    """What a patch changed."""
    revision: int = 0
    """Of the plan it led to; 0 when the plan stayed as it was."""
    delta: PlanDelta = PlanDelta()  # noqa: RUF009 - frozen value
    reused: tuple[ArtifactName, ...] = ()

    @property
    def rung(self) -> Rung:
        """The rung that was taken."""
        return self.choice.choice.rung

    @property
    def about(self) -> str:
        """What the failed step was for."""
        return self.choice.classified.failure.key

    @property
    def error(self) -> str:
        """What went wrong, in one line."""
        return " ".join(self.choice.classified.failure.error.message.split())

    @property
    def done(self) -> str:
        """What was done about it, in one line."""
        return _DONE[self.rung](self)


def recoveries(trace: Iterable[TraceRecord]) -> tuple[Taken, ...]:
    """All recoveries of a thread, in the order they were chosen."""
    taken: list[Taken] = []
    before: TraceRecord | None = None
    for record in trace:
        match record:
            case Recovered():
                taken.append(Taken(record))
            case Invalidated() if isinstance(before, Recovered):
                taken[-1] = replace(taken[-1], invalidated=record.what.artifacts)
            case Planned() | Repaired():
                taken = [_led_to(each, record) for each in taken]
            case _:
                pass
        before = record
    return tuple(taken)


def worth_telling(taken: Sequence[Taken]) -> tuple[Taken, ...]:
    """Without those that only went along with a replan that was ordered already."""
    return tuple(each for each in taken if not each.choice.choice.joined)


def _led_to(taken: Taken, record: Planned | Repaired) -> Taken:
    """The recovery with the plan it led to, if this is that plan."""
    if taken.revision or not _answers(record, taken):
        return taken
    because = record.because if isinstance(record, Repaired) else ""
    return replace(taken, because=because, revision=record.revision, delta=record.delta, reused=record.reused)


def _answers(record: Planned | Repaired, taken: Taken) -> bool:
    if isinstance(record, Planned):
        return taken.rung is Rung.REPLAN
    return (record.step, record.rung) == (taken.choice.classified.failure.step, taken.rung)


def _retried(taken: Taken) -> str:
    delay = taken.choice.choice.delay
    return "the same call again" + (f", after {delay:g} s" if delay else "")


def _replanned(taken: Taken) -> str:
    if not taken.revision:
        return "a new plan"
    kept = f", which keeps {', '.join(taken.reused)}" if taken.reused else ""
    return f"plan {taken.revision}{kept}; {_again(taken)}"


def _again(taken: Taken) -> str:
    redone = len(taken.delta.reopened) + len(taken.delta.added)
    untouched = len(taken.delta.kept)
    return f"{redone} step{'' if redone == 1 else 's'} again, {untouched} untouched"


def _escalated(taken: Taken) -> str:
    passed = taken.choice.choice.passed
    return f"a person is asked, for {passed[-1].reason}" if passed else "a person is asked"


_DONE: dict[Rung, Callable[[Taken], str]] = {
    Rung.RETRY: _retried,
    Rung.PATCH: lambda taken: taken.because or "another call",
    Rung.REWRITE: lambda taken: _again(taken) if taken.revision else "what broke is drawn anew",
    Rung.REPLAN: _replanned,
    Rung.ESCALATE: _escalated,
}

"""Which recoveries did a run take? Read from the trace: each failure, its rung, and what that changed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.core.ladder import Rung, RungChoice
from agent.core.plan import Plan, StepId
from agent.core.record import Invalidated, Planned, Recovered, Repaired, TraceRecord
from agent.core.value import ArtifactName

_SHOWN = 3
"""Names in a line; a plan may have thousands."""


@dataclass(frozen=True)
class Taken:
    """One recovery, told by the records that follow the choice."""

    choice: Recovered
    invalidated: tuple[ArtifactName, ...] = ()
    because: str = ""
    """What a patch changed."""
    revision: int = 0
    """Of the plan it led to; 0 when the plan stayed as it was."""
    redone: tuple[StepId, ...] = ()
    """Steps that are done again, or anew."""
    again: tuple[str, ...] = ()
    """What they are for."""
    untouched: int = 0
    """Steps that stay as they are."""
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


def recoveries(trace: Iterable[TraceRecord], plan: Plan) -> tuple[Taken, ...]:
    """All recoveries of a thread, in the order they were chosen; the plan names their steps."""
    names = {each.id: each.key for each in plan.steps}
    taken: list[Taken] = []
    before: TraceRecord | None = None
    for record in trace:
        match record:
            case Recovered():
                taken.append(Taken(record))
            case Invalidated() if isinstance(before, Recovered):
                taken[-1] = replace(taken[-1], invalidated=record.what.artifacts)
            case Planned() | Repaired():
                taken = [_led_to(each, record, names) for each in taken]
            case _:
                pass
        before = record
    return tuple(taken)


def passed_over(choice: RungChoice) -> str:
    """The rungs that were not taken, those with one reason together; empty when there are none."""
    reasons: dict[str, list[str]] = {}
    for each in choice.passed:
        reasons.setdefault(each.reason, []).append(each.rung)
    return "; ".join(f"{', '.join(rungs)} passed over: {reason}" for reason, rungs in reasons.items())


def worth_telling(taken: Sequence[Taken], run: int) -> tuple[Taken, ...]:
    """Those of one run, without those that only went along with a replan that was ordered already."""
    return tuple(each for each in taken if each.choice.run == run and not each.choice.choice.joined)


def _led_to(taken: Taken, record: Planned | Repaired, names: Mapping[StepId, str]) -> Taken:
    """The recovery with the plan it led to, if this is that plan."""
    if taken.revision or not _answers(record, taken):
        return taken
    because = record.because if isinstance(record, Repaired) else ""
    redone = (*record.delta.reopened, *record.delta.added)
    return replace(
        taken,
        because=because,
        revision=record.revision,
        redone=redone,
        again=tuple(names.get(each, each) for each in redone),
        untouched=len(record.delta.kept),
        reused=record.reused,
    )


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
    shown = ", ".join(taken.again[:_SHOWN]) or "nothing"
    more = f" and {len(taken.again) - _SHOWN} more" if len(taken.again) > _SHOWN else ""
    return f"again: {shown}{more}; untouched: {taken.untouched} step{'' if taken.untouched == 1 else 's'}"


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

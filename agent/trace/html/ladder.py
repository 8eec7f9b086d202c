"""What broke, and how was it mended? Each recovery with what it kept, what was redone and why, and what it cost."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import cached_property

from agent.core.failure import Origin, Scope, Trigger
from agent.core.ladder import Rung
from agent.core.plan import Plan, Step, StepId, downstream
from agent.core.record import Committed, Recovered, TraceRecord
from agent.core.value import ArtifactName
from agent.trace.html.model import Mended, Redone
from agent.trace.html.revisions import FOUND
from agent.trace.html.timeline import Try
from agent.trace.html.wording import count, seconds
from agent.trace.recoveries import Taken, recoveries

PROVED = {
    Scope.NOTHING: "nothing: call, plan and world are as they were, and the same call may succeed",
    Scope.CALL: "the call: made like this, it does not give what the plan needs",
    Scope.PRECONDITION: "a precondition: something the step stands on is not, or no longer, so",
    Scope.GOAL: "the goal: it cannot be reached in this way",
}
ORIGINS = {
    Origin.ENVIRONMENT: "the world changed, or misbehaved",
    Origin.AGENT: "the call was wrong",
    Origin.OBSERVATION: "a fact had never been looked at",
}
TRIGGERS = {
    Trigger.TASK_FAILURE: "",
    Trigger.PRECONDITION_VIOLATION: "a precondition was checked before the step acted, and does not hold",
    Trigger.BLOCKED: "no step can go on",
    Trigger.INTENT_CHANGE: "the goal was changed",
}


def mended(trace: Sequence[TraceRecord], attempts: Sequence[Try], plan: Plan) -> tuple[Mended, ...]:
    """All recoveries in order; a failure that only went along with another is told there."""
    taken = recoveries(trace, plan)
    leaders: list[_Led] = []
    for each in taken:
        if each.choice.choice.joined and leaders:
            leaders[-1].along.append(each)
        else:
            leaders.append(_Led(each))
    history = _History(trace, attempts, plan)
    return tuple(_mended(number, each, history) for number, each in enumerate(leaders, 1))


@dataclass
class _Led:
    """A recovery, and those that joined it."""

    taken: Taken
    along: list[Taken] = attribute(default_factory=list)

    @property
    def steps(self) -> tuple[StepId, ...]:
        """What it had done again, or anew."""
        if self.taken.redone:
            return self.taken.redone
        failed = self.taken.choice.classified.failure.step
        return (failed,) if failed and self.taken.rung is Rung.RETRY else ()


@dataclass(frozen=True)
class _History:
    """What the recoveries are read against."""

    trace: Sequence[TraceRecord]
    attempts: Sequence[Try]
    plan: Plan

    @cached_property
    def _steps(self) -> Mapping[StepId, Step]:
        return {each.id: each for each in self.plan.steps}

    @cached_property
    def _attempts(self) -> Mapping[StepId, Sequence[Try]]:
        found: dict[StepId, list[Try]] = {}
        for each in self.attempts:
            found.setdefault(each.step, []).append(each)
        return found

    @cached_property
    def _below(self) -> dict[StepId, frozenset[StepId]]:
        return {}

    @property
    def began(self) -> float:
        """Seconds since the epoch."""
        return self.trace[0].at

    def step(self, step: StepId | None) -> Step | None:
        """The step of that id, if the plan has it."""
        return self._steps.get(step) if step else None

    def intent(self, step: StepId | None) -> str:
        """What a step is for."""
        found = self.step(step)
        return found.intent if found else str(step or "")

    def next_try(self, step: StepId, after: float) -> Try | None:
        """The first attempt of a step from a moment on."""
        return next((each for each in self.of(step) if each.marked >= after), None)

    def of(self, step: StepId | None) -> Sequence[Try]:
        """The attempts of a step."""
        return self._attempts.get(step, ()) if step else ()

    def below(self, step: StepId | None) -> frozenset[StepId]:
        """The steps that stand on one."""
        if step is None:
            return frozenset()
        if step not in self._below:
            self._below[step] = downstream(self.plan.steps, [step])
        return self._below[step]

    def held(self, at: float) -> frozenset[ArtifactName]:
        """Artifacts that had been verified by a moment."""
        return frozenset(each.name for each in self.trace if isinstance(each, Committed) and each.at <= at)


def _mended(number: int, led: _Led, history: _History) -> Mended:
    taken, choice = led.taken, led.taken.choice.choice
    classified = taken.choice.classified
    failure = classified.failure
    # what was being done when the rung was chosen belongs to the failure, not to its repair
    next_ones = {step: history.next_try(step, taken.choice.at) for step in led.steps}
    return Mended(
        number=number,
        at=taken.choice.at - history.began,
        rung=taken.rung,
        start=choice.start,
        passed=tuple((each.rung.value, each.reason) for each in choice.passed),
        about=taken.about,
        intent=history.intent(failure.step),
        failed=failure.error.message,
        trigger=TRIGGERS.get(failure.trigger, str(failure.trigger)),
        proved=PROVED[classified.scope],
        origin=ORIGINS[classified.origin],
        rule=classified.rule,
        doubted=taken.invalidated or classified.falsified,
        done=_done(taken),
        kept=_kept(taken.choice, next_ones, history),
        redone=tuple(_redone(step, each, led, history) for step, each in next_ones.items()),
        along=tuple((each.about, each.error) for each in led.along),
        cost=_cost(led, next_ones, history),
    )


def _done(taken: Taken) -> str:
    """What was done about it; what a new plan redoes and keeps is told step by step."""
    if taken.rung in (Rung.REWRITE, Rung.REPLAN) and taken.revision:
        steps = count(len(taken.redone), "step")
        return f"plan {taken.revision} was drawn: {steps} to be done again or anew, {taken.untouched} untouched"
    return taken.done


def _kept(choice: Recovered, next_ones: Mapping[StepId, Try | None], history: _History) -> tuple[ArtifactName, ...]:
    """Finished work that the recovery did not have made again; what was seen to stand is kept as well."""
    made: dict[bool, set[ArtifactName]] = {True: set(), False: set()}
    for each in history.plan.steps:
        if each.id in next_ones:
            made[_stood(next_ones[each.id])] |= set(each.produces)
    return tuple(sorted((history.held(choice.at) | made[True]) - made[False]))


def _redone(step: StepId, next_one: Try | None, led: _Led, history: _History) -> Redone:
    return Redone(
        step=step,
        intent=history.intent(step),
        why=_why(step, led, history),
        came=_came(next_one),
        stood=_stood(next_one),
    )


def _stood(each: Try | None) -> bool:
    return each is not None and each.ended is not None and each.ended.how in FOUND


def _why(step: StepId, led: _Led, history: _History) -> str:
    """Why a step was done again: it failed, it looks again, or it stands on what is in doubt."""
    taken, found = led.taken, history.step(step)
    failed = taken.choice.classified.failure.step
    makes: Set[ArtifactName] = set(found.produces) if found else set()
    doubted = set(taken.invalidated)
    if step == failed:
        return "it had failed"
    if step in {each.choice.classified.failure.step for each in led.along}:
        return "it had failed as well"
    read = sorted(found.reads() & doubted) if found else []
    if found is not None and makes & doubted and not read:
        return "it looks again at what was in doubt"
    if read:
        return f"it reads {', '.join(read)}, which was in doubt"
    if step in history.below(failed):
        return "it stands on the step that failed"
    return f"it belongs to plan {taken.revision}" if taken.revision else ""


def _came(each: Try | None) -> str:
    if each is None:
        return "not begun"
    if each.ended is None:
        return "begun, and nothing came back"
    if not each.ended.ok:
        return f"failed again, after {seconds(each.seconds)}"
    if _stood(each):
        return f"there it was, after {seconds(each.seconds)}"
    return f"done {'again ' if each.number > 1 else ''}in {seconds(each.seconds)}"


def _cost(led: _Led, next_ones: Mapping[StepId, Try | None], history: _History) -> str:
    """What the failure threw away, and what mending it took."""
    failed = [lost for each in (led.taken, *led.along) if (lost := _lost(each, history))]
    begun = [each for each in next_ones.values() if each]
    waited = max((each.start - each.marked for each in begun), default=0.0)
    parts = [f"{count(len(failed), 'failed attempt')} ({_spent(failed)})" if failed else "no attempt was lost"]
    if begun:
        parts.append(f"{count(len(begun), 'attempt')} to mend it ({_spent(begun)})")
    if waited >= 0.05:
        parts.append(f"{seconds(waited)} of waiting")
    if led.taken.rung in (Rung.REWRITE, Rung.REPLAN) and led.taken.revision:
        parts.append("one more planning")
    return ", ".join(parts)


def _lost(taken: Taken, history: _History) -> Try | None:
    """The attempt that failed; a precondition that was checked in time has cost none."""
    step, at = taken.choice.classified.failure.step, taken.choice.at
    ended = [each for each in history.of(step) if each.end <= at]
    last = ended[-1] if ended else None
    failed = taken.choice.classified.failure.trigger is Trigger.TASK_FAILURE
    return last if last and last.ended and failed else None


def _spent(attempts: Iterable[Try]) -> str:
    return seconds(sum(each.seconds for each in attempts))

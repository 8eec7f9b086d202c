"""What happened, and why? Each record of the trace as one line of words."""

from collections.abc import Iterable, Iterator, Mapping
from functools import singledispatch

from agent.core.merge import PlanDelta
from agent.core.plan import Plan
from agent.core.record import (
    Answered,
    AttemptEnded,
    Committed,
    Ended,
    Escalated,
    IntentChanged,
    Invalidated,
    Judged,
    Nudged,
    Paused,
    Planned,
    PlanRejected,
    Recovered,
    Repaired,
    Ruled,
    RunStarted,
    StepStarted,
    TraceRecord,
    Triaged,
    Withheld,
)
from agent.core.value import abridged
from agent.trace.recoveries import passed_over


def story(trace: Iterable[TraceRecord], plan: Plan) -> Iterator[tuple[float, str, str]]:
    """Seconds since the run began, a keyword, and what happened, for every record."""
    intents = {str(each.id): each.intent for each in plan.steps}
    began = 0.0
    for record in trace:
        if isinstance(record, RunStarted):
            began = record.at
        keyword, said = told(record)
        yield record.at - began, keyword, _named(said, intents, record)


@singledispatch
def told(record: object) -> tuple[str, str]:
    """A keyword and a sentence for a record."""
    raise TypeError(f"no words for {record!r}")


@told.register
def _(record: RunStarted) -> tuple[str, str]:
    kept = "; earlier work is kept" if record.resumed else ""
    return "run", f"run {record.run}: {record.goal} (goal revision {record.goal_revision}{kept})"


@told.register
def _(record: Triaged) -> tuple[str, str]:
    forced = " (demanded)" if record.chosen.asked else ""
    return "triage", f"{record.chosen.strategy.value.replace('_', ' ')}{forced}: {record.chosen.reason}"


@told.register
def _(record: IntentChanged) -> tuple[str, str]:
    aside = f"; set aside: {_list(record.set_aside)}" if record.set_aside else ""
    return "goal", f"revision {record.goal_revision}; still serving: {_list(record.still_serving)}{aside}"


@told.register
def _(record: Planned) -> tuple[str, str]:
    reused = f"; reused: {_list(record.reused)}" if record.reused else ""
    why = str(record.trigger).replace("_", " ")
    return "plan", f"plan {record.revision} by the {record.planner} planner ({why}): {_delta(record.delta)}{reused}"


@told.register
def _(record: PlanRejected) -> tuple[str, str]:
    return "no plan", record.reason


@told.register
def _(record: StepStarted) -> tuple[str, str]:
    attempt = f", try {record.attempt}" if record.attempt > 1 else ""
    delay = f", after {record.delay:g} s" if record.delay else ""
    return "start", f"{record.step} {record.intent}{attempt}{delay}"


@told.register
def _(record: AttemptEnded) -> tuple[str, str]:
    how = {"called": "", "recorded": " (from the journal)", "adopted": " (its effect was there already)"}
    if record.ok:
        notes = f"; {'; '.join(record.notes)}" if record.notes else ""
        return "back", f"{record.step} in {record.seconds:.3f} s{how.get(record.how, f' ({record.how})')}{notes}"
    return "failed", f"{record.step} in {record.seconds:.3f} s: {record.error}"


@told.register
def _(record: Nudged) -> tuple[str, str]:
    return "nudge", f"{record.step or 'planner'} was told: {record.message}"


@told.register
def _(record: Withheld) -> tuple[str, str]:
    what = record.what
    named = ", ".join(f"{path} ({abridged(value, 80)})" for path, value in what.strange.items())
    how = "waits for a person" if what.asked else "was not called"
    return "withheld", f"{record.step}: {what.tool} {how}: {named} from neither goal, plan, person nor a named field"


@told.register
def _(record: Ruled) -> tuple[str, str]:
    return "ruled", f"{record.verdict}: {record.text} ({record.evidence})"


@told.register
def _(record: Judged) -> tuple[str, str]:
    if not record.judgements:
        return "judged", f"{record.step} has nothing to judge"
    said = "; ".join(
        f"{each.verdict}: {each.predicate}" + (f" ({each.reason})" if each.reason else "") for each in record.judgements
    )
    return "judged", f"{record.step} {said} (by {_list(record.by)})"


@told.register
def _(record: Committed) -> tuple[str, str]:
    same = ", unchanged: what was made from it stays" if record.unchanged else ""
    maker = record.step or "a person"
    return "commit", f"{record.name} version {record.version} ({record.digest[:8]}) from {maker}{same}"


@told.register
def _(record: Invalidated) -> tuple[str, str]:
    what = record.what
    again = f"; {_list(what.flagged)} looks again" if what.flagged else ""
    steps = f", with it {_list(what.steps)}" if what.steps else ""
    return "invalid", f"{_list(what.artifacts)}{steps}{again}; because {what.cause}"


@told.register
def _(record: Recovered) -> tuple[str, str]:
    classified, choice = record.classified, record.choice
    failure = classified.failure
    passed = f"; {passed_over(choice)}" if choice.passed else ""
    joined = "; it goes along with the replan that was ordered" if choice.joined else ""
    trigger = str(failure.trigger).replace("_", " ")
    return choice.rung, (
        f"{failure.step or failure.key}: {trigger}, proves false: {classified.scope}, origin: {classified.origin}, "
        f"rule: {classified.rule}; {failure.error.message}{passed}{joined}"
    )


@told.register
def _(record: Repaired) -> tuple[str, str]:
    reused = f"; reused: {_list(record.reused)}" if record.reused else ""
    return "mended", f"{record.rung}, plan {record.revision}: {record.because}; {_delta(record.delta)}{reused}"


@told.register
def _(record: Escalated) -> tuple[str, str]:
    return "asked", f"{record.question} (question {record.id})"


@told.register
def _(record: Answered) -> tuple[str, str]:
    said = ", ".join(f"{name}: {value}" for name, value in record.answer.items() if value)
    return "answer", f"{said} (question {record.id})"


@told.register
def _(record: Paused) -> tuple[str, str]:
    return "pause", record.reason


@told.register
def _(record: Ended) -> tuple[str, str]:
    return "end", f"{record.status}: {record.reason} ({record.verified} artifacts newly verified)"


def _named(said: str, intents: Mapping[str, str], record: TraceRecord) -> str:
    """The line on one line, with the intent beside the id of a step that failed."""
    if isinstance(record, AttemptEnded) and not record.ok and record.step in intents:
        said = said.replace(record.step, f"{record.step} {intents[record.step]}", 1)
    return " ".join(said.split())


def _delta(delta: PlanDelta) -> str:
    lists = {"new": delta.added, "again": delta.reopened, "untouched": delta.kept, "dropped": delta.superseded}
    return ", ".join(f"{name}: {_list(ids)}" for name, ids in lists.items() if ids) or "nothing changes"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"

"""What does a person need to know about a thread? State and records become one report; pure, for any state."""

from collections import Counter
from collections.abc import Iterable, Sequence

from agent.core.goal import Goal
from agent.core.plan import Step
from agent.core.record import Answered, AttemptEnded, Escalated, StepStarted, TraceRecord
from agent.trace.costs import paid
from agent.trace.html.budgets import budgets
from agent.trace.html.ladder import mended
from agent.trace.html.model import Graded, Material, Mended, Posed, Report, Timeline, Told
from agent.trace.html.provenance import made
from agent.trace.html.revisions import revisions
from agent.trace.html.steps import step_lines
from agent.trace.html.timeline import timeline, tries
from agent.trace.html.wording import count, seconds
from agent.trace.story import story as told_story

OPEN = ("running", "stopped", "waiting")
"""How a thread stands that has not ended."""

MOST = {"steps": 5_000, "artifacts": 300, "mended": 200, "told": 1_000, "drawn": 60, "asked": 100, "unfinished": 200}
"""How much of each part is shown; more would make a page that nobody can use."""


def report_of(material: Material) -> Report:
    """The report of a thread as it stands."""
    trace, plan = material.trace, material.plan
    began = trace[0].at if trace else 0.0
    attempts = tries(trace)
    drawn = revisions(trace, plan, began)
    recovered = mended(trace, attempts, plan)
    times = timeline(trace, attempts, plan)
    parts: dict[str, Sequence[object]] = {
        "mended": recovered,
        "drawn": drawn,
        "steps": step_lines(plan, drawn),
        "artifacts": made(material.world, plan, trace),
        "asked": (*_open(material), *_answered(trace)),
        "unfinished": _unfinished(material),
        "told": tuple(Told(at=at, keyword=word, said=said) for at, word, said in told_story(trace, plan)),
    }
    return Report(
        thread=material.thread,
        title=_title(material.goal),
        standing=material.standing,
        outcome=_outcome(material, recovered),
        numbers=_numbers(material, recovered, times),
        next=material.again if material.standing in ("stopped", "waiting") else "",
        timeline=times,
        paid=paid(material.ledger),
        budgets=budgets(material.ledger, material.limits),
        grades=_grades(material),
        left_out={name: len(each) - MOST[name] for name, each in parts.items() if len(each) > MOST[name]},
        **{name: _first(each, MOST[name], last=name == "drawn") for name, each in parts.items()},  # type: ignore[arg-type] # each of its field's type
    )


def _first(each: Sequence[object], most: int, last: bool) -> tuple[object, ...]:
    """What is shown of a part; of the plan's revisions the newest."""
    return tuple(each[-most:] if last else each[:most])


def _title(goal: Goal) -> str:
    criteria = [each.text or each.predicate or each.id for each in goal.criteria]
    return goal.text or ", ".join(goal.wants) or "; ".join(criteria) or "No goal was stated yet"


def _outcome(material: Material, recovered: Sequence[Mended]) -> str:
    """How it stands, and what it took, in one sentence."""
    said = _standing(material)
    if not recovered:
        return f"{said}; nothing had to be recovered." if material.trace else f"{said}."
    rungs = Counter(each.rung for each in recovered)
    return f"{said}; on the way {_and([_rung(rung, number) for rung, number in rungs.items()])}."


def _standing(material: Material) -> str:
    live = material.plan.live()
    done = f"{sum(each.status == 'done' for each in live)} of {count(len(live), 'step')} done"
    match material.standing:
        case "running":
            return f"Running, {done}" if live else "Running, and nothing is planned yet"
        case "waiting":
            return f"Waiting for a person to answer {count(len(material.questions), 'question')}, {done}"
        case "stopped":
            if not live:
                return "Stopped before anything was planned"
            return f"Stopped in the middle (killed, or interrupted), {done}, and what was verified is kept"
        case status:
            reason = material.outcome.reason if material.outcome else ""
            return f"{status.replace('_', ' ').capitalize()}" + (f": {reason.strip().rstrip('.')}" if reason else "")


def _rung(rung: str, number: int) -> str:
    said = {
        "retry": ("one call was retried", "{} calls were retried"),
        "patch": ("one call was patched", "{} calls were patched"),
        "rewrite": ("one part of the plan was rewritten", "parts of the plan were rewritten {} times"),
        "replan": ("the plan was drawn anew once", "the plan was drawn anew {} times"),
        "escalate": ("one failure went to a person", "{} failures went to a person"),
    }[rung]
    return said[0] if number == 1 else said[1].format(number)


def _and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _numbers(material: Material, recovered: Sequence[Mended], times: Timeline) -> tuple[tuple[str, str], ...]:
    holding = sum(each.mark is None for each in material.world.artifacts.values() if each.producer != "goal")
    started = sum(isinstance(each, StepStarted) for each in material.trace)
    failed = sum(isinstance(each, AttemptEnded) and not each.ok for each in material.trace)
    runs = max((each.run for each in material.trace), default=0)
    found = [
        (f"{holding:,}", "artifact holds" if holding == 1 else "artifacts hold"),
        (f"{started:,}", "attempt" if started == 1 else "attempts"),
        (f"{failed:,}", "of them failed"),
        (f"{len(recovered):,}", "recovery" if len(recovered) == 1 else "recoveries"),
        (
            seconds(times.seconds),
            "from start to end" if material.outcome and material.standing not in OPEN else "so far",
        ),
    ]
    if runs > 1:
        found.append((f"{runs:,}", "runs"))
    if material.ledger.tokens:
        about = "about " if material.ledger.tokens_estimated else ""
        found.append((f"{about}{material.ledger.tokens:,}", "tokens"))
    if material.ledger.money:
        found.append((f"{material.ledger.money:.2f}", "money"))
    return tuple(found)


def _open(material: Material) -> Iterable[Posed]:
    for each in material.questions:
        yield Posed(id=each.id, question=each.question, learned=(*each.tried, *each.learned), choices=each.choices)


def _answered(trace: Iterable[TraceRecord]) -> Iterable[Posed]:
    asked = {}
    for record in trace:
        if isinstance(record, Escalated):
            asked[record.id] = Posed(id=record.id, question=record.question, answer="nobody could be asked")
        elif isinstance(record, Answered):
            known = asked.get(record.id, Posed(id=record.id, question=""))
            asked[record.id] = known.model_copy(update={"answer": _said(record)})
    return asked.values()


def _said(record: Answered) -> str:
    more = {name: value for name, value in record.answer.items() if value and name != "choice"}
    said = str(record.answer.get("choice", ""))
    return f"{said}: {', '.join(f'{name} {value}' for name, value in more.items())}" if more else said


def _grades(material: Material) -> tuple[Graded, ...]:
    outcome = material.outcome
    return tuple(
        Graded(says=e.predicate, verdict=e.verdict, reason=e.reason) for e in (outcome.grades if outcome else ())
    )


def _unfinished(material: Material) -> tuple[tuple[str, str], ...]:
    """What is not done; what is skipped was left out for a reason, which is told as well."""
    live: Iterable[Step] = material.plan.live()
    return tuple(
        (each.intent, each.status.value + (f": {each.reason}" if each.reason else ""))
        for each in live
        if each.status != "done"
    )

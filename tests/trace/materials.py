"""Threads to be reported, made by hand: large ones, hostile ones, one that was killed, one that nobody began."""

from collections.abc import Iterator
from typing import Any

from agent.core.control import Question
from agent.core.failure import ErrorFacts
from agent.core.ladder import Options, choose_rung
from agent.core.limits import Ledger, Limits
from agent.core.merge import PlanDelta
from agent.core.outcome import Outcome, OutcomeStatus
from agent.core.plan import Call, Plan, Step, StepId, StepStatus
from agent.core.predicate import Judgement, Verdict
from agent.core.record import (
    AttemptEnded,
    Committed,
    Ended,
    Judged,
    Planned,
    Recovered,
    Repaired,
    RunStarted,
    StepStarted,
    TraceRecord,
)
from agent.core.world import Artifact, Verification, World
from agent.trace.html.model import Material, Report
from tests.builders import classified, goal, plan, step

BEGAN = 1_000_000.0
HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
    "\x00\x1b[31m\u202egnp.exe\ud800{{7*7}}&lt;\"'`--><!-- \u2028 https://example.org/ sk-0123456789abcdef"
)
"""Everything that would hurt a page which takes a text for more than a text; and a key."""


def many(count: int, broken: int = 3, tool: str = "") -> Material:
    """One source, `count` steps that read it, one sum; of the steps the first few fail once and are patched.

    Each calls a tool of its own, unless all call one.
    """
    names = [f"part_{index:04}" for index in range(count)]
    steps = [step("source"), *(_load(each, tool) for each in names)]
    steps.append(step("sum", " ".join(names)))
    last = plan(*(each.as_(StepStatus.DONE) for each in steps), revision=1 + broken)
    return Material(
        thread="many",
        standing="satisfied",
        goal=goal("sum"),
        plan=last,
        world=World(artifacts={each.produces[0]: artifact(each.produces[0], each.id) for each in steps}),
        trace=tuple(_records(last, set(names[:broken]))),
        ledger=Ledger(steps=count + 2 + broken, patch=dict.fromkeys(names[:broken], 1)),
        outcome=Outcome(status=OutcomeStatus.SATISFIED, reason="every step and criterion is verified"),
    )


def _load(name: str, tool: str) -> Step:
    given: dict[str, Any] = {"call": Call(tool=tool, args={"part": name})} if tool else {}
    return step(name, "source", intent=f"Load part {name}", **given)


def artifact(name: str, producer: str = "P", **more: Any) -> Artifact:
    given = {"digest": "d" * 32, "value": 1, "size": 1, "verification": Verification(by=("predicate",)), **more}
    return Artifact(name=name, producer=producer, **given)


def empty() -> Material:
    """Accepted, and killed before anything was done."""
    return Material(thread="empty", standing="stopped", again="kintsugi resume empty")


def killed() -> Material:
    """Three steps, of which the second was at work when the process died."""
    steps = (step("a", status="done"), step("b", "a", status="running", attempts=1), step("c", "b"))
    trace = list(_records(plan(*steps), set()))
    begun = next(i for i, each in enumerate(trace) if isinstance(each, AttemptEnded) and each.step == "B")
    return Material(
        thread="killed",
        standing="stopped",
        goal=goal("c"),
        plan=plan(*steps),
        world=World(artifacts={"a": artifact("a", "A")}),
        trace=tuple(trace[:begun]),
        again="kintsugi resume killed",
    )


def asking() -> Material:
    """Stopped at a question, after the ladder was climbed to its end."""
    stuck = step("x", status="failed", attempts=2, reason="403 Forbidden")
    failed = classified("precondition", of="x", step=StepId("X"), error=ErrorFacts(kind="exception", message="403"))
    ledger, limits, options = Ledger(replan=1), Limits(replan=1), Options()
    begun = RunStarted(at=BEGAN, goal="x", goal_revision=1)
    drawn = _planned(plan(stuck))
    choice = choose_rung(failed, options, limits, ledger)
    fell = Recovered(at=BEGAN + 2, classified=failed, options=options, limits=limits, ledger=ledger, choice=choice)
    question = Question(id="q1", step=StepId("X"), question="step X cannot be recovered: 403. What should happen?")
    return Material(
        thread="asking",
        standing="waiting",
        goal=goal("x"),
        plan=plan(stuck),
        trace=(begun, drawn, fell),
        questions=(question,),
        again="kintsugi resume asking",
    )


def hostile(report: Report) -> Report:
    """A report with something hostile in every text that a person, a tool or a model could have written."""
    return Report.model_validate(_spoiled(report.model_dump(), ""))


_OURS = ("standing", "status", "change", "fate", "rung", "start", "bundle", "id", "step", "verdict", "cells", "after")
"""Fields whose values are the runtime's own words or ids."""


def _spoiled(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _spoiled(each, key if name != "cells" else "cells") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spoiled(each, name) for each in value]
    return f"{value[:20]}{HOSTILE}" if isinstance(value, str) and name not in _OURS else value


def _records(last: Plan, broken: set[str]) -> Iterator[TraceRecord]:
    yield RunStarted(at=BEGAN, goal="sum", goal_revision=1)
    first = last.model_copy(update={"revision": 1})
    yield _planned(first)
    revision = 1
    for index, each in enumerate(last.steps):
        at = BEGAN + 1 + index / 100
        if each.key in broken:
            revision += 1
            yield from _failed(each, at, revision)
        yield from _succeeded(each, at + 0.2, 2 if each.key in broken else 1)
    yield Ended(at=BEGAN + 5 + len(last.steps) / 100, status=OutcomeStatus.SATISFIED, reason="", verified=1)


def _planned(drawn: Plan) -> Planned:
    added = tuple(each.id for each in drawn.steps)
    return Planned.model_validate(
        {
            "at": BEGAN + 0.5,
            "trigger": "initial",
            "planner": "test",
            "revision": 1,
            "delta": PlanDelta(added=added),
            "reused": (),
        }
    )


def _failed(each: Step, at: float, revision: int) -> Iterator[TraceRecord]:
    error = ErrorFacts(kind="exception", message="413 too large")
    failed = classified("call", of=each.key, step=each.id, error=error)
    options = Options(patchable=True)
    choice = choose_rung(failed, options, Limits(), Ledger())
    yield StepStarted(at=at, step=each.id, intent=each.intent, attempt=1)
    yield AttemptEnded(at=at + 0.1, step=each.id, attempt=1, ok=False, how="called", seconds=0.1, error="413 too large")
    yield Recovered(at=at + 0.11, classified=failed, options=options, limits=Limits(), ledger=Ledger(), choice=choice)
    change = PlanDelta(reopened=(each.id,))
    because = "batch = 'day' instead of 'week'"
    yield Repaired(at=at + 0.12, step=each.id, rung="patch", because=because, revision=revision, delta=change)


def _succeeded(each: Step, at: float, attempt: int) -> Iterator[TraceRecord]:
    said = Judgement(predicate="result > 0", verdict=Verdict.VERIFIED)
    yield StepStarted(at=at, step=each.id, intent=each.intent, attempt=attempt)
    yield AttemptEnded(at=at + 0.1, step=each.id, attempt=attempt, ok=True, how="called", seconds=0.1)
    yield Judged(at=at + 0.11, step=each.id, judgements=(said,), by=("predicate",))
    for name in each.produces:
        yield Committed(at=at + 0.12, step=each.id, name=name, version=1, digest="d" * 32, unchanged=False)

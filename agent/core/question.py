"""What is a person asked? A failure with the ladder's history and what was learned, or a call that waits for a word."""

from collections.abc import Iterable, Mapping

from pydantic import Field

from agent.core.consent import Held
from agent.core.control import Choice, Question, Recovery
from agent.core.failure import Effect, Failure
from agent.core.limits import Ledger, Limits
from agent.core.plan import Call, Inquiry, Plan, Step, StepStatus
from agent.core.value import JsonValue, Value, canonical, digest, size

Schemas = Mapping[str, dict[str, JsonValue]]

_SHOWN = 4000
"""Bytes of one argument that a question carries; a larger one is shown as the reference it was planned as."""


class Asking(Value):
    """What questions are made from, beside what is asked about."""

    plan: Plan
    ledger: Ledger = Ledger()
    limits: Limits = Limits()
    schemas: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """JSON schemas of arguments, by tool."""
    readers: bool = False
    """Whether a model is there to read a hint."""
    answered: frozenset[str] = frozenset()
    """Ids of questions that were answered; the same thing asked again is another question."""


def question_about(recovery: Recovery, asking: Asking) -> Question:
    """Ask about a failure: what was tried, what was learned, and why no rung is left."""
    failure = recovery.classified.failure
    step = _live_step(asking.plan, failure)
    about = f"step {step.id} ({step.intent})" if step else "the plan"
    tried = [f"{rung} x{count}" for rung, count in _spent(failure.key, asking.ledger).items() if count]
    tried += _passed(recovery)
    error = failure.error.message
    return Question(
        id=question_id(recovery, asking.answered),
        step=step.id if step else None,
        question=f"{about} cannot be recovered: {error}. What should happen?",
        tried=tuple(tried),
        learned=_learned(recovery, step, asking.ledger),
        choices=_choices(step, asking.readers),
        error=error,
        # of the error its first line: what follows is evidence, in which a model may claim anything
        summary=f"{about} failed: {error.partition(chr(10))[0]}" + (f" (tried: {'; '.join(tried)})" if tried else ""),
        call=step.call.model_copy(update={"texts": ()}) if step and step.call else None,
        parameters=asking.schemas.get(step.call.tool, {}) if step and step.call else {},
        references=tuple(sorted(step.reads())) if step else (),
        limits=_numbers(asking.limits),
    )


def question_before(held: Held, asking: Asking) -> Question:
    """Ask before a call starts, or what it asks itself."""
    step = asking.plan.step(held.step)
    about = f"step {step.id} ({step.intent})"
    if held.inquiry is not None:
        return _question_of(held, held.inquiry, about, step, asking)
    why = ", with something that only what it read can have told it" if held.untraced else ""
    return Question(
        id=_unanswered(digest([held.step, held.identity])[:8], asking.answered),
        step=step.id,
        question=f"{about} is about to call {held.call.tool}{why}. May it?",
        choices=_choices_before(step, asking.readers),
        summary=f"{about} waits for a person's word before it calls {held.call.tool}",
        call=_shown(held.call, step.call),
        parameters=asking.schemas.get(held.call.tool, {}),
        references=tuple(sorted(step.reads())) if step.call else (),
    )


def _question_of(held: Held, inquiry: Inquiry, about: str, step: Step, asking: Asking) -> Question:
    said = inquiry.value if isinstance(inquiry.value, str) else canonical(inquiry.value)
    return Question(
        id=_unanswered(digest([held.step, held.identity])[:8], asking.answered),
        step=step.id,
        question=f"{held.call.tool} asks, for {about}: {said}",
        choices=(Choice.ANSWER, Choice.SKIP, Choice.GOAL, Choice.ABORT),
        # what a tool says is evidence, in which it may claim anything
        summary=f"{about} waits for a person's answer to what {held.call.tool} asks",
        call=_shown(held.call, step.call),
        asks=inquiry.value,
    )


def question_id(recovery: Recovery, answered: frozenset[str] = frozenset()) -> str:
    """Stable through a resume: the same failure asks under the same id until it is answered."""
    failure = recovery.classified.failure
    return _unanswered(digest([failure.fingerprint, failure.step])[:8], answered)


def still_open(unresolved: Iterable[Recovery], plan: Plan) -> tuple[Recovery, ...]:
    """The failures that still stand: what was rewritten or is done meanwhile need not be asked about.

    One for each step, and that is the first: another came of trying to mend it, and two questions about one step
    could be answered in two ways. Of a failure that came again, the last.
    """
    stuck = {None, *(each.id for each in plan.with_status(StepStatus.FAILED, StepStatus.INVALID))}
    standing: dict[str, Recovery] = {}
    for each in unresolved:
        about = each.classified.failure.step or question_id(each)
        if each.classified.failure.step in stuck and question_id(standing.get(about, each)) == question_id(each):
            standing[about] = each
    return tuple(standing.values())


def _unanswered(id_: str, answered: frozenset[str]) -> str:
    """An id of its own for each asking, so that an answer that comes late is never taken for another question's."""
    while id_ in answered:
        id_ = digest(id_)[:8]
    return id_


def _live_step(plan: Plan, failure: Failure) -> Step | None:
    return next((each for each in plan.live() if each.id == failure.step), None)


def _choices(step: Step | None, readers: bool) -> tuple[Choice, ...]:
    left_out = {Choice.APPROVE}
    if step is None:
        left_out |= {Choice.ANSWER, Choice.SKIP}
    if step is None or step.call is None:
        left_out |= {Choice.EDIT}
    if not readers:
        left_out |= {Choice.HINT}
    return tuple(each for each in Choice if each not in left_out)


def _choices_before(step: Step, readers: bool) -> tuple[Choice, ...]:
    """An inner loop can be told to do it otherwise; a direct call is edited."""
    hint = (Choice.HINT,) if readers and step.call is None else ()
    return (Choice.APPROVE, *hint, Choice.EDIT, Choice.SKIP, Choice.GOAL, Choice.ABORT)


def _shown(call: Call, planned: Call | None) -> Call:
    template = planned.args if planned else {}
    args = {name: each if size(each) <= _SHOWN else template.get(name, each) for name, each in call.args.items()}
    return call.model_copy(update={"args": args, "texts": ()})


def _numbers(limits: Limits) -> dict[str, float]:
    return {name: each for name, each in limits.model_dump().items() if isinstance(each, int | float)}


def _learned(recovery: Recovery, step: Step | None, ledger: Ledger) -> tuple[str, ...]:
    classified = recovery.classified
    wrong = len(ledger.tried.get(classified.failure.key, ()))
    said = [f"it proves false: {classified.scope} (origin: {classified.origin}, rule: {classified.rule})"]
    if classified.effect is not Effect.ABSENT:
        said.append(f"the effect of the call is {classified.effect}")
    if classified.falsified:
        said.append(f"not to be trusted: {', '.join(classified.falsified)}")
    if wrong:
        said.append(f"{wrong} {'call' if wrong == 1 else 'calls'} proven wrong")
    if step and step.hint:
        said.append(f"a hint did not help: {step.hint}")
    return tuple(said)


def _passed(recovery: Recovery) -> list[str]:
    """Why no rung was left, rungs with one reason together."""
    reasons = dict.fromkeys(each.reason for each in recovery.choice.passed)
    return [
        f"{', '.join(each.rung for each in recovery.choice.passed if each.reason == reason)}: {reason}"
        for reason in reasons
    ]


def _spent(key: str, ledger: Ledger) -> dict[str, int]:
    return {
        "retry": ledger.retry.get(key, 0),
        "patch": ledger.patch.get(key, 0),
        "rewrite": ledger.rewrite.get(key, 0),
        "replan": ledger.replan,
    }

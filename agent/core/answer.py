"""What a person's answer changes: budgets, a step, the goal, or the end of the run."""

from collections.abc import Iterable

from pydantic import ValidationError

from agent.core.contract import Contracts
from agent.core.control import Answer, Choice, Question, Recovery
from agent.core.failure import Effect
from agent.core.limits import Ledger
from agent.core.plan import Plan, Step, StepId, StepStatus, downstream
from agent.core.value import JsonValue, digest
from agent.core.verification import products_of


def question_about(recovery: Recovery, plan: Plan, ledger: Ledger) -> Question:
    """What to ask, with the ladder's history: what was tried, and why no rung is left."""
    failure = recovery.classified.failure
    step = next((each for each in plan.live() if each.id == failure.step), None)
    about = f"step {step.id} ({step.intent})" if step else "the plan"
    tried = [f"{rung} x{count}" for rung, count in _spent(failure.key, ledger).items() if count]
    tried += _passed(recovery)
    choices = tuple(Choice) if step else (Choice.RETRY, Choice.GOAL, Choice.ABORT)
    error = failure.error.message
    return Question(
        id=question_id(recovery),
        step=step.id if step else None,
        question=f"{about} cannot be recovered: {error}. What should happen?",
        tried=tuple(tried),
        choices=choices,
        error=error,
        summary=f"{about} failed: {error}" + (f" (tried: {'; '.join(tried)})" if tried else ""),
    )


def question_id(recovery: Recovery) -> str:
    """Stable through a resume: the same failure asks under the same id."""
    failure = recovery.classified.failure
    return digest([failure.fingerprint, failure.step])[:8]


def parse_answers(given: JsonValue, questions: dict[str, Question]) -> dict[str, Answer]:
    """Match what came back to the questions: one answer for a single question, else a mapping by id.

    Raises:
        ValueError: on an unknown id, an unknown choice, or an answer that lacks its reason, value or goal.
    """
    by_id = given if isinstance(given, dict) and set(given) & set(questions) else None
    if by_id is None:
        if len(questions) != 1:
            raise ValueError(f"answer by id: {', '.join(questions)}")
        by_id = {next(iter(questions)): given}
    unknown = sorted(set(by_id) - set(questions))
    if unknown:
        raise ValueError(f"no open question {unknown[0]!r}; open: {', '.join(questions)}")
    answers = {each: _answer(answer) for each, answer in by_id.items()}
    for each, answer in answers.items():
        if answer.choice not in questions[each].choices:
            raise ValueError(f"question {each} cannot be answered {answer.choice!r}")
    return answers


def fitting_answers(given: JsonValue, questions: dict[str, Question], plan: Plan) -> dict[str, Answer]:
    """The answers, if they can be carried out on this plan.

    Raises:
        ValueError: as `parse_answers`, and when a value is not what its step makes.
    """
    answers = parse_answers(given, questions)
    for each, answer in answers.items():
        step = questions[each].step
        if answer.choice is Choice.ANSWER and step and products_of(plan.step(step), answer.value) is None:
            raise ValueError(f"the answer must give {' and '.join(plan.step(step).produces)} by name")
    return answers


def still_open(unresolved: Iterable[Recovery], plan: Plan) -> tuple[Recovery, ...]:
    """The failures that still stand, each once: what was rewritten or is done meanwhile need not be asked about."""
    stuck = {each.id for each in plan.with_status(StepStatus.FAILED, StepStatus.INVALID)}
    standing = (each for each in unresolved if each.classified.failure.step in stuck | {None})
    return tuple({question_id(each): each for each in standing}.values())


def may_repeat(recovery: Recovery, contracts: Contracts) -> bool:
    """Whether a person who says "retry" allows a write to be made although it may have happened.

    Where a probe can look the world is asked first, and the person only if that does not settle it. A step of
    several calls cannot tell which of them is meant.
    """
    failure = recovery.classified.failure
    contract = contracts.get(failure.tool)
    return contract is not None and not contract.observable and recovery.classified.effect is not Effect.ABSENT


def forgiven(ledger: Ledger, recovery: Recovery) -> Ledger:
    """Fresh budgets for one failure: a person has said to try again."""
    failure = recovery.classified.failure
    return ledger.model_copy(
        update={
            "retry": _without(ledger.retry, failure.key),
            "patch": _without(ledger.patch, failure.key),
            "rewrite": _without(ledger.rewrite, failure.key),
            "tried": {key: each for key, each in ledger.tried.items() if key != failure.key},
            "failures": {key: each for key, each in ledger.failures.items() if key != failure.fingerprint},
            "replan": 0,
            "verified_at_replan": -1,
            "barren": 0,
        }
    )


def tried_again(plan: Plan, step: StepId | None, repeat: bool = False) -> Plan:
    """The plan with the step to do once more, without delay.

    Args:
        plan: the plan.
        step: the step, if the failure was one step's.
        repeat: its write may be made although the journal knows of it: it is another one from now on.
    """
    found = next((each for each in plan.live() if each.id == step), None)
    if found is None:
        return plan
    repetition = found.repetition + (1 if repeat else 0)
    again = found.as_(StepStatus.PENDING).model_copy(update={"delay": 0.0, "repetition": repetition})
    return plan.with_steps(again)


def skipped(plan: Plan, step: StepId, reason: str) -> Plan:
    """The plan without the step, and without what depends on it; each says why."""
    after = downstream(plan.live(), [step])
    return plan.with_steps(
        plan.step(step).as_(StepStatus.SKIPPED, reason),
        *(_skip_after(plan.step(each), step) for each in after),
    )


def _answer(given: JsonValue) -> Answer:
    try:
        return Answer.model_validate(given)
    except ValidationError as error:
        said = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}".removeprefix(": ") for each in error.errors())
        raise ValueError("; ".join(said)) from error


def _skip_after(step: Step, before: StepId) -> Step:
    return (
        step
        if step.status is StepStatus.DONE
        else step.as_(StepStatus.SKIPPED, f"depends on {before}, which was skipped")
    )


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


def _without(counts: dict[str, int], key: str) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name != key}

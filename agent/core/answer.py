"""Which answers of a person are taken, and what do they change? Budgets, limits, a step, the goal, or the end."""

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from agent.core.arguments import malformed, misfits
from agent.core.consent import with_args
from agent.core.contract import Contracts
from agent.core.control import Answer, Choice, Question, Recovery
from agent.core.failure import Effect
from agent.core.grant import refuse_unraised
from agent.core.limits import Ledger
from agent.core.move import PlanOrder
from agent.core.plan import Plan, Step, StepId, StepStatus, downstream
from agent.core.reference import referenced
from agent.core.value import JsonValue
from agent.core.verification import products_of
from agent.core.ways import proven_wrong

Questions = Mapping[str, Question]


def parse_answers(given: JsonValue, questions: Questions, answered: frozenset[str] = frozenset()) -> dict[str, Answer]:
    """Match what came back to the questions: one answer for a single question, else a mapping by id.

    Args:
        given: what a person said.
        questions: the open ones, by id.
        answered: ids of those that were answered before.

    Raises:
        ValueError: on an unknown id, a second answer, an unknown choice, or an answer that lacks what it needs.
    """
    by_id = given if isinstance(given, dict) and set(given) & {*questions, *answered} else None
    if by_id is None:
        if len(questions) != 1:
            raise ValueError(f"answer by id: {', '.join(questions)}")
        by_id = {next(iter(questions)): given}
    for each in sorted(set(by_id) - set(questions)):
        why = f"question {each!r} was answered already" if each in answered else f"no open question {each!r}"
        raise ValueError(f"{why}; open: {', '.join(questions)}")
    answers = {each: _answer(_spelled(answer, questions[each])) for each, answer in by_id.items()}
    for each, answer in answers.items():
        if answer.choice not in questions[each].choices:
            offered = ", ".join(questions[each].choices)
            raise ValueError(f"question {each} cannot be answered {answer.choice.value!r}; it offers: {offered}")
    return answers


def fitting_answers(
    given: JsonValue, questions: Questions, plan: Plan, answered: frozenset[str] = frozenset()
) -> dict[str, Answer]:
    """The answers, if they can be carried out on this plan.

    Raises:
        ValueError: as `parse_answers`, and when a value is not what its step makes, arguments are not what its
            call takes, or a limit would not be raised.
    """
    answers = parse_answers(given, questions, answered)
    for each, answer in answers.items():
        _refuse_unfit(answer, questions[each], plan)
    return answers


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
    return reopened(ledger, recovery).model_copy(
        update={
            "retry": _without(ledger.retry, failure.key),
            "patch": _without(ledger.patch, failure.key),
            "rewrite": _without(ledger.rewrite, failure.key),
            "tried": {key: each for key, each in ledger.tried.items() if key != failure.key},
            "replan": 0,
        }
    )


def reopened(ledger: Ledger, recovery: Recovery) -> Ledger:
    """The ladder starts anew for one failure; what was spent stays spent."""
    fingerprint = recovery.classified.failure.fingerprint
    failures = {key: each for key, each in ledger.failures.items() if key != fingerprint}
    return ledger.model_copy(update={"failures": failures, "verified_at_replan": -1, "barren": 0})


def tried_again(plan: Plan, step: StepId | None, repeat: bool = False, settled: tuple[str, ...] = ()) -> Plan:
    """The plan with the step to do once more, without delay.

    Args:
        plan: the plan.
        step: the step, if the failure was one step's.
        repeat: its write may be made although the journal knows of it: it is another one from now on.
        settled: the writes of its inner loop of which that is so.
    """
    found = next((each for each in plan.live() if each.id == step), None)
    if found is None:
        return plan
    repetition = found.repetition + (1 if repeat else 0)
    again = found.as_(StepStatus.PENDING).model_copy(
        update={"delay": 0.0, "repetition": repetition, "asks": (), "settled": (*found.settled, *settled)}
    )
    return plan.with_steps(again)


def hinted(plan: Plan, step: StepId | None, hint: str) -> Plan:
    """The plan with what a person said about the step; what its inner loop asked for is forgotten."""
    found = next((each for each in plan.live() if each.id == step), None)
    return plan.with_steps(found.model_copy(update={"hint": hint, "asks": ()})) if found else plan


def hints(steps: Iterable[Step]) -> tuple[str, ...]:
    """What a person said about the steps, as whoever plans them anew reads it."""
    return tuple(f"about {each.key}, a person says: {each.hint}" for each in steps if each.hint)


def edited(plan: Plan, step: StepId, args: Mapping[str, JsonValue]) -> Plan:
    """The plan with other arguments in the step's call."""
    return plan.with_steps(with_args(plan.step(step), args))


def calls_wrongly(step: Step | None, ledger: Ledger) -> bool:
    """Whether a hint can be put to use by calling otherwise at once; the same call again would fail again."""
    return step is not None and proven_wrong(step, ledger)


def advised(recovery: Recovery, hint: str) -> PlanOrder:
    """A replan, ordered by a person who knows something that the planner does not."""
    classified = recovery.classified
    reason = f"{classified.failure.error.message}; a person says: {hint}"
    return PlanOrder(
        trigger=classified.failure.trigger,
        reason=reason,
        falsified=classified.falsified,
        failure=classified.failure,
        cause=recovery.cause,
    )


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


def _spelled(given: JsonValue, question: Question) -> JsonValue:
    """What a tool has asked may be answered bare, as `interrupt` is elsewhere."""
    typed = given in list(question.choices) or (isinstance(given, dict) and "choice" in given)
    return given if question.asks is None or typed else {"choice": Choice.ANSWER, "value": given}


def _refuse_unfit(answer: Answer, question: Question, plan: Plan) -> None:
    match answer.choice:
        case Choice.ANSWER if question.asks is not None:
            return
        case Choice.ANSWER if question.step and products_of(plan.step(question.step), answer.value) is None:
            raise ValueError(f"the answer must give {' and '.join(plan.step(question.step).produces)} by name")
        case Choice.EDIT if wrong := _misfits(answer.args, question):
            raise ValueError(f"the arguments do not fit: {'; '.join(wrong)}")
        case Choice.RAISE:
            refuse_unraised(answer.limits, question.limits)


def _misfits(args: Mapping[str, JsonValue], question: Question) -> tuple[str, ...]:
    assert question.call is not None
    known = ", ".join(question.references) or "none"
    return (
        *misfits({**question.call.args, **args}, question.parameters),
        *(f"{text} is no reference" for text in malformed(dict(args))),
        *(
            f"an argument refers to {name!r}; what the step reads is: {known}"
            for name in sorted(referenced(dict(args)) - set(question.references))
        ),
    )


def _skip_after(step: Step, before: StepId) -> Step:
    return (
        step
        if step.status is StepStatus.DONE
        else step.as_(StepStatus.SKIPPED, f"depends on {before}, which was skipped")
    )


def _without(counts: dict[str, int], key: str) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name != key}

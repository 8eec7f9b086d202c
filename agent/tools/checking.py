"""What an attempt came to: the effects of its step judged over what a probe saw, else over what was returned."""

from typing import Literal

from agent.core.failure import ErrorFacts
from agent.core.predicate import Judgement, Verdict, worst
from agent.core.value import Digest, JsonValue, digest
from agent.core.verification import judge_effects
from agent.ports import Observation, Result, Task

How = Literal["called", "recorded", "adopted", "turns"]


def tool_of(task: Task) -> str:
    """The tool of a direct call."""
    assert task.step.call is not None
    return task.step.call.tool


def sees_nothing(seen: Observation | None) -> bool:
    """Whether a probe has looked, and nothing was there."""
    return seen is not None and seen.error is None and seen.value is None


def digest_of(seen: Observation | None) -> Digest | None:
    """What a probe saw; None when nothing has looked, or it could not."""
    return digest(seen.value) if seen is not None and seen.error is None else None


def shows(seen: Observation | None, returned: JsonValue) -> bool:
    """Whether a look leaves nothing open about what was read: it saw the same, or there is none."""
    return seen is None or digest_of(seen) == digest(returned)


def agree(one: Observation | None, other: Observation | None) -> bool:
    """Whether two looks saw the same; one that failed contradicts nothing."""
    return None in (digest_of(one), digest_of(other)) or digest_of(one) == digest_of(other)


def standing(task: Task, seen: Observation | None) -> Result | None:
    """The artifact as it stands in the world, if it is there and the step's effects hold for it."""
    if seen is None or seen.error is not None or seen.value is None or not task.step.effects or task.again:
        return None
    result = checked(task, seen.value, seen, "adopted")
    return None if result.error else result.model_copy(update={"tool_calls": 0})


def checked(task: Task, returned: JsonValue, seen: Observation | None, how: How) -> Result:
    """Judge a write by what its probe sees, or, without a probe, by what it answered."""
    calls = 1 if how == "called" else 0
    base = Result(how=how, tool_calls=calls, seen=digest_of(seen))
    if seen is None:
        return judged(task, returned, returned, base, ("result",))
    if seen.error is not None:
        return base.model_copy(update={"error": seen.error})
    if seen.value is None:
        missing = ErrorFacts(kind="absent", message=f"{tool_of(task)} reported success, but its probe sees nothing")
        return base.model_copy(update={"error": missing})
    return judged(task, seen.value, returned, base, ("probe",))


def judged(task: Task, value: JsonValue, returned: JsonValue, base: Result, by: tuple[str, ...]) -> Result:
    """Judge the step's effects; whatever is not verified is the attempt's error."""
    judgements = judge_effects(task.step, task.args, task.inputs, task.facts, value, returned)
    bad = worst(judgements)
    rests_on = (*by, "predicate") if task.step.effects else by
    result = base.model_copy(update={"value": value, "judgements": judgements, "by": rests_on})
    return result if bad is None else result.model_copy(update={"error": _refuted(bad), "predicate": bad.predicate})


def _refuted(bad: Judgement) -> ErrorFacts:
    said = "does not hold" if bad.verdict is Verdict.REFUTED else "cannot be verified"
    return ErrorFacts(kind="verdict", message=f"the expected effect {said}: {bad.predicate} ({bad.reason})")

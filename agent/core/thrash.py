"""Is this plan another one? The same failing step under a new id, on the same inputs, is not (seed 4).

Replanning without progress means that the plan is not what is broken: a tool, a permission or a premise is. The
right answer is to stop and say what was learned.
"""

from collections.abc import Iterable

from agent.core.failure import Failure
from agent.core.plan import Step, upstream
from agent.core.repetition import alike
from agent.core.value import ArtifactName

SHAPE = "the plan's shape is not the problem"


def equivalent(one: Step, other: Step) -> bool:
    """Whether two steps would do the same to the same end; ids and intents do not count.

    Of an instruction the spelling does not count either. Of a call it does: another case, or 1 for "1", may be
    all that was wrong with it.
    """
    if one.key != other.key or set(one.effects) != set(other.effects):
        return False
    if one.call is None or other.call is None:
        both = one.call is None and other.call is None
        return both and set(one.tools) == set(other.tools) and alike(one.instruction, other.instruction)
    return one.call == other.call


def broken_step(failure: Failure | None, before: Iterable[Step]) -> Step | None:
    """The step that was tried and failed, as it stood in the plan; a failure of no step has none.

    One that a person has said something about since is not the step any more that failed.
    """
    if failure is None or failure.step is None:
        return None
    return next((each for each in before if each.id == failure.step and not each.hint), None)


def drawn_again(
    draft: tuple[Step, ...], failure: Failure | None, before: Iterable[Step], present: Iterable[ArtifactName]
) -> Step | None:
    """The step of a draft that does what failed once more (`unchanged`), if the failure is that of a step.

    Args:
        draft: the new plan.
        failure: what it is the answer to.
        before: the steps it replaces, as far as their inputs are still the same.
        present: artifacts that hold.
    """
    broken = broken_step(failure, before)
    if failure is None or broken is None:
        return None
    # what was only judged otherwise than expected may be right under another expectation, or by another name
    return unchanged(draft, broken, present, by_itself=failure.error.kind != "verdict")


def unchanged(
    draft: tuple[Step, ...], broken: Step, present: Iterable[ArtifactName], by_itself: bool = False
) -> Step | None:
    """The step of a draft that is the broken one again, with nothing to be done before it that could help it.

    Args:
        draft: the new plan.
        broken: the step that failed, on inputs that are still the same.
        present: artifacts that hold; steps that make nothing else are not done again.
        by_itself: the call itself failed, and will do so whatever its answer is called and expected to be.
    """
    called = broken.call if by_itself else None
    again = next((each for each in draft if equivalent(each, broken) or (called and each.call == called)), None)
    if again is None:
        return None
    held = set(present)
    to_do = [each for each in draft if not set(each.produces) <= held]
    before = upstream(draft, {again.id})
    return None if any(each.id in before for each in to_do) else again


def repeats(step: Step) -> str:
    """What a planner is told that draws the failed step again."""
    return (
        f"step {step.id!r} is the step that failed, to be done in the same way on the same inputs: {SHAPE}. Make "
        f"{', '.join(step.produces) or 'it'} in another way, or with a step before it that changes what it needs"
    )

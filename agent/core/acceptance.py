"""May a draft become the plan, whoever drew it? Not when it leaves the goal, and not when it is what failed already."""

from collections.abc import Iterable

from agent.core.drift import restated
from agent.core.failure import Failure
from agent.core.goal import Criterion, Goal
from agent.core.limits import Ledger
from agent.core.plan import Step
from agent.core.plan_check import Ground, uncovered
from agent.core.thrash import SHAPE, drawn_again, repeats
from agent.core.value import ArtifactName
from agent.core.ways import proven_wrong
from agent.core.world import World


def astray(
    goal: Goal,
    steps: tuple[Step, ...],
    wants: tuple[ArtifactName, ...],
    criteria: tuple[Criterion, ...],
    available: Iterable[ArtifactName],
) -> tuple[str, ...]:
    """How a draft leaves the goal: words it anew, or loses something of it. A text may be given its meaning.

    Args:
        goal: as it stands.
        steps: the draft.
        wants: what the draft says is wanted.
        criteria: what the draft says must hold.
        available: artifacts that hold or are being made.
    """
    if not goal.stated:
        return ()
    predicates = [each.predicate for each in criteria if each.predicate]
    made = {name for each in steps for name in each.produces}
    ground = Ground(wants=goal.wants, criteria=goal.criteria)
    lost = uncovered(ground, frozenset((*available, *goal.given, *made)))
    return (*restated(goal, goal.wants, wants=wants, predicates=predicates), *lost)


def stuck(
    steps: tuple[Step, ...],
    ledger: Ledger,
    failure: Failure | None,
    before: Iterable[Step],
    present: Iterable[ArtifactName],
) -> str:
    """Why a draft is no progress: a call proven wrong, or the step that failed, again. Empty when it is another plan.

    Args:
        steps: the draft.
        ledger: knows the calls that were proven wrong.
        failure: what the draft is the answer to.
        before: the steps it replaces, as far as their inputs are still the same.
        present: artifacts that hold.
    """
    wrong = next((each for each in steps if each.call and proven_wrong(each, ledger)), None)
    if wrong is not None:
        assert wrong.call is not None
        return f"the new plan repeats {wrong.call.tool} for {wrong.key}, which was proven wrong; {SHAPE}"
    again = drawn_again(steps, failure, before, present)
    return repeats(again) if again else ""


def same_inputs(failure: Failure | None, world: World) -> bool:
    """Whether what the failed attempt read is still what it was; if not, the same step is another try."""
    current = {each.name: each.digest for each in world.artifacts.values() if each.mark is None}
    return failure is not None and all(current.get(name) == was for name, was in failure.inputs.items())

"""How far would a repair reach? What each rung could do for a failure, and the region that a rewrite would redo."""

from collections.abc import Iterable

from agent.core.aftermath import repeatable, unsettled
from agent.core.contract import Contracts, EffectClass
from agent.core.failure import Classified, Failure, Scope, Trigger
from agent.core.ladder import Options
from agent.core.limits import Ledger
from agent.core.plan import Plan, Step, StepId, downstream, upstream
from agent.core.reference import UnresolvedReference, referenced
from agent.core.repeating import call_digest as call_digest  # re-exported: part of what a repair is judged by
from agent.core.value import ArtifactName, Value
from agent.core.ways import next_patch


class Region(Value):
    """The part of a plan a rewrite would redo."""

    steps: frozenset[StepId]
    """Everything to plan anew: observers, the broken step, and what depends on the falsified artifacts."""
    observers: frozenset[StepId]
    """Read-only steps inside it that look at the falsified artifacts again."""
    breadth: float
    """Share of the live plan that is invalid; looking again at something is not counted."""


def forget(ledger: Ledger, plan: Plan, changed: Iterable[ArtifactName]) -> Ledger:
    """Forget calls proven wrong on inputs that have changed since: with new inputs they are other calls."""
    names = set(changed)
    keys = {each.key for each in plan.live() if names & each.reads()} if ledger.tried else set()
    if not keys & ledger.tried.keys():
        return ledger
    return ledger.model_copy(update={"tried": {key: each for key, each in ledger.tried.items() if key not in keys}})


def region(classified: Classified, plan: Plan, depth: int = 0) -> Region:
    """The smallest part that a broken fact takes down; what depends on none of it is untouched (seed 2).

    Args:
        classified: the failure; its falsified artifacts are looked at again.
        plan: the current plan.
        depth: earlier rewrites for this failure; from the second on, the observers' own sources are
            looked at again as well.
    """
    live = plan.live()
    broken = {classified.failure.step} - {None}
    observers = _observers(classified, plan, depth)
    fallen = {each.id for each in live if each.id in broken}
    if classified.scope is Scope.PRECONDITION and not _checked_before(classified):
        fallen |= downstream(live, observers)
    steps = frozenset(observers | fallen)
    return Region(steps=steps, observers=observers, breadth=len(steps - observers) / max(1, len(live)))


def boundary(plan: Plan, steps: Iterable[StepId]) -> tuple[ArtifactName, ...]:
    """The artifacts a region makes: what its replacement has to make as well."""
    inside = set(steps)
    return tuple(name for each in plan.live() if each.id in inside for name in each.produces)


def options(classified: Classified, plan: Plan, contracts: Contracts, ledger: Ledger, model_can_patch: bool) -> Options:
    """What the ladder may choose from for this failure."""
    failure = classified.failure
    step = next((each for each in plan.live() if each.id == failure.step), None)
    part = region(classified, plan)
    contract = contracts.get(failure.tool)
    # a predicate or a probe that named the broken fact in advance leaves the plan itself valid
    surprised = failure.trigger is Trigger.TASK_FAILURE
    return Options(
        patchable=step is not None
        and not unsettled(classified, contract)
        and _patchable(step, contracts, ledger, model_can_patch),
        rewritable=bool(part.observers),
        breadth=part.breadth if surprised and classified.scope is Scope.PRECONDITION else 0.0,
        repeatable=repeatable(classified.effect, contract),
    )


def _patchable(step: Step, contracts: Contracts, ledger: Ledger, model_can_patch: bool) -> bool:
    """Whether another call can be found; a model needs a call to change, and the schema of a tool that exists."""
    proposed = model_can_patch and step.call is not None and step.call.tool in contracts
    return proposed or next_patch(step, contracts, ledger) is not None


def _checked_before(classified: Classified) -> bool:
    """A precondition that was judged before acting names exactly the step it broke."""
    failure = classified.failure
    return failure.trigger is Trigger.PRECONDITION_VIOLATION and failure.error.kind == "verdict"


def _observers(classified: Classified, plan: Plan, depth: int) -> frozenset[StepId]:
    """Read-only steps that can look again: makers of what is doubted, then all that those stand on.

    A read-only step whose own result was refuted looks again itself: the world may have moved on. What
    made an artifact that was seen to have changed does so too, whatever it is: it reconciles before it acts.
    """
    failure = classified.failure
    doubted = classified.falsified or _unresolved(failure) or failure.reads
    makers = {each.id for name in doubted if (each := plan.producer(name))}
    if failure.step and failure.error.kind == "verdict" and failure.trigger is Trigger.TASK_FAILURE:
        makers.add(failure.step)
    if failure.of_a_look:
        return frozenset(makers)
    reach = makers if depth == 0 else makers | upstream(plan.live(), makers)
    return frozenset(each.id for each in plan.live() if each.id in reach and each.effect is EffectClass.READ_ONLY)


def _unresolved(failure: Failure) -> tuple[ArtifactName, ...]:
    """The artifact that a reference could not be found in, when that is the error: the others are not in doubt."""
    unresolved = failure.error.type == UnresolvedReference.__name__
    return tuple(sorted(referenced(failure.error.message) & set(failure.reads))) if unresolved else ()

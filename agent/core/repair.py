"""What each repair rung would do, found without a model: another argument, another tool, a region to redo."""

from collections.abc import Iterable

from agent.core.aftermath import repeatable, unsettled
from agent.core.chaining import Maker, as_step, fill, needed_names
from agent.core.contract import Contracts, EffectClass, ToolContract
from agent.core.failure import Classified, Failure, Scope, Trigger
from agent.core.ladder import Options
from agent.core.limits import Ledger
from agent.core.plan import Plan, Step, StepId, downstream, upstream
from agent.core.reference import UnresolvedReference, referenced
from agent.core.repeating import call_digest as call_digest  # re-exported: part of what a repair is judged by
from agent.core.repeating import noted, repeats
from agent.core.value import ArtifactName, Value


class Patch(Value):
    """One step, expressed another way: the intent was right, the call was not (seed 1)."""

    step: Step
    """The step with its new call, still under its old id."""
    because: str


class Region(Value):
    """The part of a plan a rewrite would redo."""

    steps: frozenset[StepId]
    """Everything to plan anew: observers, the broken step, and what depends on the falsified artifacts."""
    observers: frozenset[StepId]
    """Read-only steps inside it that look at the falsified artifacts again."""
    breadth: float
    """Share of the live plan that is invalid; looking again at something is not counted."""


def next_patch(step: Step, contracts: Contracts, ledger: Ledger) -> Patch | None:
    """The next declared way to make the same artifact: an alternative value first, then a stand-in tool."""
    if step.call is None:
        return None
    ways = (*_other_values(step, contracts), *_other_tools(step, contracts))
    tried = remember(ledger, step)
    return next((each for each in ways if not proven_wrong(each.step, tried)), None)


def proven_wrong(step: Step, ledger: Ledger) -> bool:
    """Whether the step makes a call that failed before for the same products."""
    return step.call is not None and repeats(step.call, step.key, ledger, {})


def learned(draft: Iterable[Step], contracts: Contracts, ledger: Ledger) -> tuple[Step, ...]:
    """A draft that does not bring back what was proven wrong, where another way is declared.

    A planner starts from the preferred way; what a patch found out must not be lost with the old plan.
    """
    return tuple(_another_way(each, contracts, ledger) for each in draft)


def remember(ledger: Ledger, step: Step) -> Ledger:
    """Note that the step's present call was proven wrong, as it was planned."""
    return noted(ledger, step, {})


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
    if failure.error.kind == "stale":
        return frozenset(makers)
    reach = makers if depth == 0 else makers | upstream(plan.live(), makers)
    return frozenset(each.id for each in plan.live() if each.id in reach and each.effect is EffectClass.READ_ONLY)


def _unresolved(failure: Failure) -> tuple[ArtifactName, ...]:
    """The artifact that a reference could not be found in, when that is the error: the others are not in doubt."""
    unresolved = failure.error.type == UnresolvedReference.__name__
    return tuple(sorted(referenced(failure.error.message) & set(failure.reads))) if unresolved else ()


def _another_way(step: Step, contracts: Contracts, ledger: Ledger) -> Step:
    patch = next_patch(step, contracts, ledger) if proven_wrong(step, ledger) else None
    return patch.step if patch else step


def _other_values(step: Step, contracts: Contracts) -> Iterable[Patch]:
    assert step.call is not None
    contract = contracts.get(step.call.tool)
    for parameter, values in contract.alternatives.items() if contract else ():
        for value in values:
            call = step.call.model_copy(update={"args": {**step.call.args, parameter: value}})
            because = f"{parameter} = {value!r} instead of {step.call.args.get(parameter)!r}"
            yield Patch(step=step.model_copy(update={"call": call}), because=because)


def _other_tools(step: Step, contracts: Contracts) -> Iterable[Patch]:
    """Declared stand-ins that make the same artifacts from what the step already waits for, cheapest first."""
    assert step.call is not None
    contract = contracts.get(step.call.tool)
    original = (contract.stands_in_for if contract else None) or step.call.tool
    family = (each for each in contracts.values() if original in (each.tool, each.stands_in_for))
    for other in sorted(family, key=lambda each: each.cost):
        maker = _as_maker(other, step)
        if other.tool == step.call.tool or not set(step.produces) <= set(maker.produces):
            continue
        needs = needed_names(maker, step.reads())
        if set(needs) <= step.reads():
            yield Patch(step=_replaced(step, maker, needs), because=f"{other.tool} stands in for {step.call.tool}")


def _as_maker(contract: ToolContract, step: Step) -> Maker:
    assert step.call is not None
    return fill(contract, {name: step.call.args[name] for name in contract.each if name in step.call.args})


def _replaced(step: Step, maker: Maker, needs: tuple[ArtifactName, ...]) -> Step:
    new = as_step(maker, needs)
    kept = {"id": step.id, "intent": step.intent, "serves": step.serves, "after": step.after}
    return new.model_copy(update={**kept, "produces": step.produces, "status": step.status, "attempts": step.attempts})

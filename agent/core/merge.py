"""A new draft laid over the old plan: finished work is matched by what it makes, never by id (seed 2)."""

from collections.abc import Iterable

from agent.core.family import expand
from agent.core.plan import Plan, Step, StepId, StepStatus, upstream
from agent.core.value import ArtifactName, Value
from agent.core.world import World


class PlanDelta(Value):
    """How one plan revision became the next; every live or newly dropped step is in exactly one list."""

    kept: tuple[StepId, ...] = ()
    """Untouched: done, running, or still to do as they were."""
    reopened: tuple[StepId, ...] = ()
    """The same work, to be done again."""
    added: tuple[StepId, ...] = ()
    superseded: tuple[StepId, ...] = ()


def replan(
    old: Plan | None,
    draft: Iterable[Step],
    world: World,
    wanted: Iterable[ArtifactName],
    goal_revision: int,
    planner: str,
) -> tuple[Plan, PlanDelta]:
    """Lay a draft over the old plan: finished work that still serves stays, equal open work keeps its id.

    Args:
        old: the plan so far, if any.
        draft: what is still to do, by the planner's own ids; those mean nothing afterwards.
        world: decides which finished work still holds.
        wanted: artifacts the goal reads; their makers stay in the plan although the draft has no need of them.
        goal_revision: the goal the draft was made for.
        planner: who made it.
    """
    old = old or Plan()
    revision = old.revision + 1
    # another goal says anew what is to be done; a replan for the same one does not bring back what a person left out
    left_out = {each.key: each for each in old.with_status(StepStatus.SKIPPED) if old.goal_revision == goal_revision}
    placed = tuple(_left_out(each, left_out) for each in _placed(draft, old.live(), revision, world))
    ids = {each.id for each in placed}
    support = _support(old, placed, world, wanted)
    rest = tuple(
        each if each.id in support or not each.live else each.as_(StepStatus.SUPERSEDED, "not in the new plan")
        for each in old.steps
        if each.id not in ids
    )
    new = Plan(revision=revision, goal_revision=goal_revision, steps=(*rest, *placed), planner=planner)
    return new, delta(old, new)


def rewrite(plan: Plan, region: frozenset[StepId], draft: Iterable[Step], world: World) -> tuple[Plan, PlanDelta]:
    """Replace a region of the plan by a draft of the same products; everything outside is untouched.

    A planner that is told of a doubted source draws what was made from it as well. Outside the region that is
    in the plan already, and comes back by itself once the source has been looked at.
    """
    revision = plan.revision + 1
    inside = tuple(each for each in plan.live() if each.id in region)
    outside = {name for each in plan.live() if each.id not in region for name in each.produces}
    fresh = [each for each in draft if not (each.produces and set(each.produces) <= outside)]
    placed = {each.id: each for each in _placed(fresh, inside, revision, world)}
    steps = []
    for step in plan.steps:
        new = placed.pop(step.id, None)
        dropped = new is None and step.id in region and step.live and not _stands(step, world)
        steps.append(new or (step.as_(StepStatus.SUPERSEDED, "rewritten") if dropped else step))
    rewritten = plan.model_copy(update={"revision": revision, "steps": (*steps, *placed.values())})
    return rewritten, delta(plan, rewritten)


def delta(old: Plan, new: Plan) -> PlanDelta:
    """Compare two revisions step by step."""
    before = {each.id: each for each in old.steps}
    lists: dict[str, list[StepId]] = {"kept": [], "reopened": [], "added": [], "superseded": []}
    for step in new.steps:
        change = _change(before.get(step.id), step)
        if change:
            lists[change].append(step.id)
    return PlanDelta(**{name: tuple(ids) for name, ids in lists.items()})


def reused(plan: Plan, change: PlanDelta, world: World) -> tuple[ArtifactName, ...]:
    """Finished work of the steps that are kept, as far as it holds."""
    kept = set(change.kept)
    return tuple(name for each in plan.live() if each.id in kept for name in each.produces if world.holds(name))


def delayed(plan: Plan, change: PlanDelta, observers: frozenset[StepId], delay: float) -> Plan:
    """The plan in which whoever looks again waits a moment first: the world was caught halfway."""
    waiting = {*change.added, *(observers & set(change.reopened))}
    return plan.with_steps(*(each.model_copy(update={"delay": delay}) for each in plan.steps if each.id in waiting))


def same_work(one: Step, other: Step) -> bool:
    """Whether two steps would do the same thing to the same end; ids, wording and status do not count."""
    return (one.key, one.call, one.instruction) == (other.key, other.call, other.instruction)


def _stands(step: Step, world: World) -> bool:
    """Finished, and all it made still holds."""
    return step.status is StepStatus.DONE and all(world.holds(name) for name in step.produces)


def _change(was: Step | None, now: Step) -> str:
    if was is None:
        return "added"
    if not now.live:
        return "superseded" if was.live else ""
    reopened = now.status is StepStatus.PENDING and was.status is not StepStatus.PENDING
    return "reopened" if reopened else "kept"


def _placed(draft: Iterable[Step], old: tuple[Step, ...], revision: int, world: World) -> tuple[Step, ...]:
    """The draft's steps under runtime ids: the old id for the same work, a new one otherwise."""
    renamed: dict[StepId, StepId] = {}
    placed = []
    for index, step in enumerate(draft, 1):
        match = next((each for each in old if same_work(each, step)), None)
        new = _laid(step, match, world) if match else _minted(step, StepId(f"s{revision}.{index}"), old)
        renamed[step.id] = new.id
        placed.append(new)
    return tuple(
        each.model_copy(update={"after": tuple(renamed.get(before, before) for before in each.after)})
        for each in placed
    )


def _left_out(step: Step, skipped: dict[str, Step]) -> Step:
    before = skipped.get(step.key)
    return step.as_(StepStatus.SKIPPED, before.reason) if before and step.status is StepStatus.PENDING else step


def _minted(step: Step, id_: StepId, old: tuple[Step, ...]) -> Step:
    """A new step; what a person said about the old way to make the same goes along."""
    hint = next((each.hint for each in old if each.key == step.key), "")
    return step.model_copy(update={"id": id_, "hint": step.hint or hint})


def _laid(step: Step, match: Step, world: World) -> Step:
    """The old step that is the same work: done stays done, running stays running, the rest is to do."""
    if _stands(match, world):
        return match
    names = ("intent", "needs", "after", "preconditions", "effects", "serves", "tools")
    updated = match.model_copy(update={name: getattr(step, name) for name in names})
    return updated if match.status is StepStatus.RUNNING else updated.as_(StepStatus.PENDING)


def _support(old: Plan, placed: tuple[Step, ...], world: World, wanted: Iterable[ArtifactName]) -> frozenset[StepId]:
    """Old steps that stay: whatever runs, and finished ones whose products the goal or the draft stand on."""
    makers = {name: each.id for each in old.live() for name in each.produces}
    stood_on = {*expand(wanted, makers), *(name for each in placed for name in each.reads())}
    direct = {makers[name] for name in stood_on if name in makers}
    needed = direct | upstream(old.live(), direct)
    return frozenset(
        each.id
        for each in old.live()
        if each.status is StepStatus.RUNNING or (each.id in needed and _stands(each, world))
    )

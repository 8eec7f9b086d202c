"""The top of the loop as one pure function: given everything that is known, what happens next.

Satisfied? Stopped? Stale observation? Broken precondition? Ready steps? Blocked? (seed 2). The shell obeys.
"""

from collections.abc import Callable, Mapping

from agent.core.blockage import blockage
from agent.core.contract import EffectClass
from agent.core.failure import ErrorFacts, Failure, Trigger
from agent.core.goal import Goal, unjudged
from agent.core.invalidation import unmet_assumptions
from agent.core.lease import Halt
from agent.core.limits import Ledger, Limits, Stop, stopped
from agent.core.move import Ask, Broken, Draw, Finish, Look, Move, Pause, PlanOrder, Rule, Start, Wait
from agent.core.outcome import OutcomeStatus, completion, ended_by
from agent.core.plan import Plan, Step, StepId, StepStatus, ready
from agent.core.predicate import Verdict, judge, reads
from agent.core.repeating import reproduced
from agent.core.value import ArtifactName, JsonValue
from agent.core.world import World

View = Mapping[ArtifactName, JsonValue]


def next_move(
    goal: Goal,
    world: World,
    plan: Plan,
    view: View,
    limits: Limits,
    ledger: Ledger,
    order: PlanOrder | None = None,
    unresolved: bool = False,
    held: frozenset[StepId] = frozenset(),
    halt: Halt = Halt.NO,
    judging: bool = False,
) -> Move:
    """Decide what happens next.

    Args:
        goal: what success means now.
        world: ground truth.
        plan: the current plan; revision 0 before the first.
        view: bodies of the artifacts in `readers(plan, goal, world)`.
        limits: what is allowed.
        ledger: what is spent.
        order: a replan that was ordered and not yet drawn.
        unresolved: some failure waits for a person; asked when nothing else can be done.
        held: ready steps with a call that waits for a person's word; the others go on meanwhile.
        halt: how the run is asked to stop; one that is done ends all the same.
        judging: there is a judge for what no predicate can decide.
    """
    due = _due_order(goal, plan) or order  # what was ordered for another goal is out of date
    stop = stopped(limits, ledger)
    done = None if due else _finish_or_look(goal, world, plan, view, judging)
    if halt is not Halt.NO and not isinstance(done, Finish):
        return _halted(plan, halt)
    if (stop and (not done or isinstance(done, Rule))) or due:
        return _drained(plan, stop, due)
    return (
        _fallen_assumptions(world, view)
        or done
        or _advance(world, plan, view, limits, ledger, held)
        or _stuck(goal, world, plan, view, unresolved or bool(held))
    )


def readers(plan: Plan, goal: Goal, world: World) -> frozenset[ArtifactName]:
    """Artifacts whose bodies `next_move` has to see."""
    names: set[ArtifactName] = set()
    for name in world.leaning:
        for assumption in world.artifacts[name].assumptions:
            names |= reads(assumption.predicate) if reads(assumption.predicate, "facts") else frozenset()
    for step in ready(plan, world):
        for predicate in step.preconditions:
            names |= reads(predicate)
    for criterion in goal.criteria:
        names |= reads(criterion.predicate) if criterion.predicate else frozenset()
    return frozenset(names)


def _due_order(goal: Goal, plan: Plan) -> PlanOrder | None:
    if plan.revision == 0:
        return PlanOrder(trigger=Trigger.INITIAL, reason="no plan yet")
    if plan.goal_revision != goal.revision:
        return PlanOrder(
            trigger=Trigger.INTENT_CHANGE, reason=f"goal revision {goal.revision} after {plan.goal_revision}"
        )
    return None


def _drained(plan: Plan, stop: Stop | None, order: PlanOrder | None) -> Move:
    """Stop or draw anew, but never while a write is in flight: it is awaited and recorded first."""
    running = plan.with_status(StepStatus.RUNNING)
    # out of time means at once, but for writes; any other limit lets what was started within it finish
    hurried = stop is not None and stop.limit == "seconds"
    awaited = [each.id for each in running if not hurried or each.effect is EffectClass.MUTATING]
    if awaited:
        return Wait(reason=f"in flight: {', '.join(awaited)}")
    if stop is None:
        assert order is not None
        return Draw(order=order)
    return Finish(status=ended_by(stop), reason=str(stop), stop=stop)


def _halted(plan: Plan, halt: Halt) -> Move:
    """Stop on request. A drain waits for what mutates, however long it takes; what only reads is read again later."""
    running = plan.with_status(StepStatus.RUNNING)
    awaited = [each.id for each in running if each.effect is EffectClass.MUTATING and halt is Halt.DRAIN]
    if awaited:
        return Wait(reason=f"in flight: {', '.join(awaited)}")
    how = "drained" if halt is Halt.DRAIN else "stopped at once"
    return Pause(reason=f"{how} on request; it can go on")


def _fallen_assumptions(world: World, view: View) -> Move | None:
    broken = unmet_assumptions(world, view)
    if not broken:
        return None
    return Broken(
        failures=tuple(
            Failure(
                trigger=Trigger.PRECONDITION_VIOLATION,
                key=name,
                reads=(name,),
                error=ErrorFacts(kind="stale", message=f"{name} was made assuming {predicate}, which is not so now"),
            )
            for name, predicate in broken.items()
        )
    )


def _finish_or_look(goal: Goal, world: World, plan: Plan, view: View, judging: bool) -> Move | None:
    if not plan.settled:
        return None
    left = unjudged(goal, world, view) if judging else ()
    decided = goal.model_copy(update={"criteria": tuple(each for each in goal.criteria if each not in left)})
    if not completion(decided if left else goal, plan, world, view).complete:
        return None
    stale = _stale(world, lambda: frozenset(name for each in plan.live() for name in each.produces))
    if stale:
        return Look(names=stale)
    if left:
        return Rule(criterion=left[0].id)
    return Finish(status=OutcomeStatus.SATISFIED, reason="every step and criterion is verified")


def _advance(
    world: World, plan: Plan, view: View, limits: Limits, ledger: Ledger, held: frozenset[StepId]
) -> Move | None:
    """Look before relying on what may have changed, start what may start, report what may not."""
    room = min(limits.parallel - len(plan.with_status(StepStatus.RUNNING)), limits.steps - ledger.steps)
    candidates = ready(plan, world)
    if not candidates or room <= 0:
        return None
    stale = _stale(world, lambda: _ancestry(world, candidates))
    if stale:
        return Look(names=stale)
    broken = {
        each.id: failure
        for each in candidates
        if (failure := _violation(each, world, view) or reproduced(each, ledger)) is not None
    }
    startable = tuple(each.id for each in candidates if each.id not in {*broken, *held})[:room]
    if startable:
        return Start(steps=startable, wait=not broken)
    return Broken(failures=tuple(broken.values())) if broken else None


def _stuck(goal: Goal, world: World, plan: Plan, view: View, unresolved: bool) -> Move:
    """Nothing to start: wait for what runs, ask what is to be asked, else name what is in the way (seed 3)."""
    if plan.with_status(StepStatus.RUNNING):
        return Wait()
    if unresolved:
        return Ask()
    skipped = plan.with_status(StepStatus.SKIPPED)
    if skipped:
        why = "; ".join(f"{each.intent}: {each.reason}" for each in skipped)
        return Finish(status=OutcomeStatus.HANDED_OVER, reason=f"skipped, so the goal is not met: {why}")
    return Broken(failures=(blockage(goal, plan, world, view),))


def _violation(step: Step, world: World, view: View) -> Failure | None:
    """The first precondition that does not hold; unverifiable counts as broken, for a fact was not looked at."""
    for predicate in step.preconditions:
        judgement = judge(predicate, view, world.fact_values(), step.call.args if step.call else {})
        if judgement.verdict is not Verdict.VERIFIED:
            return Failure(
                trigger=Trigger.PRECONDITION_VIOLATION,
                step=step.id,
                key=step.key,
                tool=step.call.tool if step.call else "",
                predicate=predicate,
                reads=tuple(sorted(reads(predicate))),
                error=ErrorFacts(kind="verdict", message=f"{judgement.verdict}: {predicate} ({judgement.reason})"),
            )
    return None


def _stale(world: World, among: Callable[[], frozenset[ArtifactName]]) -> tuple[ArtifactName, ...]:
    """Mirrored artifacts that were not looked at since the last harvest, among names found only if there are any."""
    old = [name for name in world.mirrored - world.marked if world.artifacts[name].seen_at < world.tick]
    return tuple(sorted(among().intersection(old))) if old else ()


def _ancestry(world: World, steps: tuple[Step, ...]) -> frozenset[ArtifactName]:
    """Every artifact the steps stand on, directly or through other artifacts."""
    found: set[ArtifactName] = set()
    frontier = {name for each in steps for name in each.reads()}
    while frontier:
        found |= frontier
        frontier = {n for name in frontier if name in world.artifacts for n in world.artifacts[name].inputs} - found
    return frozenset(found)

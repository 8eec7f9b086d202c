"""Which finished work a broken fact takes down: marks along dependency edges, with early cutoff (seed 2).

Marks delete nothing. A root mark says an artifact itself is not true any more; a derived mark says one of
its inputs is not. When an input comes back with the same digest the derived marks lift by themselves, so
nothing downstream is made again. Execution order plays no part.
"""

from collections.abc import Iterable, Iterator, Mapping

from agent.core.plan import Plan, Step, StepId, StepStatus
from agent.core.predicate import Verdict, judge, reads
from agent.core.value import ArtifactName, JsonValue, Value
from agent.core.world import Artifact, Mark, World

View = Mapping[ArtifactName, JsonValue]
"""Bodies of artifacts, as predicates and references read them."""


class Invalidation(Value):
    """What one event marked."""

    cause: str
    roots: tuple[ArtifactName, ...] = ()
    """What is not true any more; the rest follows along dependency edges."""
    artifacts: tuple[ArtifactName, ...] = ()
    steps: tuple[StepId, ...] = ()
    flagged: tuple[StepId, ...] = ()
    """Complete in themselves, but named as the cause: they look again."""


def invalidate(
    world: World,
    plan: Plan,
    roots: Iterable[ArtifactName],
    cause: str,
    broken: StepId | None = None,
    observers: frozenset[StepId] = frozenset(),
) -> tuple[World, Plan, Invalidation]:
    """Mark the roots as untrue and everything made from them as untrusted; independent branches stay.

    Args:
        world: ground truth.
        plan: its steps follow their artifacts.
        roots: artifacts that are not true any more.
        cause: sentence for people.
        broken: the step whose precondition does not hold; it is marked whether or not it has run.
        observers: steps that will look at the roots again; flagged rather than counted as fallen.
    """
    rooted = tuple(name for name in sorted(set(roots)) if name in world.artifacts)
    mark = Mark(cause=cause, root=True)
    marked = world.with_artifacts(*(world.artifacts[name].model_copy(update={"mark": mark}) for name in rooted))
    settled = settle(marked)
    fallen = tuple(name for name in sorted(world.artifacts) if world.holds(name) and not settled.holds(name))
    new_plan = follow(settled, plan, cause)
    if broken is not None and (step := new_plan.step(broken)).status is not StepStatus.INVALID:
        new_plan = new_plan.with_steps(step.as_(StepStatus.INVALID, cause))
    changed = [new.id for old, new in zip(plan.steps, new_plan.steps, strict=True) if old.status is not new.status]
    return (
        settled,
        new_plan,
        Invalidation(
            cause=cause,
            roots=rooted,
            artifacts=fallen,
            steps=tuple(each for each in changed if each not in observers or each == broken),
            flagged=tuple(each.id for each in plan.live() if each.id in observers),
        ),
    )


def settle(world: World) -> World:
    """Bring all derived marks up to date with the inputs: set where one changed, lifted where it came back."""
    current, names = world, world.news
    while changed := _unsettled(current, names):
        current = current.with_artifacts(*changed)
        names = frozenset(each.name for each in changed)
    return current


def up_to_date(world: World, plan: Plan, cause: str = "") -> tuple[World, Plan]:
    """Settle the world and let the plan follow; what changed until now is no news any more."""
    settled = settle(world)
    followed = follow(settled, plan, cause, back=lifted(world, settled))
    return settled.model_copy().knowing(news=frozenset()), followed


def unmet_assumptions(world: World, view: View) -> dict[ArtifactName, str]:
    """Artifacts that hold although a fact they were made under does not, each with the broken predicate.

    Only predicates over facts are judged: what an assumption reads of artifacts is among the inputs already.
    """
    broken = {}
    for artifact in (world.artifacts[name] for name in sorted(world.leaning - world.marked)):
        for assumption in artifact.assumptions:
            about_facts = reads(assumption.predicate, "facts")
            if about_facts and judge(assumption.predicate, view, world.fact_values()).verdict is Verdict.REFUTED:
                broken[artifact.name] = assumption.predicate
    return broken


def follow(world: World, plan: Plan, cause: str = "", back: frozenset[ArtifactName] = frozenset()) -> Plan:
    """Let the steps follow their artifacts: done and invalid as marks are set and lifted, to do on other inputs.

    Args:
        world: settled.
        plan: its steps follow.
        cause: sentence for people.
        back: artifacts that hold again; whoever was planned to make them anew has nothing left to do.
    """
    steps = plan.steps if world.news is None or plan.news is None else _concerned(plan, world.news | back, plan.news)
    changed = [now for was in steps if (now := _followed(world, was, cause, back)) is not was]
    return plan.with_steps(*changed).model_copy().knowing(news=frozenset())


def lifted(before: World, after: World) -> frozenset[ArtifactName]:
    """Artifacts whose derived marks went with a `settle`."""
    marks = ((name, before.artifacts[name].mark) for name in before.marked)
    return frozenset(name for name, mark in marks if mark and not mark.root and after.holds(name))


def _concerned(plan: Plan, names: frozenset[ArtifactName], places: frozenset[int]) -> Iterator[Step]:
    return (plan.steps[place] for place in sorted(plan.touching(names) | places))


def _followed(world: World, step: Step, cause: str, back: frozenset[ArtifactName]) -> Step:
    made = [world.artifacts[name] for name in step.produces if name in world.artifacts]
    complete = len(made) == len(step.produces)
    holds = complete and all(each.mark is None for each in made)
    if holds and made and step.status in (StepStatus.INVALID, StepStatus.PENDING):
        # what it waited for came back unchanged: nothing is left to do (early cutoff)
        ours = all(each.producer == step.id or each.name in back for each in made)
        return step.as_(StepStatus.DONE) if ours else step
    if complete and step.status in (StepStatus.DONE, StepStatus.INVALID) and _outdated(world, step, made):
        return step.as_(StepStatus.PENDING)
    if step.status is StepStatus.DONE and not holds:
        mark = next((each.mark for each in made if each.mark), None)
        return step.as_(StepStatus.INVALID, mark.cause if mark else cause or "its artifact is gone")
    return step


def _outdated(world: World, step: Step, made: list[Artifact]) -> bool:
    """Whether the inputs hold, but are not those it was made from: the same step, once more."""
    marks = [each.mark for each in made if each.mark]
    return bool(marks) and not any(each.root for each in marks) and all(world.holds(name) for name in step.reads())


def _unsettled(world: World, names: frozenset[ArtifactName] | None) -> tuple[Artifact, ...]:
    """Artifacts whose derived mark disagrees with their inputs; only these names, and what was made from them."""
    changed = []
    for artifact in world.artifacts.values() if names is None else _made_from(names, world):
        if artifact.mark is not None and artifact.mark.root:
            continue
        cause = _broken_input(world, artifact)
        if bool(cause) != (artifact.mark is not None):
            mark = Mark(cause=cause, root=False) if cause else None
            changed.append(artifact.model_copy(update={"mark": mark}))
    return tuple(changed)


def _made_from(names: frozenset[ArtifactName], world: World) -> Iterator[Artifact]:
    users = (world.users.get(each, frozenset()) for each in names)
    return (world.artifacts[each] for each in sorted(names.union(*users)) if each in world.artifacts)


def _broken_input(world: World, artifact: Artifact) -> str:
    for name, made_from in artifact.inputs.items():
        current = world.artifacts.get(name)
        if current is None or current.mark is not None:
            return f"its input {name} does not hold"
        if current.digest != made_from:
            return f"its input {name} changed"
    return ""

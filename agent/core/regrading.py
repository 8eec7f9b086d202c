"""What does finished work count for under another goal? It is graded anew; what serves no more is kept, set aside."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain

from agent.core.chaining import members
from agent.core.contract import Contracts
from agent.core.family import belonging, expand
from agent.core.goal import Goal, grade
from agent.core.plan import Plan, StepId
from agent.core.predicate import Judgement
from agent.core.value import ArtifactName, JsonValue, Value
from agent.core.world import GIVEN, World


class Regrade(Value):
    """Finished work under a new goal."""

    serving: tuple[ArtifactName, ...]
    """Holds, and the goal or a step of the plan for it stands on it."""
    set_aside: tuple[ArtifactName, ...]
    """Holds, and nothing needs it now; it is there for the next goal."""
    grades: tuple[Judgement, ...]
    """Every want and criterion, before anything is done for it."""


def regraded(goal: Goal, world: World, plan: Plan, view: Mapping[ArtifactName, JsonValue]) -> Regrade:
    """Grade finished work against a goal.

    Args:
        goal: the new one.
        world: what is there.
        plan: drawn for the new goal.
        view: bodies of what the goal reads.
    """
    held = {name for name in world.artifacts if world.holds(name)}
    stood_on = _stood_on(goal, world, plan)
    made = {name for name in held if world.artifacts[name].producer != GIVEN}
    return Regrade(
        serving=tuple(sorted(held & stood_on)),
        set_aside=tuple(sorted(made - stood_on)),
        grades=grade(goal, world, view),
    )


def outgrown(goal: Goal, world: World, plan: Plan, contracts: Contracts) -> tuple[ArtifactName, ...]:
    """Artifacts that hold and were made from a family that has other members now, for its list is another.

    Nothing they were made from has changed, and yet they are not what they would be if they were made now.
    """
    with suppress(ValueError):  # which is the planner's to say
        now = members(contracts, goal.given)
        return tuple(name for name in sorted(world.artifacts) if _outgrown(name, world, plan, contracts, now))
    return ()


def _outgrown(
    name: ArtifactName, world: World, plan: Plan, contracts: Contracts, now: Mapping[str, tuple[ArtifactName, ...]]
) -> bool:
    artifact = world.artifacts[name]
    step = plan.step(StepId(artifact.producer)) if artifact.producer in plan.index.places else None
    contract = contracts.get(step.call.tool) if step and step.call else None
    families = [each for each in (contract.needs if contract else ()) if each.endswith("*")]
    kin = {each: [names for family, names in now.items() if belonging(each, [family])] for each in families}
    return world.holds(name) and any(
        set(belonging(each, chain.from_iterable(names))) - {name} != set(belonging(each, artifact.inputs))
        for each, names in kin.items()
        if names
    )


def _stood_on(goal: Goal, world: World, plan: Plan) -> frozenset[ArtifactName]:
    """Everything the goal reads or the plan makes and reads, and what that was made from."""
    found: set[ArtifactName] = set()
    frontier = {
        *expand(goal.wants, world.artifacts),
        *(name for each in plan.live() for name in (*each.produces, *each.reads())),
    }
    while frontier:
        found |= frontier
        frontier = {n for name in frontier if name in world.artifacts for n in world.artifacts[name].inputs} - found
    return frozenset(found)

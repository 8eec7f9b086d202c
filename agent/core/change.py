"""What one update changed in the world or the plan: a checkpoint holds this, not the whole once more.

Without it a run of n steps would write n worlds of up to n artifacts, and every round would cost more than the last.
"""

from typing import Literal

from pydantic import Field

from agent.core.plan import Plan, Step
from agent.core.value import ArtifactName, Value
from agent.core.world import Artifact, Fact, World


class WorldChange(Value):
    """From one world to the next: nothing was taken out of it."""

    change: Literal["world"]
    """Without a default: a mapping without it is a whole world, as a person writes it."""
    version: int
    tick: int
    artifacts: dict[ArtifactName, Artifact] = Field(default_factory=dict)
    """New ones, and the new state of old ones."""
    facts: dict[str, Fact] = Field(default_factory=dict)


class PlanChange(Value):
    """From one plan to the next: no step went, and none changed its place."""

    change: Literal["plan"]
    """Without a default: a mapping without it is a whole plan, as a person writes it."""
    revision: int
    goal_revision: int
    planner: str
    steps: tuple[Step, ...] = ()
    """Changed ones, and new ones for the end."""


def world_change(old: World, new: World) -> WorldChange | World:
    """What is new; the whole world when something was taken out of it."""
    if not (old.artifacts.keys() <= new.artifacts.keys() and old.facts.keys() <= new.facts.keys()):
        return new
    return WorldChange(
        change="world",
        version=new.version,
        tick=new.tick,
        artifacts={name: each for name, each in new.artifacts.items() if each is not old.artifacts.get(name)},
        facts={name: each for name, each in new.facts.items() if each is not old.facts.get(name)},
    )


def changed_world(old: World, change: WorldChange) -> World:
    """Undo `world_change`."""
    return World(
        version=change.version,
        tick=change.tick,
        artifacts={**old.artifacts, **change.artifacts},
        facts={**old.facts, **change.facts},
    )


def plan_change(old: Plan, new: Plan) -> PlanChange | Plan:
    """What is new; the whole plan when a step went or changed its place."""
    before = {each.id: each for each in old.steps}
    if [each.id for each in new.steps[: len(before)]] != list(before):
        return new
    return PlanChange(
        change="plan",
        revision=new.revision,
        goal_revision=new.goal_revision,
        planner=new.planner,
        steps=tuple(each for each in new.steps if each is not before.get(each.id)),
    )


def changed_plan(old: Plan, change: PlanChange) -> Plan:
    """Undo `plan_change`."""
    steps = {**{each.id: each for each in old.steps}, **{each.id: each for each in change.steps}}
    return Plan(
        revision=change.revision,
        goal_revision=change.goal_revision,
        planner=change.planner,
        steps=tuple(steps.values()),
    )

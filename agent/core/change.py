"""What one update changed in the world or the plan: a checkpoint holds this, not the whole once more.

Without it a run of n steps would write n worlds of up to n artifacts, and every round would cost more than the last.
"""

from itertools import compress
from operator import is_not
from typing import Literal, TypeVar

from pydantic import Field

from agent.core.plan import Plan, Step
from agent.core.value import ArtifactName, Value
from agent.core.world import Artifact, Fact, World

T = TypeVar("T")


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


def world_change(old: World, new: World) -> WorldChange | World | None:
    """What is new, None when nothing is; the whole world when something was taken out of it."""
    if not (old.artifacts.keys() <= new.artifacts.keys() and old.facts.keys() <= new.facts.keys()):
        return new
    change = WorldChange(
        change="world",
        version=new.version,
        tick=new.tick,
        artifacts=_fresh(old.artifacts, new.artifacts),
        facts=_fresh(old.facts, new.facts),
    )
    same = not (change.artifacts or change.facts) and (old.version, old.tick) == (new.version, new.tick)
    return None if same else change.knowing(led=(old, new))


def changed_world(old: World, change: WorldChange) -> World:
    """Undo `world_change`."""
    return _led(old, change) or World(
        version=change.version,
        tick=change.tick,
        artifacts={**old.artifacts, **change.artifacts},
        facts={**old.facts, **change.facts},
    )


def plan_change(old: Plan, new: Plan) -> PlanChange | Plan | None:
    """What is new, None when nothing is; the whole plan when a step went or changed its place."""
    changed = [(was, now) for was, now in zip(old.steps, new.steps, strict=False) if was is not now]
    if len(new.steps) < len(old.steps) or any(was.id != now.id for was, now in changed):
        return new
    change = PlanChange(
        change="plan",
        revision=new.revision,
        goal_revision=new.goal_revision,
        planner=new.planner,
        steps=(*(now for _, now in changed), *new.steps[len(old.steps) :]),
    )
    titles = [(each.revision, each.goal_revision, each.planner) for each in (old, new)]
    same = not change.steps and titles[0] == titles[1]
    return None if same else change.knowing(led=(old, new))


def changed_plan(old: Plan, change: PlanChange) -> Plan:
    """Undo `plan_change`."""
    if (led := _led(old, change)) is not None:
        return led
    steps = {**{each.id: each for each in old.steps}, **{each.id: each for each in change.steps}}
    return Plan(
        revision=change.revision,
        goal_revision=change.goal_revision,
        planner=change.planner,
        steps=tuple(steps.values()),
    )


def _fresh(old: dict[str, T], new: dict[str, T]) -> dict[str, T]:
    return dict(compress(new.items(), map(is_not, new.values(), map(old.get, new))))


def _led(old: T, change: Value) -> T | None:
    """Where the change led whoever made it, with all that is computed already; a stored one has forgotten it."""
    start, end = change.__dict__.get("led", (None, None))
    return end if start is old else None

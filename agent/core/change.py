"""What one update changed in the world, the plan or the ledger: a checkpoint holds this, not the whole once more.

Without it a run of n steps would write n worlds of up to n artifacts, and every round would cost more than the last.
"""

from itertools import compress
from operator import is_not
from typing import Literal, TypeVar

from pydantic import Field

from agent.core.limits import Ledger
from agent.core.plan import Plan, Step
from agent.core.value import ArtifactName, JsonValue, Value
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


class LedgerChange(Value):
    """From one ledger to the next: no entry of one of its books was taken out."""

    change: Literal["ledger"]
    """Without a default: a mapping without it is a whole ledger, as a person writes it."""
    fields: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields with another value; of those that are books, the entries with another value."""


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
    if (led := _led(old, change)) is not None:
        return led
    facts = {**old.facts, **change.facts}
    new = old.with_artifacts(*change.artifacts.values())
    return new.model_copy(update={"version": change.version, "tick": change.tick, "facts": facts})


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
    new = old.with_steps(*change.steps)
    fresh = tuple(each for each in change.steps if each.id not in old.index.places)
    titles = {name: getattr(change, name) for name in ("revision", "goal_revision", "planner")}
    return new.model_copy(update={**titles, **({"steps": (*new.steps, *fresh)} if fresh else {})})


def ledger_change(old: Ledger, new: Ledger) -> LedgerChange | Ledger | None:
    """What is new, None when nothing is; the whole ledger when an entry was taken out."""
    changed = {name for name, each in new if each != getattr(old, name)}
    before, fields = old.model_dump(include=changed), new.model_dump(include=changed)
    for name, each in fields.items():
        if isinstance(each, dict):
            if before[name].keys() - each.keys():
                return new
            fields[name] = {key: entry for key, entry in each.items() if before[name].get(key) != entry}
    return LedgerChange(change="ledger", fields=fields).knowing(led=(old, new)) if fields else None


def changed_ledger(old: Ledger, change: LedgerChange) -> Ledger:
    """Undo `ledger_change`."""
    if (led := _led(old, change)) is not None:
        return led
    after = old.model_dump()
    for name, each in change.fields.items():
        after[name] = {**after[name], **each} if isinstance(each, dict) else each
    return Ledger.model_validate(after)


def _fresh(old: dict[str, T], new: dict[str, T]) -> dict[str, T]:
    return dict(compress(new.items(), map(is_not, new.values(), map(old.get, new))))


def _led(old: T, change: Value) -> T | None:
    """Where the change led whoever made it, with all that is computed already; a stored one has forgotten it."""
    start, end = change.__dict__.get("led", (None, None))
    return end if start is old else None

"""Which constraints are mutated, and where does each apply? One row per kind, deterministic for a seed."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.contract import EffectClass, ToolContract
from agent.core.goal import Criterion, Goal, wanted
from agent.core.plan import Step
from agent.core.value import JsonValue
from agent.mutation.forces import (
    PATIENCE,
    Force,
    Losing,
    Overdue,
    Slow,
    effect_undone,
    field_gone,
    more_to_read,
    no_tool,
    refused_permission,
    value_drifted,
)
from agent.mutation.trajectory import Point, Target, Trajectory

Choose = Callable[[Trajectory, Point], Step | None]
"""The step that a mutation hits at a point; None: it does not apply there."""


@dataclass(frozen=True)
class Kind:
    """One way to mutate a constraint."""

    name: str
    says: str
    choose: Choose = lambda _, __: None
    force: Callable[[str, ToolContract], Force] | None = None
    """Made for one replay, from a seed and what the tool promises; None: what changes is the goal."""
    whole_tool: bool = False
    """Hits every call of the tool, not only those of one step."""
    rewritten: Callable[[Goal], Goal] | None = None
    undoes: bool = False
    """Takes a finished effect away, so that it may be made a second time."""
    timeout: float | None = None
    """Seconds that calls may take in its replays; None: as the settings say."""
    same_end: bool = False
    """Whether the world has to end as undisturbed."""


@dataclass(frozen=True)
class Mutation:
    """One kind at one point."""

    kind: Kind
    point: Point
    hit: frozenset[str]
    """Keys of the steps it is about; empty when the goal changes."""
    target: Target | None
    seed: str

    def __str__(self) -> str:
        about = f" ({self.target.tool})" if self.target else ""
        return f"{self.kind.name}{about} {self.point}"


def mutations(trajectory: Trajectory, kinds: tuple[Kind, ...], seed: int) -> tuple[Mutation, ...]:
    """All mutations at all points they apply to."""
    found = (_at(trajectory, point, kind, seed) for point in trajectory.points() for kind in kinds)
    return tuple(each for each in found if each is not None)


def _at(trajectory: Trajectory, point: Point, kind: Kind, seed: int) -> Mutation | None:
    name = f"{seed} {kind.name} {point}"
    if kind.rewritten is not None:
        return Mutation(kind, point, frozenset(), None, name)
    step = kind.choose(trajectory, point)
    if step is None or step.call is None:
        return None
    alike = [each for each in trajectory.steps() if each.call and each.call.tool == step.call.tool]
    hit = frozenset(each.key for each in (alike if kind.whole_tool else [step]))
    target = Target(step.call.tool, {}) if kind.whole_tool else trajectory.target(step)
    return Mutation(kind, point, hit, target, name)


def _about_to_be_called(applies: Callable[[ToolContract], bool] = lambda _: True) -> Choose:
    """The step itself before its attempt; after it, the next one that stands on it."""

    def choose(trajectory: Trajectory, point: Point) -> Step | None:
        step = trajectory.step(point.step)
        following = (step,) if point.when == "before" else trajectory.ahead(step)[:1]
        return next((each for each in following if applies(trajectory.contract(each))), None)

    return choose


def _was_read(applies: Callable[[ToolContract, JsonValue], bool]) -> Choose:
    """The step itself, or the nearest that it stands on."""

    def choose(trajectory: Trajectory, point: Point) -> Step | None:
        step = trajectory.step(point.step)
        near = (step, *trajectory.behind(step))
        return next((e for e in near if applies(trajectory.contract(e), trajectory.returned.get(e.key))), None)

    return choose


def _was_made(applies: Callable[[ToolContract], bool]) -> Choose:
    """The step itself after its attempt; before it, the nearest that it stands on."""

    def choose(trajectory: Trajectory, point: Point) -> Step | None:
        step = trajectory.step(point.step)
        made = trajectory.behind(step) if point.when == "before" else (step, *trajectory.behind(step))
        return next((each for each in made if applies(trajectory.contract(each))), None)

    return choose


def _reads(contract: ToolContract, _: JsonValue = None) -> bool:
    return contract.effect is EffectClass.READ_ONLY


def _writes(contract: ToolContract) -> bool:
    return contract.effect is EffectClass.MUTATING


def _one_more(goal: Goal, predicate: str) -> Goal:
    more = Criterion(id="mutated", text="one more thing", predicate=predicate)
    return goal.model_copy(update={"criteria": (*goal.criteria, more), "revision": 1})


def _any_want(goal: Goal) -> str:
    """Something the goal is about; a goal that only has criteria is about what they read."""
    return wanted(goal)[0]


KINDS: tuple[Kind, ...] = (
    Kind("file changed", "what was read says more than before", _was_read(_reads), more_to_read),
    Kind(
        "permission revoked",
        "the tool raises PermissionError from then on",
        _about_to_be_called(),
        refused_permission,
        whole_tool=True,
    ),
    Kind(
        "schema changed",
        "a field disappears from what is read",
        _was_read(lambda contract, value: _reads(contract) and isinstance(value, dict) and bool(value)),
        field_gone,
        whole_tool=True,
    ),
    Kind(
        "criteria rewritten",
        "one more criterion, which the finished work meets",
        rewritten=lambda goal: _one_more(goal, f"artifacts.{_any_want(goal)} == artifacts.{_any_want(goal)}"),
        same_end=True,
    ),
    Kind(
        "criteria out of reach",
        "one more criterion, which nothing can meet",
        rewritten=lambda goal: _one_more(goal, f"artifacts.{_any_want(goal)} != artifacts.{_any_want(goal)}"),
        same_end=True,
    ),
    Kind("tool removed", "the tool is unavailable from then on", _about_to_be_called(), no_tool, whole_tool=True),
    Kind("tool slower", "the tool takes longer", _about_to_be_called(), lambda *_: Slow(), True, same_end=True),
    Kind(
        "tool too slow",
        "one call takes longer than it may, and acts afterwards",
        _about_to_be_called(),
        lambda *_: Overdue(),
        timeout=PATIENCE,
        same_end=True,
    ),
    Kind("value drifted", "what was made is changed by others", _was_made(lambda each: each.observable), value_drifted),
    Kind(
        "effect undone",
        "what was made is taken away by others",
        _was_made(lambda each: each.observable and _writes(each)),
        effect_undone,
        undoes=True,
    ),
    Kind(
        "answer lost",
        "the work is done, and its answer times out",
        _about_to_be_called(_writes),
        lambda *_: Losing(),
        same_end=True,
    ),
)
"""The seven mutations of the seeds and four of our own: out of reach, too slow, undone, lost."""

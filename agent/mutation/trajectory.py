"""What is replayed? The steps of an undisturbed run, each with two boundaries: before and after its attempt."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agent.core.contract import Contracts, ToolContract
from agent.core.goal import Goal
from agent.core.plan import Plan, Step, downstream, upstream
from agent.core.reference import referenced
from agent.core.value import JsonValue

When = Literal["before", "after"]


@dataclass(frozen=True)
class Target:
    """A tool, as one step calls it, or, without fixed arguments, as everybody does."""

    tool: str
    fixed: Mapping[str, JsonValue]

    def met_by(self, tool: str, args: Mapping[str, JsonValue]) -> bool:
        """Whether a call or a look is this one's."""
        return tool == self.tool and all(args.get(name) == value for name, value in self.fixed.items())


@dataclass(frozen=True)
class Point:
    """One boundary of the trajectory."""

    step: str
    """Key of the step: what it makes."""
    target: Target
    when: When

    def __str__(self) -> str:
        return f"{self.when} {self.step}"


@dataclass(frozen=True)
class Trajectory:
    """An undisturbed run, as far as replays need it."""

    goal: Goal
    plan: Plan
    contracts: Contracts
    returned: Mapping[str, JsonValue]
    """Step key -> what its tool returned."""

    def steps(self) -> tuple[Step, ...]:
        """Direct calls of the plan; what a model does inside a step has no boundaries of its own."""
        return tuple(each for each in self.plan.live() if each.call is not None)

    def points(self) -> Iterator[Point]:
        """Every boundary, in plan order."""
        for step in self.steps():
            for when in ("before", "after"):
                yield Point(step.key, self.target(step), "before" if when == "before" else "after")

    def step(self, key: str) -> Step:
        """The step of that key."""
        return next(each for each in self.plan.live() if each.key == key)

    def target(self, step: Step) -> Target:
        """The step's own calls: told from those of its family by the arguments that no repair changes."""
        assert step.call is not None
        free = self.contract(step).alternatives
        fixed = {name: each for name, each in step.call.args.items() if name not in free and not referenced(each)}
        return Target(step.call.tool, fixed)

    def contract(self, step: Step) -> ToolContract:
        """What the step's tool promises."""
        assert step.call is not None
        return self.contracts[step.call.tool]

    def behind(self, step: Step) -> tuple[Step, ...]:
        """What the step stands on, nearest first."""
        return self._ordered(step, upstream(self.plan.live(), [step.id]), nearest_last=True)

    def ahead(self, step: Step) -> tuple[Step, ...]:
        """What stands on the step, nearest first."""
        return self._ordered(step, downstream(self.plan.live(), [step.id]), nearest_last=False)

    def _ordered(self, _: Step, ids: Iterable[str], nearest_last: bool) -> tuple[Step, ...]:
        found = [each for each in self.steps() if each.id in set(ids)]
        return tuple(reversed(found) if nearest_last else found)

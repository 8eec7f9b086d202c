"""The current intended path: steps with needs, products, predicates and a status. Disposable by design."""

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import NewType

from pydantic import Field

from agent.core.contract import EffectClass, Names, Predicates
from agent.core.predicate import reads
from agent.core.reference import referenced
from agent.core.value import ArtifactName, JsonValue, Value
from agent.core.world import World

StepId = NewType("StepId", str)
"""Minted by the runtime; never a list number and never the model's own."""


class StepStatus(StrEnum):
    """Stored states of a step. Ready and blocked are computed, never stored."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    INVALID = "invalid"
    FAILED = "failed"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


SETTLED = (StepStatus.DONE, StepStatus.SKIPPED)


class Call(Value):
    """A direct tool call: no model is asked while it runs."""

    tool: str
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Literals or references; resolved against the world when the step starts."""


class Step(Value):
    """One node of the plan: a direct call, or an instruction for the inner ReAct loop."""

    id: StepId
    intent: str
    call: Call | None = None
    instruction: str = ""
    """Set when `call` is None: what the inner loop is asked to do."""
    tools: Names = ()
    """Tools the inner loop may use."""
    needs: Names = ()
    produces: Names = ()
    after: tuple[StepId, ...] = ()
    """Ordering edges that no artifact carries."""
    preconditions: Predicates = ()
    effects: Predicates = ()
    effect: EffectClass = EffectClass.MUTATING
    idempotent: bool = False
    serves: tuple[str, ...] = ()
    """Wants and criteria this step is for."""
    status: StepStatus = StepStatus.PENDING
    reason: str = ""
    """Why it is invalid, failed, skipped or superseded."""
    attempts: int = 0
    """Tries started so far."""
    delay: float = 0.0
    """Seconds to wait before the next try (backoff)."""
    depth: int = 0
    """How many steps were split one into another until this one was left; at most `Limits.depth`."""
    repetition: int = 0
    """Counts times the world was seen to have lost this step's effect: a new identity for the journal."""
    hint: str = ""
    """What a person said about doing it; seen by whoever plans, patches or carries it out."""
    drawn: Call | None = None
    """The call as a planner drew it, when a repair or a person has put another in its place."""
    asks: tuple[Call, ...] = ()
    """Calls its inner loop wanted to make and may not without a person's word."""

    @property
    def key(self) -> str:
        """What the step is for, whatever its id: budgets survive a renumbering replan."""
        return " ".join(sorted(self.produces)) or self.intent

    @property
    def live(self) -> bool:
        """Whether the step still belongs to the intended path."""
        return self.status is not StepStatus.SUPERSEDED

    def reads(self) -> frozenset[ArtifactName]:
        """Every artifact the step depends on: needs, references and predicates, less its own products."""
        return self._reads

    @cached_property
    def _reads(self) -> frozenset[ArtifactName]:
        named = set(self.needs) | referenced(self.call.args if self.call else {})
        for predicate in (*self.preconditions, *self.effects):
            named |= reads(predicate)
        return frozenset(named) - set(self.produces)

    def calling(self, call: Call) -> "Step":
        """The step with another call in place of its own; what it was drawn as is kept."""
        drawn = self.drawn or self.call
        return self.model_copy(update={"call": call, "drawn": None if call == drawn else drawn})

    def as_(self, status: StepStatus, reason: str = "") -> "Step":
        """The step in another state."""
        return self.model_copy(update={"status": status, "reason": reason})


class Plan(Value):
    """Steps under a revision, made for one revision of the goal."""

    revision: int = 0
    """0 is no plan yet."""
    goal_revision: int = 0
    steps: tuple[Step, ...] = ()
    planner: str = ""
    """Which planner drew it: `contract` or `model`."""

    def step(self, step_id: StepId) -> Step:
        """The step with that id.

        Raises:
            KeyError: when the plan has no such step.
        """
        found = next((each for each in self.steps if each.id == step_id), None)
        if found is None:
            raise KeyError(f"no step {step_id!r} in plan revision {self.revision}")
        return found

    def live(self) -> tuple[Step, ...]:
        """Steps of the intended path, without the superseded ones."""
        return tuple(each for each in self.steps if each.live)

    def with_status(self, *statuses: StepStatus) -> tuple[Step, ...]:
        """Steps in one of the given states, in plan order."""
        return tuple(each for each in self.steps if each.status in statuses)

    def with_steps(self, *changed: Step) -> "Plan":
        """The plan with these steps in place of their namesakes."""
        by_id = {each.id: each for each in changed}
        return self.model_copy(update={"steps": tuple(by_id.get(each.id, each) for each in self.steps)})

    def producer(self, name: ArtifactName) -> Step | None:
        """The live step that makes the artifact."""
        return next((each for each in self.live() if name in each.produces), None)


def edges(steps: Iterable[Step]) -> dict[StepId, frozenset[StepId]]:
    """For each step the steps it depends on: real dependencies, never list order (seed 2)."""
    steps = tuple(steps)
    makers = {name: each.id for each in steps for name in each.produces}
    known = {each.id for each in steps}
    return {
        each.id: frozenset({makers[name] for name in each.reads() if name in makers} | (set(each.after) & known))
        for each in steps
    }


def downstream(steps: Iterable[Step], roots: Iterable[StepId]) -> frozenset[StepId]:
    """The steps that depend on any root, directly or not, without the roots."""
    return _closure(_reversed(edges(steps)), roots)


def upstream(steps: Iterable[Step], roots: Iterable[StepId]) -> frozenset[StepId]:
    """The steps any root depends on, directly or not, without the roots."""
    return _closure(edges(steps), roots)


def cycle(steps: Iterable[Step]) -> tuple[StepId, ...]:
    """One dependency cycle, first id repeated at the end; empty when the plan is a DAG."""
    graph = edges(steps)
    remaining = dict(graph)
    while free := [each for each, needs in remaining.items() if not needs & remaining.keys()]:
        for each in free:
            del remaining[each]
    if not remaining:
        return ()
    path = [min(remaining)]
    while True:
        following = min(graph[path[-1]] & remaining.keys())
        if following in path:
            return (*path[path.index(following) :], following)
        path.append(following)


def ready(plan: Plan, world: World) -> tuple[Step, ...]:
    """Pending steps whose inputs hold and whose predecessors are done; a failed one satisfies nothing."""
    settled = {each.id for each in plan.with_status(*SETTLED)}
    gone = {each.id for each in plan.with_status(StepStatus.SUPERSEDED)}
    return tuple(
        each
        for each in plan.with_status(StepStatus.PENDING)
        if all(world.holds(name) for name in each.reads()) and set(each.after) - gone <= settled
    )


def _reversed(graph: dict[StepId, frozenset[StepId]]) -> dict[StepId, frozenset[StepId]]:
    return {each: frozenset(other for other, needs in graph.items() if each in needs) for each in graph}


def _closure(graph: dict[StepId, frozenset[StepId]], roots: Iterable[StepId]) -> frozenset[StepId]:
    starts = set(roots)
    found: set[StepId] = set()
    frontier = set(starts)
    while frontier:
        frontier = set().union(*(graph.get(each, frozenset()) for each in frontier)) - found
        found |= frontier
    return frozenset(found - starts)

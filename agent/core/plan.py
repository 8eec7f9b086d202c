"""The current intended path: steps with needs, products, predicates and a status. Disposable by design."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar, NamedTuple, NewType

from pydantic import Field

from agent.core.contract import EffectClass, Names, Predicates
from agent.core.display import table
from agent.core.predicate import reads
from agent.core.reference import as_text, referenced, resolve
from agent.core.value import ArtifactName, JsonValue, Value, digest
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
    texts: tuple[str, ...] = Field(default=(), exclude_if=lambda each: not each)
    """Parameters that take nothing but text (`ToolContract.texts`)."""

    def sent(self, view: Mapping[ArtifactName, JsonValue]) -> dict[str, JsonValue]:
        """The arguments as the tool gets them: references resolved, and spelled out where it takes nothing but text.

        A list of texts is one text line by line, but for a call that names a JSON file.

        Raises:
            UnresolvedReference: naming the reference and what exists.
        """
        resolved = {name: resolve(each, view, name) for name, each in self.args.items()}
        lines = not any(isinstance(each, str) and each.lower().endswith(".json") for each in resolved.values())
        return {name: as_text(each, name, lines) if name in self.texts else each for name, each in resolved.items()}


class Inquiry(Value):
    """What a tool asks a person in the middle of a call. The call is made again, from its top, with the answer."""

    call: Call
    """References resolved: exactly what was sent."""
    of: str
    """What the step makes, and which time: an answer counts for that, whatever plan makes it."""
    number: int = 0
    """How much it had asked before in this call, and been answered."""
    value: JsonValue = None
    """The question, in the tool's own form."""

    @property
    def identity(self) -> str:
        """What the answer is kept under."""
        return digest([self.of, self.call.tool, self.call.args, "asks", self.number])


class Step(Value):
    """One node of the plan: a direct call, or an instruction for the inner ReAct loop."""

    kept_with: ClassVar[frozenset[str]] = frozenset({"call", "needs", "produces", "preconditions", "effects"})

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
    settled: tuple[str, ...] = ()
    """Writes of its inner loop that a person lets be made although they may have been (`EffectIdentity.call`), once
    for each time they are named."""
    hint: str = ""
    """What a person said about doing it; seen by whoever plans, patches or carries it out."""
    last_failure: str = ""
    """What its last attempt came to, for the inner loop that tries again: the same prompt gets the same reply."""
    drawn: Call | None = None
    """The call as a planner drew it, when a repair or a person has put another in its place."""
    asks: tuple[Call, ...] = ()
    """Calls its inner loop wanted to make and may not without a person's word."""
    inquiries: tuple[Inquiry, ...] = ()
    """What its calls ask a person, and nobody has answered yet."""

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


class Index(NamedTuple):
    """Where things are in a plan, by position. Moved along with it, so that no decision has to read every step."""

    places: dict[StepId, int]
    standing: dict[StepStatus, frozenset[int]]
    makers: dict[ArtifactName, tuple[int, ...]]
    readers: dict[ArtifactName, tuple[int, ...]]
    reads: tuple[frozenset[ArtifactName], ...]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "Index":
        """Read every step once."""
        steps = tuple(steps)
        places: dict[StepId, int] = {}
        standing: dict[StepStatus, set[int]] = {each: set() for each in StepStatus}
        makers: dict[ArtifactName, list[int]] = {}
        readers: dict[ArtifactName, list[int]] = {}
        for place, step in enumerate(steps):
            places.setdefault(step.id, place)
            standing[step.status].add(place)
            for name in step.produces:
                makers.setdefault(name, []).append(place)
            for name in step.reads():
                readers.setdefault(name, []).append(place)
        return cls(
            places,
            {status: frozenset(each) for status, each in standing.items()},
            {name: tuple(each) for name, each in makers.items()},
            {name: tuple(each) for name, each in readers.items()},
            tuple(each.reads() for each in steps),
        )

    def moved(self, place: int, was: Step, now: Step) -> "Index | None":
        """The index when one step changed; None when it makes or reads something else now."""
        if now.produces != was.produces or now.reads() != was.reads():
            return None
        if now.status is was.status:
            return self
        left, entered = self.standing[was.status] - {place}, self.standing[now.status] | {place}
        return self._replace(standing={**self.standing, was.status: left, now.status: entered})


class Plan(Value):
    """Steps under a revision, made for one revision of the goal."""

    kept_with: ClassVar[frozenset[str]] = frozenset({"steps"})

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
        place = self.index.places.get(step_id)
        if place is None:
            raise KeyError(f"no step {step_id!r} in plan revision {self.revision}")
        return self.steps[place]

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        head = ("step", "what for", "state", "tries", "makes")
        rows = ((each.id, each.intent, each.status, each.attempts, ", ".join(each.produces)) for each in self.live())
        return table(f"Plan {self.revision} by the {self.planner or 'contract'} planner", head, rows)

    @cached_property
    def index(self) -> Index:
        """Where things are in it."""
        return Index.of(self.steps)

    @cached_property
    def news(self) -> frozenset[int] | None:
        """Places of steps that changed since they were last made to follow the world; None: any of them may have."""
        return None

    @property
    def settled(self) -> bool:
        """Whether every live step is done or skipped."""
        over = (*SETTLED, StepStatus.SUPERSEDED)
        return not any(places for status, places in self.index.standing.items() if status not in over)

    def live(self) -> tuple[Step, ...]:
        """Steps of the intended path, without the superseded ones."""
        return tuple(each for each in self.steps if each.live)

    def with_status(self, *statuses: StepStatus) -> tuple[Step, ...]:
        """Steps in one of the given states, in plan order."""
        places = (place for each in statuses for place in self.index.standing[each])
        return tuple(self.steps[place] for place in sorted(places))

    def with_steps(self, *changed: Step) -> "Plan":
        """The plan with these steps in place of their namesakes."""
        index: Index | None = self.index
        steps, touched = list(self.steps), set()
        for step in changed:
            place = self.index.places.get(step.id)
            if place is not None and steps[place] is not step:
                index = index and index.moved(place, steps[place], step)
                steps[place] = step
                touched.add(place)
        if not touched:
            return self
        known = {"index": index} if index else {}
        news = None if self.news is None else self.news | touched
        return self.model_copy(update={"steps": tuple(steps)}).knowing(**known, news=news)

    def makers(self, name: ArtifactName) -> tuple[Step, ...]:
        """All steps that make the artifact, superseded ones among them."""
        return tuple(self.steps[place] for place in self.index.makers.get(name, ()))

    def producer(self, name: ArtifactName) -> Step | None:
        """The live step that makes the artifact."""
        return next((each for each in self.makers(name) if each.live), None)

    def touching(self, names: Iterable[ArtifactName]) -> frozenset[int]:
        """Places of the steps that make or read one of the artifacts."""
        index = self.index
        return frozenset(
            place for each in names for ways in (index.makers, index.readers) for place in ways.get(each, ())
        )


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
    with suppress(CycleError):
        TopologicalSorter(graph).prepare()
        return ()
    remaining = dict(graph)
    while free := [each for each, needs in remaining.items() if not needs & remaining.keys()]:
        for each in free:
            del remaining[each]
    path = [min(remaining)]
    while True:
        following = min(graph[path[-1]] & remaining.keys())
        if following in path:
            return (*path[path.index(following) :], following)
        path.append(following)


def ready(plan: Plan, world: World) -> tuple[Step, ...]:
    """Pending steps whose inputs hold and whose predecessors are done; a failed one satisfies nothing."""
    index, there, marked = plan.index, world.artifacts.keys(), world.marked
    # the one loop over all that is left: nothing is called in it
    fed = [
        n for n in index.standing[StepStatus.PENDING] if index.reads[n] <= there and index.reads[n].isdisjoint(marked)
    ]
    found = (plan.steps[each] for each in sorted(fed))
    return tuple(each for each in found if not (each.after and _waits(each, plan)))


def _waits(step: Step, plan: Plan) -> bool:
    """Whether a step that has to come before is neither settled nor gone; one that is not there never comes."""
    over = (*SETTLED, StepStatus.SUPERSEDED)
    return any(each not in plan.index.places or plan.step(each).status not in over for each in step.after)


def _reversed(graph: dict[StepId, frozenset[StepId]]) -> dict[StepId, frozenset[StepId]]:
    users: dict[StepId, set[StepId]] = {each: set() for each in graph}
    for each, needs in graph.items():
        for need in needs:
            users[need].add(each)
    return {each: frozenset(found) for each, found in users.items()}


def _closure(graph: dict[StepId, frozenset[StepId]], roots: Iterable[StepId]) -> frozenset[StepId]:
    starts = set(roots)
    found: set[StepId] = set()
    frontier = set(starts)
    while frontier:
        frontier = set().union(*(graph.get(each, frozenset()) for each in frontier)) - found
        found |= frontier
    return frozenset(found - starts)

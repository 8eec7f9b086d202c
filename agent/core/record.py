"""The trace: one small frozen type per event, tagged, complete enough to recompute each decision."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agent.core.failure import Classified, Trigger
from agent.core.invalidation import Invalidation
from agent.core.ladder import Options, RungChoice
from agent.core.limits import Ledger, Limits, Stop
from agent.core.merge import PlanDelta
from agent.core.outcome import OutcomeStatus
from agent.core.plan import StepId
from agent.core.predicate import Judgement
from agent.core.value import ArtifactName, Digest, JsonValue, Value

SCHEMA = 1
"""Version of the record format; a reader refuses a newer one."""


class Record(Value):
    """Fields every record has."""

    at: float
    """Seconds since the epoch, from the clock port."""
    run: int = 1


class RunStarted(Record):
    """A run was accepted: new, resumed by input, or with another goal."""

    event: Literal["run_started"] = "run_started"
    goal: str
    goal_revision: int
    resumed: bool = False
    """Finished work of an earlier run on this thread was found."""


class IntentChanged(Record):
    """The goal got a new revision; finished work is graded against it."""

    event: Literal["intent_changed"] = "intent_changed"
    goal_revision: int
    still_serving: tuple[ArtifactName, ...]
    """Finished work that the new goal, or the plan for it, stands on."""
    set_aside: tuple[ArtifactName, ...] = ()
    """Finished work that holds, and that nothing needs now."""
    grades: tuple[Judgement, ...] = ()
    """The new goal's wants and criteria, over what was there already."""


class Planned(Record):
    """A planner drew a plan."""

    event: Literal["planned"] = "planned"
    trigger: Trigger
    planner: str
    revision: int
    delta: PlanDelta
    reused: tuple[ArtifactName, ...]
    """Artifacts that hold and need not be made again."""


class PlanRejected(Record):
    """A planner threw, gave nothing valid, or proved that the goal cannot be reached."""

    event: Literal["plan_rejected"] = "plan_rejected"
    trigger: Trigger
    reason: str


class StepStarted(Record):
    """A step was marked running, before anything was done."""

    event: Literal["step_started"] = "step_started"
    step: StepId
    intent: str
    attempt: int
    delay: float = 0.0


class AttemptEnded(Record):
    """One try came back."""

    event: Literal["attempt_ended"] = "attempt_ended"
    step: StepId
    attempt: int
    ok: bool
    how: str
    """`called`, `recorded` (the journal had the outcome), `adopted` (the effect was seen in the world), `turns`."""
    seconds: float
    money: float = 0.0
    """What its tool calls cost by their contracts."""
    error: str = ""
    notes: tuple[str, ...] = ()
    """What of its values could not be kept as it was: `make_x: kept as text: $.ratio (Fraction)`."""


class Nudged(Record):
    """A soft bound: a model was told what it is doing, and what to do instead. It can usually recover (seed 4)."""

    event: Literal["nudged"] = "nudged"
    step: StepId | None = None
    """None: the planner."""
    detector: Literal["loop", "plan"]
    """`loop`: a call that repeats itself. `plan`: a draft that is no plan, or not another one."""
    message: str
    """What the model saw."""


class Judged(Record):
    """The verifier's verdict over one attempt."""

    event: Literal["judged"] = "judged"
    step: StepId
    judgements: tuple[Judgement, ...]
    by: tuple[str, ...]


class Committed(Record):
    """A verified artifact entered the world: the only kind of progress."""

    event: Literal["committed"] = "committed"
    step: StepId | None
    """None: a person has given it."""
    name: ArtifactName
    version: int
    digest: str
    unchanged: bool
    """Same content as before: nothing downstream is invalid (early cutoff)."""
    inputs: dict[ArtifactName, Digest] = Field(default_factory=dict)
    """What it was made from: along these edges it falls."""


class Invalidated(Record):
    """Marks were set."""

    event: Literal["invalidated"] = "invalidated"
    what: Invalidation


class Recovered(Record):
    """One failure, what it proved false, and the rung that was chosen, with all the inputs of the choice."""

    event: Literal["recovered"] = "recovered"
    classified: Classified
    options: Options
    limits: Limits
    ledger: Ledger
    """As it was when the choice was made."""
    ordered: bool = False
    """A replan was under way."""
    resting: bool = False
    """The endpoint rested already."""
    choice: RungChoice


class Repaired(Record):
    """A patch or a rewrite changed the plan."""

    event: Literal["repaired"] = "repaired"
    step: StepId | None
    rung: str
    because: str
    revision: int
    delta: PlanDelta
    reused: tuple[ArtifactName, ...] = ()


class Escalated(Record):
    """A person was asked."""

    event: Literal["escalated"] = "escalated"
    question: str
    id: str


class Answered(Record):
    """A person answered."""

    event: Literal["answered"] = "answered"
    id: str
    answer: dict[str, JsonValue]


class Paused(Record):
    """The run was stopped on request; it is not over, and the next record is of its going on."""

    event: Literal["paused"] = "paused"
    reason: str


class Ended(Record):
    """The run ended."""

    event: Literal["ended"] = "ended"
    status: OutcomeStatus
    reason: str
    verified: int
    """Artifacts newly verified in this run."""
    claimed: OutcomeStatus | None = None
    """How the run meant to end; the status is what plan and goal bear out."""
    missing: tuple[str, ...] = ()
    """What keeps plan and goal from being done."""
    stop: Stop | None = None
    """The bound that ended it, with what was spent."""


TraceRecord = Annotated[
    RunStarted
    | IntentChanged
    | Planned
    | PlanRejected
    | StepStarted
    | AttemptEnded
    | Nudged
    | Judged
    | Committed
    | Invalidated
    | Recovered
    | Repaired
    | Escalated
    | Answered
    | Paused
    | Ended,
    Field(discriminator="event"),
]
"""Any record; read one back with `RECORD.validate_python`."""

RECORD: TypeAdapter[TraceRecord] = TypeAdapter(TraceRecord)


def nudged(messages: Iterable[str], at: float, run: int, step: StepId | None = None) -> list[TraceRecord]:
    """Records of what a model was told; without a step it was the planner."""
    return [Nudged(at=at, run=run, step=step, detector="loop" if step else "plan", message=each) for each in messages]

"""The trace: one small frozen type per event, tagged, complete enough to recompute each decision.

Described field by field in `docs/trace.md`, which is written from here.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, field_validator

from agent.core.control import Cause
from agent.core.failure import Classified, Trigger
from agent.core.invalidation import Invalidation
from agent.core.ladder import Options, RungChoice
from agent.core.limits import Ledger, Limits, Stop
from agent.core.merge import PlanDelta
from agent.core.outcome import OutcomeStatus
from agent.core.plan import StepId
from agent.core.predicate import Judgement, Verdict
from agent.core.provenance import Suspicion
from agent.core.spending import Cost
from agent.core.triage import Triage
from agent.core.value import ArtifactName, Digest, JsonValue, Value

SCHEMA = 2
"""Version of the record format, which every record carries. An earlier one is read, a later one is refused.

1: the first; its records do not say so, and all they hold means the same today. 2: a recovery has a number and says
what it took down and what it left standing; what was drawn for it names it, and what it cost. Calls may be withheld.
"""


class Record(Value):
    """Fields every record has."""

    at: float
    """Seconds since the epoch, from the clock port."""
    run: int = 1
    """Number of the run on its thread, from 1."""
    schema_version: int = SCHEMA
    """Format that it was written in; absent in the first."""

    @field_validator("schema_version")
    @classmethod
    def _known(cls, version: int) -> int:
        """Refuse a record of a later release, for its fields may mean something else.

        Raises:
            ValueError: it is one.
        """
        if version > SCHEMA:
            raise ValueError(
                f"a trace record was written by a newer Kintsugi (schema {version}; this one reads up to {SCHEMA}): "
                "upgrade Kintsugi, or read it with the release that wrote it"
            )
        return version


class RunStarted(Record):
    """A run was accepted: new, resumed by input, or with another goal."""

    event: Literal["run_started"] = "run_started"
    goal: str
    """In a line: its text, or what it wants."""
    goal_revision: int
    """Grows with every change of intent."""
    resumed: bool = False
    """Finished work of an earlier run on this thread was found."""


class Triaged(Record):
    """How much machinery the goal gets, and why. Deciding it costs nothing: no model is asked."""

    event: Literal["triaged"] = "triaged"
    chosen: Triage
    """The strategy, why, and what was seen of goal and tools: it follows from that once more."""


class IntentChanged(Record):
    """The goal got a new revision; finished work is graded against it."""

    event: Literal["intent_changed"] = "intent_changed"
    goal_revision: int
    """The new one."""
    still_serving: tuple[ArtifactName, ...]
    """Finished work that the new goal, or the plan for it, stands on."""
    set_aside: tuple[ArtifactName, ...] = ()
    """Finished work that holds, and that nothing needs now."""
    grades: tuple[Judgement, ...] = ()
    """The new goal's wants and criteria, over what was there already."""


class Redrawn(Record):
    """The plan became another."""

    revision: int
    """Of the plan, from now on."""
    delta: PlanDelta
    """What became of each step."""
    reused: tuple[ArtifactName, ...] = ()
    """Finished work of the steps that are kept: it holds, and is not made again."""
    cause: Cause | None = None
    """The recovery that it carries out; None for a first plan and a changed goal."""
    cost: Cost = Cost()
    """What drawing it was paid for; doing it is in the attempts that follow."""


class Planned(Redrawn):
    """A planner drew a plan: the first one, one for a changed goal, or a replan."""

    event: Literal["planned"] = "planned"
    trigger: Trigger
    """Why there is another plan."""
    planner: str
    """Who drew it: `contract`, or the model's name."""


class PlanRejected(Record):
    """A planner threw, gave nothing valid, or proved that the goal cannot be reached."""

    event: Literal["plan_rejected"] = "plan_rejected"
    trigger: Trigger
    """Why there was to be another plan."""
    reason: str
    """What was wrong with the last draft, or which needs nothing makes."""
    cause: Cause | None = None
    """The recovery that it was to carry out."""
    cost: Cost = Cost()
    """What the attempt to draw it was paid for."""


class StepStarted(Record):
    """A step was marked running, before anything was done."""

    event: Literal["step_started"] = "step_started"
    step: StepId
    """As the plan calls it."""
    intent: str
    """What it is for, in words."""
    attempt: int
    """Of this step, from 1."""
    delay: float = 0.0
    """Seconds of backoff before it, jitter not included."""


class AttemptEnded(Record):
    """One try came back."""

    event: Literal["attempt_ended"] = "attempt_ended"
    step: StepId
    """As the plan calls it."""
    attempt: int
    """Of this step, from 1."""
    ok: bool
    """It gave something to verify; whether that is what was promised is said by `judged`."""
    how: str
    """`called`, `recorded` (the journal had the outcome), `adopted` (the effect was seen in the world), `turns`."""
    seconds: float
    """Wall clock, without the backoff."""
    money: float = 0.0
    """What its tool calls cost by their contracts."""
    cost: Cost = Cost()
    """What the turns of its model were paid for."""
    error: str = ""
    """Verbatim, secrets masked; empty when it went well."""
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


class Withheld(Record):
    """A model that had read data wanted a call with arguments that come from nowhere: it was not made."""

    event: Literal["withheld"] = "withheld"
    step: StepId
    """Whose inner loop it was."""
    what: Suspicion
    """The call, what its arguments might have come from, and those that come from nowhere."""


class Judged(Record):
    """The verifier's verdict over one attempt."""

    event: Literal["judged"] = "judged"
    step: StepId
    """Whose attempt it was."""
    judgements: tuple[Judgement, ...]
    """One for each effect that the step promised; without any it is not done."""
    by: tuple[str, ...]
    """On what they rest: `result`, `predicate`, `probe`."""


class Ruled(Record):
    """A judge has decided on a criterion that has no predicate."""

    event: Literal["ruled"] = "ruled"
    criterion: str
    """Its id."""
    text: str
    """The sentence."""
    said: str | None
    """What the judge said; None: it gave no answer."""
    evidence: str
    """What shows it, in the judge's words; or why there is no answer."""
    verdict: Verdict
    """What that comes to."""
    over: dict[ArtifactName, Digest] = Field(default_factory=dict)
    """Exactly what the judge was shown."""
    cost: Cost = Cost()
    """What asking was paid for."""


class Committed(Record):
    """A verified artifact entered the world: the only kind of progress."""

    event: Literal["committed"] = "committed"
    step: StepId | None
    """None: a person has given it."""
    name: ArtifactName
    """Of the artifact; no step owns it."""
    version: int
    """Counts distinct contents under this name."""
    digest: str
    """Of the content, which itself lies in the world or the store."""
    unchanged: bool
    """Same content as before: nothing downstream is invalid (early cutoff)."""
    inputs: dict[ArtifactName, Digest] = Field(default_factory=dict)
    """What it was made from: along these edges it falls."""


class Invalidated(Record):
    """Marks were set."""

    event: Literal["invalidated"] = "invalidated"
    what: Invalidation
    """The marks, and why."""


class Recovered(Record):
    """One failure, what it proved false, and the rung that was chosen, with all the inputs of the choice.

    What the rung then did to the plan is in the `repaired` or `planned` that names this number as its cause; a retry
    and a question to a person leave the plan as it is.
    """

    event: Literal["recovered"] = "recovered"
    number: int = 0
    """Of the recovery on its thread, from 1."""
    classified: Classified
    """Trigger, scope and origin of the failure, by which rule, on what evidence."""
    options: Options
    """What each rung could have done."""
    limits: Limits
    """What was allowed, with what a person had granted."""
    ledger: Ledger
    """As it was when the choice was made."""
    ordered: bool = False
    """A replan was under way."""
    resting: bool = False
    """The endpoint rested already."""
    choice: RungChoice
    """The rung, and those that were passed over."""
    invalidated: tuple[ArtifactName, ...] = ()
    """Finished work that the failure takes down."""
    reused: tuple[ArtifactName, ...] = ()
    """Finished work that it leaves as it is, when it takes some down; else all of it stands."""
    cost: Cost = Cost()
    """What finding out the scope was paid for, when a model was asked."""

    @property
    def cause(self) -> Cause:
        """The recovery in short, for what is done about it."""
        failure = self.classified.failure
        return Cause(
            number=self.number,
            trigger=failure.trigger,
            scope=self.classified.scope,
            origin=self.classified.origin,
            rung=self.choice.rung,
            invalidated=self.invalidated,
        )


class Repaired(Redrawn):
    """A patch or a rewrite changed the plan."""

    event: Literal["repaired"] = "repaired"
    step: StepId | None
    """The step that had failed."""
    rung: str
    """`patch` or `rewrite`."""
    because: str
    """What a patch changed; for a rewrite, what was falsified."""


class Escalated(Record):
    """A person was asked."""

    event: Literal["escalated"] = "escalated"
    question: str
    """As it was put."""
    id: str
    """Of the question; the answer names it."""


class Answered(Record):
    """A person answered."""

    event: Literal["answered"] = "answered"
    id: str
    """Of the question."""
    answer: dict[str, JsonValue]
    """The choice, with whatever it needs."""


class Paused(Record):
    """The run was stopped on request; it is not over, and the next record is of its going on."""

    event: Literal["paused"] = "paused"
    reason: str
    """Who asked, and how."""


class Ended(Record):
    """The run ended."""

    event: Literal["ended"] = "ended"
    status: OutcomeStatus
    """What plan and goal bear out."""
    reason: str
    """In words."""
    verified: int
    """Artifacts newly verified in this run."""
    claimed: OutcomeStatus | None = None
    """How the run meant to end; the status is what plan and goal bear out."""
    missing: tuple[str, ...] = ()
    """What keeps plan and goal from being done."""
    stop: Stop | None = None
    """The bound that ended it, with what was spent."""
    spent: Ledger | None = None
    """What it has cost, its strategy with it; None in records of before this was kept."""


def _of_today(written: object) -> object:
    """Say of a later release's record that it is one, before anything else about it is found to be wrong."""
    if isinstance(written, Mapping) and isinstance(version := written.get("schema_version"), int):
        Record(at=0, schema_version=version)
    return written


TraceRecord = Annotated[
    RunStarted
    | Triaged
    | IntentChanged
    | Planned
    | PlanRejected
    | StepStarted
    | AttemptEnded
    | Nudged
    | Withheld
    | Judged
    | Ruled
    | Committed
    | Invalidated
    | Recovered
    | Repaired
    | Escalated
    | Answered
    | Paused
    | Ended,
    Field(discriminator="event"),
    BeforeValidator(_of_today),
]
"""Any record; read one back with `RECORD.validate_python`."""

RECORD: TypeAdapter[TraceRecord] = TypeAdapter(TraceRecord)


def nudged(messages: Iterable[str], at: float, run: int, step: StepId | None = None) -> list[TraceRecord]:
    """Records of what a model was told; without a step it was the planner."""
    return [Nudged(at=at, run=run, step=step, detector="loop" if step else "plan", message=each) for each in messages]

"""How a run ended, and the check that it may say so: completion is judged against plan and goal, never a claim."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from agent.core.display import table
from agent.core.goal import Goal, grade
from agent.core.limits import Stop
from agent.core.plan import SETTLED, Plan, Step, StepId, StepStatus
from agent.core.predicate import Judgement, Verdict
from agent.core.value import ArtifactName, JsonValue, Value
from agent.core.world import World


class OutcomeStatus(StrEnum):
    """Every run ends as one of these (invariant 6).

    `cancelled` is an end when a person gave the run up, and a pause when it was asked to stop: then it goes on with
    the same plan and the same budgets.
    """

    SATISFIED = "satisfied"
    UNREACHABLE = "unreachable"
    OUT_OF_BUDGET = "out_of_budget"
    NO_PROGRESS = "no_progress"
    CANCELLED = "cancelled"
    HANDED_OVER = "handed_over"


class Delivered(Value):
    """One artifact in the final report."""

    name: ArtifactName
    digest: str
    version: int
    size: int
    verified_by: tuple[str, ...]
    valid: bool
    value: JsonValue = None
    """The body when it is small; None when it lies in the store."""


class Outcome(Value):
    """The end of a run, always with what was achieved."""

    status: OutcomeStatus
    """How it ended."""
    reason: str = ""
    """Why, in a sentence."""
    limit: str = ""
    """Name of the bound that was reached, for a run that one ended: the field of `Limits`."""
    artifacts: dict[ArtifactName, Delivered] = Field(default_factory=dict)
    """What was made, by name, with its value; `valid` says whether it still holds."""
    grades: tuple[Judgement, ...] = ()
    """Every want and criterion with its verdict."""
    unfinished: dict[StepId, str] = Field(default_factory=dict)
    """Live steps that are not done, with their state and reason."""
    skipped: dict[StepId, str] = Field(default_factory=dict)
    """Steps that were left out, with their reason."""
    missing: tuple[str, ...] = ()
    """What keeps plan and goal from being done, one sentence each; finished work that does not hold among it."""
    proof: tuple[str, ...] = ()
    """For unreachable: the needs no tool can produce."""

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        made = [(each.name, f"version {each.version}", each.value) for each in self.artifacts.values() if each.valid]
        lacking = [("missing", each, "") for each in self.missing]
        return table(f"{self.status}: {self.reason}", ("artifact", "", "value"), [*made, *lacking])


class Completion(Value):
    """Whether plan and goal are both done, and what is missing if not."""

    complete: bool
    missing: tuple[str, ...] = ()


def completion(goal: Goal, plan: Plan, world: World, view: Mapping[ArtifactName, JsonValue]) -> Completion:
    """Check the plan (every live step done and its work there, or skipped with a reason) and the goal (every grade).

    An empty plan with an unmet goal is not complete (seed 4: premature completion).
    """
    missing = [f"step {each.id} is {each.status}" for each in plan.live() if each.status not in SETTLED]
    missing += [
        f"step {each.id} was skipped without a reason"
        for each in plan.with_status(StepStatus.SKIPPED)
        if not each.reason.strip()
    ]
    missing += [
        f"step {each.id} is done, and {name}, which it made, does not hold"
        for each in plan.live()
        for name in lacking(each, world)
    ]
    grades = grade(goal, world, view)
    missing += [f"{each.predicate}: {each.verdict}" for each in grades if each.verdict is not Verdict.VERIFIED]
    if not grades:
        missing.append("the goal states nothing that could be verified")
    return Completion(complete=not missing, missing=tuple(missing))


def borne_out(claimed: OutcomeStatus, missing: tuple[str, ...]) -> OutcomeStatus:
    """How a run has really ended: no success while something is missing, whoever claims it."""
    return OutcomeStatus.NO_PROGRESS if claimed is OutcomeStatus.SATISFIED and missing else claimed


def ended_by(stop: Stop) -> OutcomeStatus:
    """How a run ends that a bound has stopped."""
    return OutcomeStatus.NO_PROGRESS if stop.limit == "barren" else OutcomeStatus.OUT_OF_BUDGET


def lacking(step: Step, world: World) -> tuple[ArtifactName, ...]:
    """What a finished step has made and is not there to be shown: done, yet absent from the output (seed 4)."""
    made = step.produces if step.status is StepStatus.DONE else ()
    return tuple(name for name in made if not world.holds(name))


def untold(plan: Plan, outcome: Outcome, text: str) -> tuple[str, ...]:
    """Finished work that a text about the outcome neither shows nor says to be missing; one sentence each.

    What was done and is left out of the report would be missed by nobody.
    """
    told = set(text.replace(",", " ").split())
    shown = {name for name, each in outcome.artifacts.items() if each.valid and name in told}
    return tuple(
        f"step {each.id} made {name}, of which the report says nothing"
        for each in plan.live()
        if each.status is StepStatus.DONE
        for name in each.produces
        if name not in shown and not any(f" {name}, " in sentence for sentence in outcome.missing)
    )


def conclude(
    status: OutcomeStatus,
    reason: str,
    goal: Goal,
    plan: Plan,
    world: World,
    view: Mapping[ArtifactName, JsonValue],
    proof: tuple[str, ...] = (),
) -> Outcome:
    """Collect the end of a run with all partial results (seed 4: always report what was accomplished)."""
    return Outcome(
        status=status,
        reason=reason,
        artifacts={
            each.name: Delivered(
                name=each.name,
                digest=each.digest,
                version=each.version,
                size=each.size,
                verified_by=each.verification.by,
                valid=each.mark is None,
                value=each.value,
            )
            for each in world.artifacts.values()
            if each.name not in goal.given
        },
        grades=grade(goal, world, view),
        unfinished={
            each.id: f"{each.status}" + (f": {each.reason}" if each.reason else "")
            for each in plan.live()
            if each.status not in SETTLED
        },
        skipped={each.id: each.reason for each in plan.with_status(StepStatus.SKIPPED)},
        missing=completion(goal, plan, world, view).missing,
        proof=proof,
    )

"""How a run ended, and the check that it may say so: completion is judged against plan and goal, never a claim."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from agent.core.goal import Goal, grade
from agent.core.plan import SETTLED, Plan, StepId, StepStatus
from agent.core.predicate import Judgement, Verdict
from agent.core.value import ArtifactName, JsonValue, Value
from agent.core.world import World


class OutcomeStatus(StrEnum):
    """Every run ends as one of these (invariant 6)."""

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
    reason: str = ""
    artifacts: dict[ArtifactName, Delivered] = Field(default_factory=dict)
    grades: tuple[Judgement, ...] = ()
    """Every want and criterion with its verdict."""
    unfinished: dict[StepId, str] = Field(default_factory=dict)
    """Live steps that are not done, with their state and reason."""
    skipped: dict[StepId, str] = Field(default_factory=dict)
    proof: tuple[str, ...] = ()
    """For unreachable: the needs no tool can produce."""


class Completion(Value):
    """Whether plan and goal are both done, and what is missing if not."""

    complete: bool
    missing: tuple[str, ...] = ()


def completion(goal: Goal, plan: Plan, world: World, view: Mapping[ArtifactName, JsonValue]) -> Completion:
    """Check the plan (every live step done, or skipped with a reason) and the goal (every grade verified).

    An empty plan with an unmet goal is not complete (seed 4: premature completion).
    """
    missing = [f"step {each.id} is {each.status}" for each in plan.live() if each.status not in SETTLED]
    missing += [
        f"step {each.id} was skipped without a reason"
        for each in plan.with_status(StepStatus.SKIPPED)
        if not each.reason.strip()
    ]
    grades = grade(goal, world, view)
    missing += [f"{each.predicate}: {each.verdict}" for each in grades if each.verdict is not Verdict.VERIFIED]
    if not grades:
        missing.append("the goal states nothing that could be verified")
    return Completion(complete=not missing, missing=tuple(missing))


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
        proof=proof,
    )

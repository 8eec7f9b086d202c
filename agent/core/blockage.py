"""Why can nothing go on? Nothing is ready, nothing is running, and work is left (seed 3): the cycle, or the need.

Only what is in the way by itself is named. A step that waits for one which waits is no cause.
"""

from collections.abc import Iterator, Mapping

from agent.core.failure import ErrorFacts, Failure, Trigger
from agent.core.goal import Goal
from agent.core.outcome import completion
from agent.core.plan import SETTLED, Plan, Step, StepStatus, cycle
from agent.core.value import ArtifactName, JsonValue
from agent.core.world import World

View = Mapping[ArtifactName, JsonValue]

_STUCK = (StepStatus.FAILED, StepStatus.INVALID, StepStatus.SKIPPED)
"""A step in one of these makes nothing until somebody decides on it."""


def blockage(goal: Goal, plan: Plan, world: World, view: View) -> Failure:
    """What is in the way, as a failure of the plan and not of a step."""
    why = _circle(plan) or "; ".join(_causes(plan, world) or completion(goal, plan, world, view).missing)
    left = next((each for each in plan.live() if each.status not in SETTLED), None)
    error = ErrorFacts(kind="need", message=f"nothing is ready, nothing is running: {why}")
    return Failure(trigger=Trigger.BLOCKED, key=left.key if left else "goal", error=error)


def _circle(plan: Plan) -> str:
    loop = cycle(each for each in plan.live() if each.status not in SETTLED)
    return f"steps wait for each other: {' -> '.join(_named(plan.step(each)) for each in loop)}" if loop else ""


def _causes(plan: Plan, world: World) -> tuple[str, ...]:
    """Everything that pending steps wait for in vain, each once."""
    found = (cause for step in plan.with_status(StepStatus.PENDING) for cause in _vain(step, plan, world))
    return tuple(dict.fromkeys(found))


def _vain(step: Step, plan: Plan, world: World) -> Iterator[str]:
    for name in sorted(step.reads()):
        if not world.holds(name) and (why := _never(name, plan, world)):
            yield f"step {_named(step)} needs {name}, {why}"
    for before in step.after:
        predecessor = next((each for each in plan.steps if each.id == before), None)
        if predecessor is None:
            yield f"step {_named(step)} comes after {before!r}, which is no step of the plan"
        elif predecessor.status in (StepStatus.FAILED, StepStatus.INVALID):
            yield f"step {_named(step)} comes after {_told(predecessor)}"


def _never(name: ArtifactName, plan: Plan, world: World) -> str:
    """Why nothing will bring the artifact; empty while a step that waits itself is going to make it."""
    maker, artifact = plan.producer(name), world.artifacts.get(name)
    if maker is None:
        return "which no step makes"
    if maker.status in _STUCK:
        return f"which is for step {_told(maker)}"
    if maker.status is StepStatus.DONE:
        gone = "it is gone" if artifact is None else artifact.mark.cause if artifact.mark else "it does not hold"
        return f"which step {_named(maker)} has made: {gone}"
    return ""


def _told(step: Step) -> str:
    return f"{_named(step)}, which is {step.status}" + (f": {step.reason}" if step.reason else "")


def _named(step: Step) -> str:
    return f"{step.id} ({step.key})"

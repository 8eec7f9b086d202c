"""What does a chosen rung do to the plan, and what does it tell a planner?"""

from agent.core.control import Recovery
from agent.core.move import PlanOrder
from agent.core.plan import Plan, StepStatus

_TOLD = 600
"""Characters of a failure that the next attempt is told."""


def again(plan: Plan, recovery: Recovery) -> Plan:
    """The plan with the failed step to do once more, after its delay."""
    step = recovery.classified.failure.step
    if step is None:
        return plan
    retried = plan.step(step).as_(StepStatus.PENDING)
    told = "" if retried.call else recovery.classified.failure.error.message[:_TOLD]
    return plan.with_steps(retried.model_copy(update={"delay": recovery.choice.delay, "last_failure": told}))


def left(plan: Plan, recovery: Recovery, status: StepStatus) -> Plan:
    """The plan with the failed step out of the way: nothing starts it until somebody decides on it."""
    failure = recovery.classified.failure
    if failure.step is None:
        return plan
    return plan.with_steps(plan.step(failure.step).as_(status, failure.error.message))


def ordered(recovery: Recovery) -> PlanOrder:
    """What a planner is told about the failure: what happened, and what turned out to be untrue."""
    failure = recovery.classified.failure
    falsified = (failure.predicate,) if failure.predicate else recovery.classified.falsified
    return PlanOrder(
        trigger=failure.trigger,
        reason=failure.error.message,
        falsified=falsified,
        failure=failure,
        cause=recovery.cause,
    )

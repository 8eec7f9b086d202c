"""Would a step make a call that was proven wrong? A repair that reproduces the failed call is refused before it runs.

Calls are known as they were planned and as they were sent, so that spelling a reference out makes no other call.
"""

from collections.abc import Iterable, Mapping

from agent.core.failure import ErrorFacts, Failure, Trigger
from agent.core.limits import Ledger
from agent.core.plan import Call, Plan, Step, StepId
from agent.core.reference import UnresolvedReference
from agent.core.value import ArtifactName, Digest, JsonValue, digest

View = Mapping[ArtifactName, JsonValue]


def call_digest(tool: str, args: Mapping[str, JsonValue]) -> Digest:
    """Identity of a call, for the rule that no repair may reproduce a call that failed."""
    return digest([tool, dict(args)])


def as_sent(call: Call, view: View) -> dict[str, JsonValue]:
    """The arguments with references resolved; as planned, where one cannot be."""
    try:
        return call.sent(view)
    except UnresolvedReference:
        return dict(call.args)


def spellings(call: Call, view: View) -> tuple[Digest, ...]:
    """The identities of a call: as planned, and as sent."""
    return tuple(dict.fromkeys([call_digest(call.tool, call.args), call_digest(call.tool, as_sent(call, view))]))


def repeats(call: Call, key: str, ledger: Ledger, view: View) -> bool:
    """Whether the call was proven wrong for these products, however it is spelled."""
    tried = ledger.tried.get(key, ())
    return bool(tried) and not set(spellings(call, view)).isdisjoint(tried)


def noted(ledger: Ledger, step: Step, view: View) -> Ledger:
    """Note that the step's present call was proven wrong."""
    if step.call is None:
        return ledger
    known = ledger.tried.get(step.key, ())
    fresh = tuple(each for each in spellings(step.call, view) if each not in known)
    return ledger.model_copy(update={"tried": {**ledger.tried, step.key: (*known, *fresh)}}) if fresh else ledger


def excused(ledger: Ledger, plan: Plan, steps: Iterable[StepId]) -> Ledger:
    """The ledger after a rewrite has ordered some steps to look again: the world may have moved on since."""
    inside = set(steps)
    keys = {each.key for each in plan.live() if each.id in inside} & ledger.tried.keys()
    if not keys:
        return ledger
    return ledger.model_copy(update={"tried": {key: each for key, each in ledger.tried.items() if key not in keys}})


def reproduced(step: Step, ledger: Ledger) -> Failure | None:
    """The failure of a step that would make a call proven wrong: nothing that it reads has changed since."""
    if step.call is None or not repeats(step.call, step.key, ledger, {}):
        return None
    message = f"{step.call.tool} was proven wrong with these arguments, and nothing that it reads has changed"
    return Failure(
        trigger=Trigger.TASK_FAILURE,
        step=step.id,
        key=step.key,
        tool=step.call.tool,
        args=step.call.args,
        reads=tuple(sorted(step.reads())),
        error=ErrorFacts(kind="refused", type="RepeatedCall", message=message),
    )

"""What a failure proves false: a table over facts, top row first. What it does not know is `None`.

Routing is by scope, never by severity (seed 1): nothing -> retry, call -> patch, precondition -> rewrite or
replan. Three traps are rows of their own: a repeated write that answers "already done" is a success to be
reconciled; a broken precondition can wear a transient type; a time-out of a write proves nothing about it.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.core import signs
from agent.core.failure import Classified, Effect, ErrorFacts, Failure, Origin, Scope, Trigger
from agent.core.predicate import Verdict
from agent.core.value import ArtifactName, Digest, JsonValue, canonical

View = Mapping[ArtifactName, JsonValue]


class Row(NamedTuple):
    """One row of the table: when it applies, and what it concludes."""

    name: str
    applies: Callable[[Failure, View], bool]
    scope: Scope
    origin: Origin


def classify(failure: Failure, mutating: bool, view: View) -> Classified | None:
    """Find the first row that knows the failure.

    Args:
        failure: the facts.
        mutating: whether the call could have changed the world.
        view: what the attempt read; a name the error misses is looked for there.
    """
    row = next((each for each in TABLE if each.applies(failure, view)), None)
    return None if row is None else conclude(failure, row.scope, row.origin, row.name, mutating, view)


def outdated(failure: Failure, current: Mapping[ArtifactName, Digest]) -> bool:
    """Whether the attempt read something that has changed, or is being looked at again, since it started."""
    return any(current.get(name) != made_from for name, made_from in failure.inputs.items())


def conclude(failure: Failure, scope: Scope, origin: Origin, rule: str, mutating: bool, view: View) -> Classified:
    """Turn a scope, wherever it came from, into a classified failure: effect and falsified inputs added."""
    return Classified(
        failure=failure,
        scope=scope,
        origin=origin,
        rule=rule,
        effect=_effect(failure, scope, rule) if mutating else Effect.ABSENT,
        falsified=_falsified(failure, view) if scope is Scope.PRECONDITION else (),
    )


def missing_name(message: str) -> str | None:
    """The column or field an error says is missing, if it says so."""
    found = signs.MISSING_NAME.search(message)
    return (found.group(1) or found.group(2)) if found else None


def _falsified(failure: Failure, view: View) -> tuple[ArtifactName, ...]:
    """The inputs that are no longer true: those that speak of the missing name, else all that were read."""
    read = tuple(name for name in failure.reads if name in view)
    missing = missing_name(failure.error.message)
    speaking = tuple(name for name in read if missing and missing in canonical(view[name]))
    return speaking or read


def _effect(failure: Failure, scope: Scope, rule: str) -> Effect:
    error = failure.error
    if rule == "already done":
        return Effect.UNKNOWN
    if failure.trigger is Trigger.PRECONDITION_VIOLATION or error.kind in ("need", "absent", "refused"):
        return Effect.ABSENT
    if error.kind == "verdict":
        return Effect.PRESENT
    if error.status in signs.REFUSED_STATUS or _types(error) & signs.NOT_SENT_TYPES:
        return Effect.ABSENT
    # what names the call or a precondition as wrong was said before acting; anything else proves nothing
    named = rule not in ("default", "model") and scope is not Scope.NOTHING and error.kind not in ("lost", "loop")
    accident = rule == "type: call" and bool(_types(error) & signs.ACCIDENT_TYPES)
    return Effect.ABSENT if named and not accident and error.status != signs.CONFLICT else Effect.UNKNOWN


def _types(error: ErrorFacts) -> frozenset[str]:
    return frozenset((error.type, *error.bases))


def _known_to_inputs(failure: Failure, view: View) -> bool:
    missing = missing_name(failure.error.message)
    return missing is not None and any(missing in canonical(view[n]) for n in failure.reads if n in view)


def _violated(failure: Failure) -> bool:
    return failure.trigger is Trigger.PRECONDITION_VIOLATION


def _message(pattern: re.Pattern[str]) -> Callable[[Failure, View], bool]:
    return lambda failure, _: bool(pattern.search(failure.error.message))


def _status(statuses: frozenset[int]) -> Callable[[Failure, View], bool]:
    return lambda failure, _: failure.error.status in statuses


def _type(types: frozenset[str]) -> Callable[[Failure, View], bool]:
    return lambda failure, _: bool(_types(failure.error) & types)


def _kind(*kinds: str) -> Callable[[Failure, View], bool]:
    return lambda failure, _: failure.error.kind in kinds


TABLE: tuple[Row, ...] = (
    Row(
        "a precondition that nobody observed",
        lambda failure, _: _violated(failure) and failure.error.message.startswith(Verdict.UNVERIFIABLE),
        Scope.PRECONDITION,
        Origin.OBSERVATION,
    ),
    Row("an observation that changed", _kind("stale"), Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row(
        "a precondition that does not hold",
        lambda failure, _: _violated(failure),
        Scope.PRECONDITION,
        Origin.ENVIRONMENT,
    ),
    # above all words: the evidence of a loop quotes errors that look transient, and time mends no loop
    Row("a loop", _kind("loop"), Scope.CALL, Origin.AGENT),
    Row("unmet need", _kind("need"), Scope.GOAL, Origin.AGENT),
    Row("arguments refused", _kind("refused"), Scope.CALL, Origin.AGENT),
    Row("already done", _message(signs.ALREADY), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("effect absent", _kind("absent"), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("lost", _kind("lost"), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("probe failed", _kind("probe"), Scope.NOTHING, Origin.OBSERVATION),
    Row("effect refuted", _kind("verdict"), Scope.CALL, Origin.AGENT),
    # the plan was built on an observation that had this name: the observation is out of date, not the call
    Row("a name that an input promised is missing", _known_to_inputs, Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row("a name nobody promised", _message(signs.MISSING_NAME), Scope.CALL, Origin.AGENT),
    Row("precondition in words", _message(signs.BROKEN), Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row("status: transient", _status(signs.TRANSIENT_STATUS), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("status: call", _status(signs.CALL_STATUS), Scope.CALL, Origin.AGENT),
    Row("status: precondition", _status(signs.PRECONDITION_STATUS), Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row("time-out", _kind("timeout"), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("locked", _message(signs.LOCKED), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("type: precondition", _type(signs.PRECONDITION_TYPES), Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row("type: transient", _type(signs.TRANSIENT_TYPES), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("time-out in words", _message(signs.TIMED_OUT), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("type: call", _type(signs.CALL_TYPES), Scope.CALL, Origin.AGENT),
)
"""Top row first. Words that name a broken precondition stand above types and statuses that look transient."""

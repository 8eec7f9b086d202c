"""What a failure proves false: a table over facts, top row first. What it does not know is `None`.

Routing is by scope, never by severity (seed 1): nothing -> retry, call -> patch, precondition -> rewrite or
replan. Three traps are rows of their own: a repeated write that answers "already done" is a success to be
reconciled; a broken precondition can wear a transient type; a time-out of a write proves nothing about it.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.core import codes, signs, words
from agent.core.aftermath import left_behind, named
from agent.core.failure import Classified, Effect, ErrorFacts, Failure, Origin, Scope, Trigger
from agent.core.predicate import Verdict
from agent.core.value import ArtifactName, Digest, JsonValue, canonical

View = Mapping[ArtifactName, JsonValue]


class Row(NamedTuple):
    """One row of the table: when it applies, and what it concludes."""

    name: str
    applies: Callable[[Failure, View], bool]
    scope: Scope
    origin: Origin | None = None
    """None: the failure shows it (`blame`)."""


def classify(failure: Failure, mutating: bool, view: View) -> Classified | None:
    """Find the first row that knows the failure.

    Args:
        failure: the facts.
        mutating: whether the call could have changed the world.
        view: what the attempt read; a name the error misses is looked for there.
    """
    row = next((each for each in TABLE if each.applies(failure, view)), None)
    if row is None:
        return None
    origin = blame(failure, row.scope, view) if row.origin is None else row.origin
    return conclude(failure, row.scope, origin, row.name, mutating, view)


def blame(failure: Failure, scope: Scope, view: View) -> Origin:
    """Why it happened, from what the failure shows.

    A call that is wrong was put together wrongly. A fact that is not so and that the attempt had read, or that
    the error says was so once, has changed in the world; one that nothing had read was never looked at.
    """
    if scope in (Scope.CALL, Scope.GOAL):
        return Origin.AGENT
    if scope is Scope.NOTHING or words.CHANGED.search(words.visible(failure.error.message)):
        return Origin.ENVIRONMENT
    return Origin.ENVIRONMENT if _falsified(failure, view) else Origin.OBSERVATION


def outdated(failure: Failure, current: Mapping[ArtifactName, Digest]) -> bool:
    """Whether the attempt read something that has changed, or is being looked at again, since it started."""
    return any(current.get(name) != made_from for name, made_from in failure.inputs.items())


OUTDATED = "its inputs changed while it ran"
"""The rule for an attempt that says nothing new."""


def evidence(failure: Failure, view: View) -> dict[ArtifactName, str]:
    """What a view says about the failure, short enough for a record: it is classified alike over this."""
    missing = missing_name(failure.error.message) or ""
    return {name: missing if missing in canonical(view[name]) else "" for name in failure.reads if name in view}


def conclude(failure: Failure, scope: Scope, origin: Origin, rule: str, mutating: bool, view: View) -> Classified:
    """Turn a scope, wherever it came from, into a classified failure: effect and falsified inputs added."""
    return Classified(
        failure=failure,
        scope=scope,
        origin=origin,
        rule=rule,
        mutating=mutating,
        evidence=evidence(failure, view),
        effect=left_behind(failure, scope, rule) if mutating else Effect.ABSENT,
        falsified=_falsified(failure, view) if scope is Scope.PRECONDITION else (),
    )


def missing_name(message: str) -> str | None:
    """The column or field an error says is missing, if it says so."""
    found = words.MISSING_NAME.search(words.visible(message))
    return (found.group(1) or found.group(2)) if found else None


def _falsified(failure: Failure, view: View) -> tuple[ArtifactName, ...]:
    """The inputs that are no longer true: those that speak of the missing name, else all that were read."""
    read = tuple(name for name in failure.reads if name in view)
    missing = missing_name(failure.error.message)
    speaking = tuple(name for name in read if missing and missing in canonical(view[name]))
    return speaking or read


def _known_to_inputs(failure: Failure, view: View) -> bool:
    missing = missing_name(failure.error.message)
    return missing is not None and any(missing in canonical(view[n]) for n in failure.reads if n in view)


def _violated(failure: Failure) -> bool:
    return failure.trigger is Trigger.PRECONDITION_VIOLATION


def _message(pattern: re.Pattern[str]) -> Callable[[Failure, View], bool]:
    return lambda failure, _: bool(pattern.search(words.visible(failure.error.message)))


def _status(statuses: frozenset[int]) -> Callable[[Failure, View], bool]:
    return lambda failure, _: failure.error.status in statuses


def _type(scope: Scope) -> Callable[[Failure, View], bool]:
    return lambda failure, _: _type_says(failure.error) is scope


def _type_says(error: ErrorFacts) -> Scope | None:
    """What the most specific class says that is known."""
    return next((signs.SCOPES[each] for each in (error.type, *error.bases) if each in signs.SCOPES), None)


def _code(scope: Scope) -> Callable[[Failure, View], bool]:
    return lambda failure, _: codes.scope_of(failure.error.code) is scope


def _done(failure: Failure, _: View) -> bool:
    """First trap: it is there already, so it is looked at and not repaired."""
    error = failure.error
    told = codes.done(error.code) or bool(named(error) & signs.DONE_TYPES)
    return told or bool(words.ALREADY.search(words.visible(error.message)))


def _limited(failure: Failure, _: View) -> bool:
    error = failure.error
    if codes.scope_of(error.code) in (Scope.CALL, Scope.PRECONDITION):
        return False  # a quota that is used up comes with 429 as well, and no waiting brings it back
    told = error.status == signs.RATE_LIMITED or codes.folded(error.code) in codes.LIMITED
    return told or bool(words.LIMITED.search(words.visible(error.message)))


def _gave_up(scope: Scope) -> Callable[[Failure, View], bool]:
    return lambda failure, _: failure.error.kind == "gave_up" and failure.error.code == f"scope:{scope}"


def _kind(*kinds: str) -> Callable[[Failure, View], bool]:
    return lambda failure, _: failure.error.kind in kinds


TABLE: tuple[Row, ...] = (
    Row(
        "a precondition that nobody observed",
        lambda failure, _: _violated(failure) and failure.error.message.startswith(Verdict.UNVERIFIABLE),
        Scope.PRECONDITION,
        Origin.OBSERVATION,
    ),
    # a look that failed is no change: it is looked at again
    Row("probe failed", _kind("probe"), Scope.NOTHING, Origin.OBSERVATION),
    Row("an observation that changed", _kind("stale"), Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row(
        "a precondition that does not hold",
        lambda failure, _: _violated(failure),
        Scope.PRECONDITION,
        Origin.ENVIRONMENT,
    ),
    # above all words: the evidence of a loop quotes errors that look transient, and time mends no loop
    Row("a loop", _kind("loop"), Scope.CALL, Origin.AGENT),
    # likewise: what could not be read may say anything
    Row("replies that could not be read", _kind("invalid"), Scope.NOTHING, Origin.AGENT),
    *(Row(f"given up: {each}", _gave_up(each), each) for each in Scope),
    Row("unmet need", _kind("need"), Scope.GOAL, Origin.AGENT),
    Row("arguments refused", _kind("refused"), Scope.CALL, Origin.AGENT),
    Row("effect absent", _kind("absent"), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("lost", _kind("lost"), Scope.NOTHING, Origin.ENVIRONMENT),
    Row("effect refuted", _kind("verdict"), Scope.CALL, Origin.AGENT),
    Row("already done", _done, Scope.NOTHING),
    # the plan was built on an observation that had this name: the observation is out of date, not the call
    Row("a name that an input promised is missing", _known_to_inputs, Scope.PRECONDITION, Origin.ENVIRONMENT),
    Row("a name nobody promised", _message(words.MISSING_NAME), Scope.CALL),
    Row("refused by a validator", _message(words.REFUSED_CALL), Scope.CALL),
    Row("precondition in words", _message(words.BROKEN), Scope.PRECONDITION),
    Row("call in words", _message(words.CALL), Scope.CALL),
    Row("rate limit", _limited, Scope.NOTHING),
    Row("busy", _message(words.BUSY), Scope.NOTHING),
    Row("code: transient", _code(Scope.NOTHING), Scope.NOTHING),
    Row("code: call", _code(Scope.CALL), Scope.CALL),
    Row("code: precondition", _code(Scope.PRECONDITION), Scope.PRECONDITION),
    Row("status: transient", _status(signs.TRANSIENT_STATUS), Scope.NOTHING),
    Row("status: call", _status(signs.CALL_STATUS), Scope.CALL),
    Row("status: precondition", _status(signs.PRECONDITION_STATUS), Scope.PRECONDITION),
    Row("time-out", _kind("timeout"), Scope.NOTHING),
    Row("not reached", _message(words.UNREACHED), Scope.NOTHING),
    Row("time-out in words", _message(words.TIMED_OUT), Scope.NOTHING),
    Row("for a while", _message(words.AGAIN), Scope.NOTHING),
    Row("type: precondition", _type(Scope.PRECONDITION), Scope.PRECONDITION),
    Row("type: transient", _type(Scope.NOTHING), Scope.NOTHING),
    Row("type: call", _type(Scope.CALL), Scope.CALL),
)
"""Top row first. Words that name a broken precondition stand above codes, statuses and types that look transient."""

"""The recovery ladder: one rung per failure, chosen by scope, each with its own budget (seeds 1 and 2).

An exhausted or inapplicable rung falls upward, never sideways; the same failure never goes down.
"""

from enum import StrEnum

from agent.core.failure import Classified, Effect, Failure, Scope, Trigger
from agent.core.limits import Ledger, Limits
from agent.core.value import Value


class Rung(StrEnum):
    """The five rungs, cheapest first; each costs about an order of magnitude more than the one before."""

    RETRY = "retry"
    PATCH = "patch"
    REWRITE = "rewrite"
    REPLAN = "replan"
    ESCALATE = "escalate"


LADDER = tuple(Rung)

FIRST_RUNG = {
    Scope.NOTHING: Rung.RETRY,
    Scope.CALL: Rung.PATCH,
    Scope.PRECONDITION: Rung.REWRITE,
    Scope.GOAL: Rung.REPLAN,
}


class Options(Value):
    """What each rung could do here; computed by the caller from the plan and the contracts."""

    patchable: bool = False
    """Some other argument, alternative or tool is left, or a model can propose one."""
    rewritable: bool = False
    """Some observation can be made again, or the region can be planned anew."""
    breadth: float = 0.0
    """Share of the live plan a rewrite would redo."""
    repeatable: bool = True
    """The call left no effect behind, or it can be looked at first, or repeating it is harmless."""


class Refusal(Value):
    """A rung that was passed over, and why."""

    rung: Rung
    reason: str


class RungChoice(Value):
    """The rung taken, where the climb began, and what was passed over."""

    rung: Rung
    start: Rung
    passed: tuple[Refusal, ...] = ()
    delay: float = 0.0
    """Seconds to wait before the step is tried again, jitter not included."""
    joined: bool = False
    """A replan was ordered, or the endpoint rests, already; this failure goes along and is not charged to the run."""


def choose_rung(
    classified: Classified,
    options: Options,
    limits: Limits,
    ledger: Ledger,
    ordered: bool = False,
    resting: bool = False,
) -> RungChoice:
    """Climb from the rung the scope names to the first one that is applicable and not used up.

    Args:
        classified: the failure and what it proves false.
        options: what each rung could do.
        limits: what is allowed.
        ledger: what is spent.
        ordered: a replan is under way; what would end there as well joins it.
        resting: the endpoint that refused the call has been given a rest already; the step waits with the others.
    """
    start, key = first_rung(classified, ledger), classified.failure.key
    if resting and start is Rung.RETRY and options.repeatable and not _used_up(Rung.RETRY, key, limits, ledger):
        return RungChoice(rung=Rung.RETRY, start=start, joined=True, delay=_asked(classified, limits))
    if ordered and (classified.outdated or classified.scope in (Scope.PRECONDITION, Scope.GOAL)):
        return RungChoice(rung=Rung.REPLAN, start=start, joined=True)
    passed: list[Refusal] = []
    for rung in LADDER[LADDER.index(start) : -1]:
        reason = _refused(rung, classified, options, limits, ledger)
        if not reason:
            delay = _delay(rung, classified, limits, ledger)
            return RungChoice(rung=rung, start=start, passed=tuple(passed), delay=delay)
        passed.append(Refusal(rung=rung, reason=reason))
    return RungChoice(rung=Rung.ESCALATE, start=start, passed=tuple(passed))


def first_rung(classified: Classified, ledger: Ledger) -> Rung:
    """Where the climb begins: the scope's rung, or higher if this very failure has been there before."""
    if classified.failure.trigger is Trigger.BLOCKED:
        return Rung.REPLAN
    by_scope = FIRST_RUNG[classified.scope]
    before = ledger.failures.get(classified.failure.fingerprint)
    return by_scope if before is None else max(by_scope, _after(Rung(before)), key=LADDER.index)


def spent(ledger: Ledger, choice: RungChoice, classified: Classified) -> Ledger:
    """Charge a rung, before it is carried out, so that a repair that throws is paid for too."""
    failure, rung = classified.failure, choice.rung
    if choice.joined and rung is Rung.REPLAN:
        return ledger
    failures = {**ledger.failures, failure.fingerprint: rung.value}
    charged = ledger.model_copy(update={"failures": failures})
    if rung is Rung.REPLAN:
        return charged.model_copy(update={"replan": ledger.replan + 1, "verified_at_replan": ledger.verified})
    if rung is Rung.ESCALATE:
        return charged.add(escalate=1)
    used: dict[str, int] = getattr(ledger, rung.value)
    paid = charged.model_copy(update={rung.value: {**used, failure.key: used.get(failure.key, 0) + 1}})
    if rung is Rung.REWRITE:
        rewritten = {**ledger.verified_at_rewrite, failure.fingerprint: ledger.verified}
        return paid.model_copy(update={"verified_at_rewrite": rewritten})
    # those who wait together have failed once: each on its own would look like a run without progress
    return paid.add(together=1, barren=-min(1, ledger.barren)) if choice.joined else paid


def _after(rung: Rung) -> Rung:
    """Where a failure begins that is back: a patch that brings it back made no progress, so the next rung is due.

    A rewrite may be done once more, for its region grows.
    """
    return Rung.REWRITE if rung is Rung.PATCH else rung


def _refused(rung: Rung, classified: Classified, options: Options, limits: Limits, ledger: Ledger) -> str:
    """Why a rung below the last cannot be taken; empty when it can."""
    if not options.repeatable:
        left = "unknown and nothing can observe it" if classified.effect is Effect.UNKNOWN else "not what was expected"
        return f"the effect of the call is {left}; doing it again could do it twice"
    used = _exhausted(rung, classified.failure.key, limits, ledger)
    return (
        used
        or _too_long(rung, classified, limits, ledger)
        or _inapplicable(rung, options, limits, ledger)
        or _in_vain(rung, classified.failure, ledger)
    )


def _exhausted(rung: Rung, key: str, limits: Limits, ledger: Ledger) -> str:
    if rung is Rung.REPLAN:
        return f"replan budget used: {ledger.replan} of {limits.replan}" if ledger.replan >= limits.replan else ""
    of_step = _used_up(rung, key, limits, ledger)
    if of_step:
        return of_step
    plural = {"retry": "retries", "patch": "patches", "rewrite": "rewrites"}[rung.value]
    run_limit: int = getattr(limits, f"{plural}_per_run")
    used: dict[str, int] = getattr(ledger, rung.value)
    total = sum(used.values()) - (ledger.together if rung is Rung.RETRY else 0)
    return f"{rung.value} budget of the run used: {total} of {run_limit}" if total >= run_limit else ""


def _used_up(rung: Rung, key: str, limits: Limits, ledger: Ledger) -> str:
    used: dict[str, int] = getattr(ledger, rung.value)
    allowed: int = getattr(limits, rung.value)
    of_step = used.get(key, 0)
    return f"{rung.value} budget of this step used: {of_step} of {allowed}" if of_step >= allowed else ""


def _too_long(rung: Rung, classified: Classified, limits: Limits, ledger: Ledger) -> str:
    """A wait that would outlast the run is no retry."""
    asked, left = classified.failure.error.retry_after or 0.0, limits.seconds - ledger.seconds
    return f"it asks to wait {asked:g} s, and {left:g} s are left" if rung is Rung.RETRY and asked > left else ""


def _inapplicable(rung: Rung, options: Options, limits: Limits, ledger: Ledger) -> str:
    if rung is Rung.PATCH and not options.patchable:
        return "no other argument or tool is left to try"
    if rung is Rung.REWRITE:
        if not options.rewritable:
            return "nothing that the step stands on can be observed or made again"
        if options.breadth > limits.replan_breadth:
            return f"it would redo {options.breadth:.0%} of the plan: what survives is a fragment"
    if rung is Rung.REPLAN and ledger.verified_at_replan == ledger.verified:
        return "no artifact was verified since the last replan: the plan's shape is not the problem"
    return ""


def _in_vain(rung: Rung, failure: Failure, ledger: Ledger) -> str:
    """Whether rewrites have brought this very failure back, so that another is no progress, whatever is allowed.

    One may be done once more, for its region grows; and again when something new was verified since.
    """
    known = failure.fingerprint
    if rung is not Rung.REWRITE or ledger.failures.get(known) != rung or ledger.rewrite.get(failure.key, 0) < 2:
        return ""
    idle = ledger.verified_at_rewrite.get(known) == ledger.verified
    return "the same failure came back after a rewrite, and nothing was verified since: no progress" if idle else ""


def _delay(rung: Rung, classified: Classified, limits: Limits, ledger: Ledger) -> float:
    """Backoff before the next try: doubled each time on one rung, and never less than Retry-After.

    Nor longer than the run may still take: whoever asks for more would keep it from ending.
    """
    if rung not in (Rung.RETRY, Rung.REWRITE):
        return 0.0
    used = ledger.retry if rung is Rung.RETRY else ledger.rewrite
    doublings = min(used.get(classified.failure.key, 0), 64)
    backoff = min(limits.backoff * 2.0**doublings, limits.backoff_cap)
    left = max(0.0, limits.seconds - ledger.seconds)
    return min(max(backoff, _asked(classified, limits)), left)


def _asked(classified: Classified, limits: Limits) -> float:
    return classified.failure.error.retry_after or min(limits.backoff, limits.backoff_cap)

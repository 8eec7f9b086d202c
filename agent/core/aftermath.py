"""What did a write that failed leave behind: nothing, something, or can nobody tell (invariant 2)?

Only a refusal and a request that was never sent prove that nothing was done. A time-out proves nothing, and neither
does an error that the tool's own code has run into: it may have done its work before.
"""

from agent.core import codes, signs, words
from agent.core.contract import Contracts, ToolContract
from agent.core.failure import Classified, Effect, ErrorFacts, Failure, Scope, Trigger


def left_behind(failure: Failure, scope: Scope, rule: str) -> Effect:
    """What is known about the effect of a write that failed, by the row that knew the failure."""
    error = failure.error
    if rule == "already done":
        return Effect.UNKNOWN
    if failure.trigger is Trigger.PRECONDITION_VIOLATION or error.kind in ("need", "absent", "refused"):
        return Effect.ABSENT
    if error.kind == "verdict":
        return Effect.PRESENT
    if error.kind == "probe":
        return Effect.UNKNOWN  # it is the look that was refused, and not the write that had said it was done
    if error.nothing_there or _never_done(error, rule):
        return Effect.ABSENT
    return Effect.ABSENT if _said_before_acting(error, scope, rule) else Effect.UNKNOWN


def repeatable(effect: Effect, contract: ToolContract | None) -> bool:
    """Whether the same work may be tried again, in whatever way, without the risk of doing it twice."""
    if effect is Effect.ABSENT:
        return True
    if contract is None:
        return False
    return contract.idempotent or (effect is Effect.UNKNOWN and contract.observable)


def unsettled(classified: Classified, contract: ToolContract | None) -> bool:
    """Whether a write may stand that must not be made twice: then another call in its place could be the second.

    The same call again finds its own entry in the journal, and looks; another tool or another argument would not.
    """
    harmless = contract is not None and contract.idempotent
    return classified.effect is not Effect.ABSENT and not harmless


def teaches(classified: Classified, contracts: Contracts) -> bool:
    """Whether the failure proves the call wrong, so that another may be made in its place.

    Not while a write of it may stand: whatever is tried instead, now or in a later plan, would be a second one.
    """
    failure = classified.failure
    wrong = classified.scope is Scope.CALL and failure.trigger is Trigger.TASK_FAILURE
    return wrong and not unsettled(classified, contracts.get(failure.tool))


def _never_done(error: ErrorFacts, rule: str) -> bool:
    """Whether the other side was not reached, or says that it did nothing."""
    if codes.absent(error.code) or named(error) & signs.NOT_SENT_TYPES or rule in ("rate limit", "not reached"):
        return True
    # a proxy answers 503 for an answer that it lost on the way
    lost = error.status != signs.RATE_LIMITED and _answer_lost(error)
    return error.status in signs.REFUSED_STATUS and not lost


def _said_before_acting(error: ErrorFacts, scope: Scope, rule: str) -> bool:
    """Whether what names the call or a precondition as wrong was said before acting; anything else proves nothing."""
    if rule in ("default", "model") or scope is Scope.NOTHING or error.kind in ("lost", "loop") or _answer_lost(error):
        return False
    if error.status is not None:
        return error.status != signs.CONFLICT
    return not error.code.startswith("exit:") and not _of_the_tool_itself(error, rule)


def _of_the_tool_itself(error: ErrorFacts, rule: str) -> bool:
    """Whether it was raised in the tool's own process, where it may as well have come after the effect.

    The other side's word for it is another thing, and so is a sentence that says what is wrong with the call: somebody
    wrote it for that. `NothingDone` says it outright.
    """
    accident = not error.code and bool(named(error) & signs.ACCIDENT_TYPES)
    mute = rule.startswith("type: ") and bool(named(error) & signs.OWN_TYPES)
    return accident or mute or (error.code.startswith("E") and "OSError" in named(error))


def _answer_lost(error: ErrorFacts) -> bool:
    """Third trap: a time-out says nothing about what was done, whatever else the error says."""
    return error.kind == "timeout" or bool(words.TIMED_OUT.search(words.visible(error.message)))


def named(error: ErrorFacts) -> frozenset[str]:
    """The class of an exception and its bases."""
    return frozenset((error.type, *error.bases))

"""How long does an endpoint rest after it said that it is asked too much? One cool-down for all steps that call it.

When parallel steps meet a rate limit together, each backing off by itself brings them back in a storm. So the
endpoint rests and the steps wait together. Whoever fails while it rests already goes along: that is one retry of the
step, but not another one of the run (seed 1: the world was unavailable, the request was not wrong).
"""

from agent.core.failure import Classified, Failure, Scope
from agent.core.limits import Ledger
from agent.core.signs import RATE_LIMITED

_LIMITING_STATUS = frozenset({RATE_LIMITED, 503, 529})
"""Statuses by which an endpoint may ask for a rest; but for the first, only when it also says for how long."""


def limited(classified: Classified) -> bool:
    """Whether the failure is the endpoint's wish for a rest, and nothing that the step did."""
    error = classified.failure.error
    if classified.scope is not Scope.NOTHING or classified.outdated:
        return False
    asked = error.status in _LIMITING_STATUS and error.retry_after is not None
    return classified.rule == "rate limit" or error.status == RATE_LIMITED or asked


def endpoint(failure: Failure, ledger: Ledger) -> str:
    """What rests: the host that the error came from, else the one this tool was seen to call, else the tool."""
    return failure.error.endpoint or ledger.endpoints.get(failure.tool, failure.tool)


def resting(ledger: Ledger, tool: str) -> float:
    """Until when the endpoint of a tool rests, in seconds since the epoch; 0 when it does not."""
    return ledger.cooldowns.get(ledger.endpoints.get(tool, tool), 0.0)


def joins(classified: Classified, ledger: Ledger, now: float) -> bool:
    """Whether the endpoint rests already: the call was on its way when another one was refused."""
    return limited(classified) and ledger.cooldowns.get(endpoint(classified.failure, ledger), 0.0) > now


def rested(ledger: Ledger, classified: Classified, seconds: float, now: float) -> Ledger:
    """The ledger with the endpoint at rest for some seconds from now; a longer rest is never cut short."""
    failure = classified.failure
    name = endpoint(failure, ledger)
    until = max(now + seconds, ledger.cooldowns.get(name, 0.0))
    running = {each: end for each, end in ledger.cooldowns.items() if end > now}
    endpoints = {**ledger.endpoints, failure.tool: name}
    return ledger.model_copy(update={"endpoints": endpoints, "cooldowns": {**running, name: until}})

"""What was allowed, and what is spent? Every bound of a run that counts something."""

from agent.core.limits import HARD, Ledger, Limits
from agent.trace.html.model import Spent

_RUNGS = {"retry": "retries_per_run", "patch": "patches_per_run", "rewrite": "rewrites_per_run"}
_PARTS = ("money", "seconds")
"""Not counted in whole numbers."""


def budgets(ledger: Ledger, limits: Limits) -> tuple[Spent, ...]:
    """Rungs first, then the hard bounds; of the present run."""
    return (*_rungs(ledger, limits), *_bounds(ledger, limits))


def _rungs(ledger: Ledger, limits: Limits) -> list[Spent]:
    found = []
    for rung, of_run in _RUNGS.items():
        used: dict[str, int] = getattr(ledger, rung)
        together = ledger.together if rung == "retry" else 0
        found.append(
            _spent(f"{of_run.removesuffix('_per_run')} in the run", sum(used.values()) - together, limits, of_run)
        )
        if used:
            busiest = max(used, key=lambda key: used[key])
            found.append(_spent(f"{of_run.removesuffix('_per_run')} of {busiest}", used[busiest], limits, rung))
    found.append(_spent("replans", ledger.replan, limits, "replan"))
    found.append(_spent("questions to a person", ledger.escalate, limits, "escalate"))
    return found


def _bounds(ledger: Ledger, limits: Limits) -> list[Spent]:
    worded = {"steps": "attempts", "moves": "rounds of the loop", "barren": "failed attempts in a row"}
    return [_spent(worded.get(name, name.replace("_", " ")), getattr(ledger, name), limits, name) for name in HARD]


def _spent(said: str, spent: float, limits: Limits, limit: str) -> Spent:
    return Spent(name=said, spent=spent, allowed=getattr(limits, limit), whole=limit not in _PARTS)

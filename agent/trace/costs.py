"""Which models worked on a run, how often, and over how many tokens? Read from the ledger, by role."""

from agent.core.limits import CALLS, ROLES, Ledger
from agent.core.value import Value


class Paid(Value):
    """What one role has used."""

    role: str
    models: str
    """Names under which they answered; empty when none told one."""
    calls: int
    """Of the executor: its turns."""
    tokens_in: int
    tokens_out: int


def paid(ledger: Ledger) -> tuple[Paid, ...]:
    """Every role that has asked a model, in the order of the loop; empty for a run that needed none."""
    return tuple(
        Paid(
            role=role,
            models=", ".join(ledger.models.get(role, ())),
            calls=getattr(ledger, calls),
            tokens_in=getattr(ledger, f"{role}_tokens_in"),
            tokens_out=getattr(ledger, f"{role}_tokens_out"),
        )
        for role, calls in zip(ROLES, CALLS, strict=True)
        if getattr(ledger, f"{role}_tokens_in") or ledger.models.get(role)
    )

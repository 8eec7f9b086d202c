"""What did a model call cost, and whom is it charged to? Tokens by role and direction, and money by a price table.

What a provider does not say is estimated from the text, and stays marked as an estimate up to the ledger.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import NonNegativeFloat

from agent.core.limits import CALLS, ROLES, Ledger
from agent.core.value import Value

Role = Literal["planner", "classifier", "repairer", "executor", "judge"]

MILLION = 1_000_000
NAMED = 5
"""Models of a role that are remembered by name."""
LONGEST = 100
"""Characters of a model's name: servers say what they like."""


class Price(Value):
    """What one model costs, in any one currency."""

    tokens_in: NonNegativeFloat = 0.0
    """For a million tokens that it reads."""
    tokens_out: NonNegativeFloat = 0.0
    """For a million tokens that it writes."""
    call: NonNegativeFloat = 0.0
    """For every call, whatever its length."""


Prices = Mapping[str, Price]
"""Price by name of the model; `*` is the price of any other."""


class Usage(Value):
    """What a port call cost."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_estimated: int = 0
    """Tokens among them that the provider did not tell; they were counted from the text."""
    model: str = ""
    """Name under which the provider answered, if it did."""
    cost: float | None = None
    """Money, where the provider says it itself; the price table is not asked then."""

    @property
    def tokens(self) -> int:
        """In and out together."""
        return self.tokens_in + self.tokens_out

    @property
    def estimated(self) -> bool:
        """Whether some of the tokens are an estimate."""
        return self.tokens_estimated > 0


class Cost(Value):
    """What models were paid for one thing that was done."""

    calls: int = 0
    tokens: int = 0
    """In and out together."""
    money: float = 0.0
    """As the provider says, else by the price table; 0 for a model that nobody priced."""


def total(one: Usage, other: Usage) -> Usage:
    """Two costs together. A port asks one model, so the last name that is known stands for both."""
    told = [each.cost for each in (one, other) if each.cost is not None]
    return Usage(
        calls=one.calls + other.calls,
        tokens_in=one.tokens_in + other.tokens_in,
        tokens_out=one.tokens_out + other.tokens_out,
        tokens_estimated=one.tokens_estimated + other.tokens_estimated,
        model=other.model or one.model,
        cost=sum(told) if told else None,
    )


def money(usage: Usage, prices: Prices) -> float:
    """What a usage costs: as told, else by the table; a model that nobody priced costs nothing."""
    if usage.cost is not None:
        return usage.cost
    price = _price(usage.model, prices)
    worded = usage.tokens_in * price.tokens_in + usage.tokens_out * price.tokens_out
    return usage.calls * price.call + worded / MILLION


def cost(usage: Usage, prices: Prices) -> Cost:
    """A usage as it stands in a record."""
    return Cost(calls=usage.calls, tokens=usage.tokens, money=money(usage, prices))


def between(before: Ledger, after: Ledger) -> Cost:
    """What models were paid from the one to the other, when no tool was called in between."""
    spent = {name: getattr(after, name) - getattr(before, name) for name in (*CALLS, "tokens", "money")}
    return Cost(calls=sum(spent[name] for name in CALLS), tokens=spent["tokens"], money=spent["money"])


def charged(ledger: Ledger, role: Role, usage: Usage, prices: Prices) -> Ledger:
    """The ledger after a role has used a model."""
    amounts: dict[str, float] = {
        CALLS[ROLES.index(role)]: usage.calls,
        f"{role}_tokens_in": usage.tokens_in,
        f"{role}_tokens_out": usage.tokens_out,
        "tokens": usage.tokens,
        "tokens_estimated": usage.tokens_estimated,
        "money": money(usage, prices),
    }
    known, name = ledger.models.get(role, ()), usage.model[:LONGEST]
    if name and name not in known and len(known) < NAMED:
        ledger = ledger.model_copy(update={"models": {**ledger.models, role: (*known, name)}})
    return ledger.add(**{name: each for name, each in amounts.items() if each})


def _price(model: str, prices: Prices) -> Price:
    """A model's price; providers answer under dated names, so the longest name that it begins with counts too."""
    bare = model.rpartition("/")[2]
    names = sorted((each for each in prices if each and bare.startswith(each.rpartition(":")[2])), key=len)
    found = next((prices[each] for each in (model, bare, *reversed(names)) if each in prices), None)
    return found or prices.get("*") or Price()

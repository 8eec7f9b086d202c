"""The orders that the export service sells rows of. Made up, but the same in every process."""

import random
from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import NamedTuple

QUARTER = "2025-Q3"
WEEKS = tuple(f"2025-W{number}" for number in range(28, 34))
"""The weeks to backfill, ISO numbering."""
LARGE = WEEKS[2]
"""The week of the sale, with several times the usual orders."""

_REGIONS = ("north", "south", "east", "west")


class Order(NamedTuple):
    """One order; money in cents."""

    order: str
    day: str
    region: str
    units: int
    gross: int
    tax: int

    @property
    def net(self) -> int:
        """What the company earned."""
        return self.gross - self.tax


class Total(NamedTuple):
    """Sums over orders."""

    rows: int
    net: int


@cache
def orders_of(week: str) -> tuple[Order, ...]:
    """The orders of a week, in the order they came in."""
    chance = random.Random(week)
    days = sorted(chance.choices(days_of(week), k=chance.randint(90, 140) * (3 if week == LARGE else 1)))
    return tuple(_order(f"{week}-{number:03}", day, chance) for number, day in enumerate(days, 1))


@cache
def days_of(week: str) -> tuple[str, ...]:
    """The seven days of a week."""
    year, number = week.split("-W")
    return tuple(date.fromisocalendar(int(year), int(number), day).isoformat() for day in range(1, 8))


def total(orders: Iterable[Order]) -> Total:
    """Count and net revenue."""
    listed = tuple(orders)
    return Total(len(listed), sum(each.net for each in listed))


def _order(number: str, day: str, chance: random.Random) -> Order:
    gross = chance.randint(500, 50_000)
    return Order(number, day, chance.choice(_REGIONS), chance.randint(1, 9), gross, round(gross * 0.19))

"""What the closing scenario closes: a journal, exchange rates, a stock book, and what is really on the shelves."""

from collections.abc import Mapping
from typing import NamedTuple

DEPOTS = ("north", "south", "west")
PERIOD = "2025-09"


class Entry(NamedTuple):
    """One line of the journal; the amount is in cents of its currency."""

    number: str
    account: str
    currency: str
    amount: int


JOURNAL = (
    Entry("J-001", "sales", "EUR", 120_000),
    Entry("J-002", "sales", "USD", 80_000),
    Entry("J-003", "freight", "EUR", -15_500),
    Entry("J-004", "sales", "CHF", 42_000),
    Entry("J-005", "wages", "EUR", -64_250),
    Entry("J-006", "freight", "USD", -9_900),
)
RATES = {"EUR": 1000, "USD": 920, "CHF": 1040}
"""Thousandths of a euro for one unit of the currency."""
CORRECTED_RATES = {**RATES, "USD": 925}

BOOK: Mapping[str, Mapping[str, int]] = {
    "north": {"bolt": 400, "nut": 380, "washer": 90},
    "south": {"bolt": 120, "nut": 150, "washer": 60},
    "west": {"bolt": 75, "nut": 80, "washer": 0},
}
"""Pieces that should be there, by depot and article."""
SHELVES: Mapping[str, Mapping[str, int]] = {
    "north": {"bolt": 396, "nut": 380, "washer": 92},
    "south": {"bolt": 120, "nut": 141, "washer": 60},
    "west": {"bolt": 75, "nut": 80, "washer": 5},
}
"""Pieces that are there."""


def journal_text(entries: tuple[Entry, ...] = JOURNAL, finished: bool = True) -> str:
    """The journal as its writers leave it; the last line says that nothing follows."""
    lines = [",".join(map(str, each)) for each in entries]
    return "\n".join(["number,account,currency,amount", *lines, *(["end"] if finished else [])]) + "\n"


def balances_of(entries: tuple[Entry, ...], rates: Mapping[str, int]) -> dict[str, int]:
    """Cents of a euro by account."""
    totals: dict[str, int] = {}
    for each in entries:
        totals[each.account] = totals.get(each.account, 0) + each.amount * rates[each.currency] // 1000
    return dict(sorted(totals.items()))


def differences_of(
    book: Mapping[str, Mapping[str, int]], counts: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """What to add to the book, by depot and article; articles that agree are left out."""
    return {
        depot: {name: counts[depot][name] - held for name, held in articles.items() if counts[depot][name] != held}
        for depot, articles in book.items()
    }


def statement_text(balances: Mapping[str, int]) -> str:
    """The balances as Markdown."""
    rows = [f"| {account} | {cents / 100:.2f} |" for account, cents in balances.items()]
    total = f"| total | {sum(balances.values()) / 100:.2f} |"
    return "\n".join([f"# Balances {PERIOD}", "", "| account | EUR |", "|---|---|", *rows, total, ""])


def stocklist_text(book: Mapping[str, Mapping[str, int]], differences: Mapping[str, Mapping[str, int]]) -> str:
    """The stock as it is now, as Markdown."""
    rows = [
        f"| {depot} | {name} | {held + differences[depot].get(name, 0)} |"
        for depot, articles in book.items()
        for name, held in articles.items()
    ]
    return "\n".join([f"# Stock {PERIOD}", "", "| depot | article | pieces |", "|---|---|---|", *rows, ""])

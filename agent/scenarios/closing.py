"""Scenario `closing`: close a month. The ledger and the stock are two branches that share nothing until the end.

    read_journal -> load_ledger --+
    read_rates -------------------+-> balance_accounts -> write_statement --------------------------+
    read_book --------------------+-> compare_counts -> adjust_depot (x 3) -> write_stocklist ------+-> file_closing
    count_depot (x 3) ------------+

Three things go wrong: the journal is read while it is being written, a count is turned down by an answer that
looks like any other, and an adjustment is booked whose answer never arrives.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from agent.core.goal import Criterion, Goal
from agent.scenarios.closing_books import RATES_CORRECTED, STATEMENT, STOCKLIST, Books
from agent.scenarios.closing_data import (
    BOOK,
    DEPOTS,
    JOURNAL,
    PERIOD,
    SHELVES,
    balances_of,
    differences_of,
    statement_text,
    stocklist_text,
)
from agent.scenarios.closing_ledger import ledger_tools
from agent.scenarios.closing_office import Office, serving
from agent.scenarios.closing_stock import filing_tool, stock_tools
from agent.scenarios.loopback import ServiceClient
from agent.scenarios.scenario import ChangeGoal, Conditions, Prepared, Scenario, conditions_in, tally_in

GOAL = Goal(
    text=f"Close {PERIOD}: balance the accounts, correct the stock, and file both",
    wants=("closing",),
    criteria=(
        Criterion(
            id="whole",
            text="every line of the journal is in the ledger",
            predicate="artifacts.ledger.lines == size(artifacts.journal.entries)",
        ),
    ),
    given={"depots": list(DEPOTS), "period": PERIOD},
)


@contextmanager
def _open(workspace: Path, conditions: Conditions, _: ChangeGoal) -> Iterator[Prepared]:
    books = Books(workspace, conditions)
    books.go_on()
    with serving(Office(workspace, tally_in(workspace), conditions.faults)) as port:
        client = ServiceClient(port)
        yield Prepared(
            goal=GOAL,
            tools=[*ledger_tools(books), *stock_tools(books, client), filing_tool(client)],
            notes=(f"stock office: http://127.0.0.1:{port}", f"books: {workspace}"),
        )


def _check(workspace: Path) -> list[str]:
    """Compare books, files and what the office booked with what an undisturbed closing leaves."""
    books = Books(workspace, conditions_in(workspace))
    office = Office(workspace, tally_in(workspace), faults=False)
    rates = json.loads(books.rates.read_text())
    balances, changes = balances_of(JOURNAL, rates), differences_of(BOOK, SHELVES)
    statement, stocklist = statement_text(balances), stocklist_text(BOOK, changes)
    closing: JsonValue = {"period": PERIOD, "statement": statement, "stocklist": stocklist}
    booked = sorted(office.booked("adjustments"), key=str)
    expected = sorted(({"depot": depot, "changes": changes[depot]} for depot in DEPOTS), key=str)
    problems = {
        "the ledger does not hold each line of the journal once": books.ledger() != JOURNAL,
        "the balances are not those of an undisturbed run": books.balances() != balances,
        "the statement does not say what the balances are": not _says(books, STATEMENT, statement),
        "the list of stock is not what was counted": not _says(books, STOCKLIST, stocklist),
        f"the office booked {booked}, not each depot once": booked != expected,
        "the office does not have one closing that is right": office.booked("closings") != [closing],
    }
    return [sentence for sentence, wrong in problems.items() if wrong]


def _says(books: Books, name: str, text: str) -> bool:
    return books.seen(name) == {"file": name, "text": text}


CLOSING = Scenario(
    name="closing",
    description="Close a month, from a half-written journal and an office that loses an answer.",
    open=_open,
    check=_check,
    events=(RATES_CORRECTED,),
)

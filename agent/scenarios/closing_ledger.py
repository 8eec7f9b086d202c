"""The tools of the closing scenario's first branch: from the journal to the statement of balances."""

import json

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from agent.scenarios.closing_books import STATEMENT, Books
from agent.scenarios.closing_data import Entry, balances_of, statement_text
from agent.tools.contracts import contract


def ledger_tools(books: Books) -> list[BaseTool]:
    """All tools of the branch."""
    return [_read_journal(books), _read_rates(books), _load_ledger(books), _balance(books), _write_statement(books)]


def _read_journal(books: Books) -> BaseTool:
    @contract(
        produces="journal",
        effect="read_only",
        ensures="artifacts.journal.finished && size(artifacts.journal.entries) > 0",
        observe=lambda: books.journal.read_text(),
    )
    def read_journal() -> JsonValue:
        """Read the journal of the period."""
        books.tally.add("read_journal")
        return books.read_journal()

    return read_journal


def _read_rates(books: Books) -> BaseTool:
    @contract(
        produces="rates",
        effect="read_only",
        ensures="size(artifacts.rates) > 0",
        observe=lambda: json.loads(books.rates.read_text()),
    )
    def read_rates() -> dict[str, int]:
        """Read the exchange rates."""
        books.tally.add("read_rates")
        found: dict[str, int] = json.loads(books.rates.read_text())
        return found

    return read_rates


def _load_ledger(books: Books) -> BaseTool:
    @contract(
        produces="ledger",
        args={"entries": "{{journal.entries}}"},
        ensures="artifacts.ledger.lines == size(artifacts.journal.entries)",
        effect="mutating",
        observe=books.loaded,
    )
    def load_ledger(entries: list[list[str]]) -> JsonValue:
        """Load the journal into the ledger."""
        books.tally.add("load_ledger")
        books.load(Entry(number, account, currency, int(amount)) for number, account, currency, amount in entries)
        return books.loaded()

    return load_ledger


def _balance(books: Books) -> BaseTool:
    def seen() -> JsonValue:
        return dict(books.balances()) or None

    @contract(
        needs="ledger rates",
        produces="balances",
        ensures="artifacts.ledger.accounts.all(a, a in artifacts.balances)",
        effect="mutating",
        idempotent=True,
        observe=seen,
    )
    def balance_accounts(rates: dict[str, int]) -> JsonValue:
        """Balance the accounts in one currency."""
        books.tally.add("balance_accounts")
        books.keep(balances_of(books.ledger(), rates))
        return seen()

    return balance_accounts


def _write_statement(books: Books) -> BaseTool:
    @contract(
        produces="statement",
        ensures="artifacts.balances.all(a, artifacts.statement.text.contains('| ' + a + ' |'))",
        effect="mutating",
        idempotent=True,
        observe=lambda: books.seen(STATEMENT),
    )
    def write_statement(balances: dict[str, int]) -> JsonValue:
        """Write the statement of balances."""
        books.tally.add("write_statement")
        return books.write(STATEMENT, statement_text(balances))

    return write_statement

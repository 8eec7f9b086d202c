"""The eleven tools of the closing scenario. Those of the ledger and those of the stock share nothing."""

import json

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from agent.scenarios.closing_books import STATEMENT, STOCKLIST, Books
from agent.scenarios.closing_data import (
    DEPOTS,
    Entry,
    balances_of,
    differences_of,
    statement_text,
    stocklist_text,
)
from agent.scenarios.export_service import ExportClient
from agent.tools.contracts import contract

Pieces = dict[str, int]


def closing_tools(books: Books, office: ExportClient) -> list[BaseTool]:
    """All tools: of the ledger, of the stock, and the one that needs both."""
    return [*_ledger_tools(books), *_stock_tools(books, office), _file_closing(office)]


def _ledger_tools(books: Books) -> list[BaseTool]:
    return [_read_journal(books), _read_rates(books), _load_ledger(books), _balance(books), _write_statement(books)]


def _stock_tools(books: Books, office: ExportClient) -> list[BaseTool]:
    return [_read_book(books), _count_depot(office), _compare(), _adjust_depot(office), _write_stocklist(books)]


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
    def read_rates() -> Pieces:
        """Read the exchange rates."""
        books.tally.add("read_rates")
        found: Pieces = json.loads(books.rates.read_text())
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
    def balance_accounts(rates: Pieces) -> JsonValue:
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
    def write_statement(balances: Pieces) -> JsonValue:
        """Write the statement of balances."""
        books.tally.add("write_statement")
        return books.write(STATEMENT, statement_text(balances))

    return write_statement


def _read_book(books: Books) -> BaseTool:
    @contract(produces="book", effect="read_only", ensures="size(artifacts.book) > 0", observe=books.book)
    def read_book() -> dict[str, Pieces]:
        """Read the stock book."""
        books.tally.add("read_book")
        return books.book()

    return read_book


def _count_depot(office: ExportClient) -> BaseTool:
    @contract(
        produces="count_{depot}",
        each={"depot": "depots"},
        effect="read_only",
        ensures="result.depot == args.depot && size(result.pieces) > 0",
    )
    def count_depot(depot: str) -> JsonValue:
        """Have the shelves of one depot counted."""
        return office.get("/counts", depot=depot)

    return count_depot


def _compare() -> BaseTool:
    @contract(
        produces="differences",
        args={"counts": {depot: f"{{{{count_{depot}.pieces}}}}" for depot in DEPOTS}},
        effect="read_only",
        ensures="artifacts.book.all(d, d in artifacts.differences)",
    )
    def compare_counts(book: dict[str, Pieces], counts: dict[str, Pieces]) -> dict[str, Pieces]:
        """Compare the counts with the stock book."""
        return differences_of(book, counts)

    return compare_counts


def _adjust_depot(office: ExportClient) -> BaseTool:
    def booked(depot: str) -> JsonValue:
        found = office.get("/adjustments")
        assert isinstance(found, list)
        return next((each for each in reversed(found) if isinstance(each, dict) and each["depot"] == depot), None)

    @contract(
        needs="differences",
        produces="adjusted_{depot}",
        each={"depot": "depots"},
        args={"differences": "{{differences}}"},
        ensures="result.depot == args.depot && result.changes == args.differences[args.depot]",
        effect="mutating",
        observe=booked,
    )
    def adjust_depot(depot: str, differences: dict[str, Pieces]) -> JsonValue:
        """Book the differences of one depot."""
        body: JsonValue = {"depot": depot, "changes": dict(differences[depot])}
        office.post("/adjustments", body)
        return body

    return adjust_depot


def _write_stocklist(books: Books) -> BaseTool:
    @contract(
        needs="book differences adjusted_*",
        produces="stocklist",
        ensures="artifacts.book.all(d, artifacts.stocklist.text.contains('| ' + d + ' |'))",
        effect="mutating",
        idempotent=True,
        observe=lambda: books.seen(STOCKLIST),
    )
    def write_stocklist(book: dict[str, Pieces], differences: dict[str, Pieces]) -> JsonValue:
        """Write the list of stock."""
        books.tally.add("write_stocklist")
        return books.write(STOCKLIST, stocklist_text(book, differences))

    return write_stocklist


def _file_closing(office: ExportClient) -> BaseTool:
    def filed(period: str) -> JsonValue:
        found = office.get("/closings")
        assert isinstance(found, list)
        return next((each for each in reversed(found) if isinstance(each, dict) and each["period"] == period), None)

    @contract(
        needs="period",
        produces="closing",
        args={"statement": "{{statement.text}}", "stocklist": "{{stocklist.text}}"},
        ensures="artifacts.closing.statement == args.statement && artifacts.closing.stocklist == args.stocklist",
        effect="mutating",
        observe=filed,
    )
    def file_closing(period: str, statement: str, stocklist: str) -> JsonValue:
        """File the closing of the period."""
        body: JsonValue = {"period": period, "statement": statement, "stocklist": stocklist}
        office.post("/closings", body)
        return body

    return file_closing

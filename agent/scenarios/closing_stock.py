"""The tools of the closing scenario's second branch, from the stock book to the list of stock, and the last step."""

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from agent.scenarios.closing_books import STOCKLIST, Books
from agent.scenarios.closing_data import DEPOTS, differences_of, stocklist_text
from agent.scenarios.loopback import ServiceClient
from agent.tools.contracts import contract

Pieces = dict[str, int]
"""Pieces by article."""


def stock_tools(books: Books, office: ServiceClient) -> list[BaseTool]:
    """All tools of the branch."""
    return [_read_book(books), _count_depot(office), _compare(), _adjust_depot(office), _write_stocklist(books)]


def _read_book(books: Books) -> BaseTool:
    @contract(produces="book", effect="read_only", ensures="size(artifacts.book) > 0", observe=books.book)
    def read_book() -> dict[str, Pieces]:
        """Read the stock book."""
        books.tally.add("read_book")
        return books.book()

    return read_book


def _count_depot(office: ServiceClient) -> BaseTool:
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


def _adjust_depot(office: ServiceClient) -> BaseTool:
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


def filing_tool(office: ServiceClient) -> BaseTool:
    """The one tool that needs both branches."""

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

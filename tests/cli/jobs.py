"""Real tools for the command line's tests. They read and write files of the working directory."""

import json
from collections.abc import Callable
from pathlib import Path

from langchain_core.tools import BaseTool

from agent.tools.contracts import contract

during: Callable[[], object] = list
"""What happens while something is written."""


@contract(effect="read_only", produces="numbers", ensures="size(artifacts.numbers) > 0")
def read_numbers() -> list[int]:
    """Read the numbers."""
    numbers: list[int] = json.loads(Path("numbers.json").read_text())
    return numbers


def total_on_disk() -> object:
    path = Path("total.json")
    return json.loads(path.read_text()) if path.exists() else None


@contract(needs="numbers", produces="total", ensures="artifacts.total.sum == result.sum", observe=total_on_disk)
def write_total(numbers: list[int]) -> dict[str, int]:
    """Write the total."""
    note("write_total")
    total = {"sum": sum(numbers)}
    Path("total.json").write_text(json.dumps(total))
    return total


@contract(needs="total", produces="notice", observe=lambda: Path("notice").exists() or None)
def post_notice(total: dict[str, int]) -> bool:
    """Post a notice about the total."""
    note("post_notice")
    Path("notice").write_text(str(total))
    return True


@contract(effect="read_only", needs="total", produces="gate")
def pass_gate(total: dict[str, int]) -> str:
    """Wait at the gate."""
    Path("at-the-gate").write_text("here")
    return Path("gate").read_text()  # a named pipe holds whoever opens it, until somebody writes


@contract(produces="receipt")
def charge_card() -> str:
    """Charge the card."""
    note("charge_card")
    if Path("bank-is-down").exists():
        raise ConnectionResetError("the bank hung up")
    return "paid"


@contract(needs="chicken", produces="egg")
def lay(chicken: str) -> str:
    """Lay an egg."""
    return chicken


@contract(needs="egg", produces="chicken")
def hatch(egg: str) -> str:
    """Hatch a chicken."""
    return egg


@contract(produces="numbers")
def invent_numbers() -> list[int]:
    """Invent numbers."""
    return [4]


def note(tool: str) -> None:
    with Path("calls").open("a") as log:
        log.write(f"{tool}\n")
    during()


def bad_predicate() -> list[BaseTool]:
    def broken() -> int:
        """Break."""
        return 0

    return [contract(produces="x", ensures="artifacts.x ==> 3")(broken)]


def bug() -> list[BaseTool]:
    raise RuntimeError("nobody\nexpected this")


TOOLS = [read_numbers, write_total, post_notice, pass_gate, charge_card]
CIRCLE = [lay, hatch]
RIVALS = [read_numbers, invent_numbers, write_total]
TWINS = [read_numbers, read_numbers]

"""Read numbers, add them up, pay the sum; a desk that is closed until somebody opens it; a wire that takes its time.

They work in the folder of the server. What a write did lies in `effects.txt`, a line for each time; whoever waits
for the wire, or keeps it, names it after the thread's own fact, so that tests do not meet each other.
"""

import asyncio
from pathlib import Path

from langchain_core.tools import tool

from agent import contract

EFFECTS = Path("effects.txt")
POLLS, PAUSE = 6000, 0.01


def _note(effect: str, about: str) -> None:
    with EFFECTS.open("a") as book:
        book.write(f"{effect} {about}\n")


@contract(effect="read_only")
@tool
def numbers() -> list[int]:
    """Fetch more numbers than fit into state."""
    return list(range(5000))


@contract(effect="read_only", ensures="artifacts.total > 0")
@tool
async def total(numbers: list[int]) -> int:
    """Add up."""
    return sum(numbers)


@contract(produces="receipt", ensures="artifacts.receipt.paid == artifacts.total", idempotent=False)
@tool
def pay(total: int, purse: str) -> dict:
    """Pay the sum out of a purse; doing it twice costs twice."""
    _note("paid", purse)
    return {"paid": total}


@contract(produces="approval", effect="read_only")
@tool
def approve(total: int, purse: str) -> str:
    """Ask the desk."""
    if not Path(f"open-{purse}").exists():
        raise PermissionError("the desk is closed: access denied")
    return "approved"


@contract(produces="stamp", effect="read_only")
@tool
def stamp(numbers: list[int], purse: str) -> str:
    """Ask for a stamp."""
    if not Path(f"open-{purse}").exists():
        raise PermissionError("the stamp is locked away: access denied")
    return "stamped"


@contract(produces="wire", idempotent=False)
@tool
async def wire(purse: str) -> str:
    """Wire money; the answer comes when somebody lets it go."""
    _note("wired", purse)
    for _ in range(POLLS):
        if Path(f"go-{purse}").exists():
            return "wired"
        await asyncio.sleep(PAUSE)
    raise TimeoutError("nobody let the wire go")


TOOLS = [numbers, total, pay, approve, stamp, wire]

"""The tools of the golden runs. They write into files of the working directory, as the world of a run."""

import os
import signal
from pathlib import Path

from agent.tools.contracts import contract

TEXT = "é\0"


@contract(effect="read_only", produces="orders", ensures="size(artifacts.orders) == 800")
def read_orders() -> list[str]:
    """Read the orders, too many to travel in state. Fails as long as the network is down, which it is once."""
    if Path("network-is-down").exists():
        Path("network-is-down").unlink()
        raise ConnectionError("the network is down")
    return [f"order {number}" for number in range(800)]


@contract(needs="orders", produces="reservation", idempotent=False)
def reserve(orders: list[str]) -> dict[str, object]:
    """Reserve the goods. Nothing can tell afterwards whether it happened."""
    note("reserve")
    return {"count": len(orders), "text": TEXT}


@contract(
    needs="reservation",
    produces="parcel",
    ensures="artifacts.parcel == true",
    idempotent=False,
    observe=lambda: Path("parcel").exists() or None,
)
def ship(reservation: dict[str, object]) -> bool:
    """Send the parcel."""
    note("ship")
    Path("parcel").write_text(str(reservation["count"]))
    if Path("power-fails").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return True


@contract(effect="read_only", needs=["parcel", "orders"], produces="report", ensures="artifacts.report == 800")
def report(parcel: bool, orders: list[str]) -> int:
    """Sum up."""
    return len(orders) if parcel else 0


@contract(produces="receipt", idempotent=False)
def pay() -> str:
    """Pay. The bank hangs up on it."""
    note("pay")
    raise ConnectionResetError("the bank hung up")


def note(tool: str) -> None:
    """Write the call into the book."""
    with Path("calls").open("a") as book:
        book.write(f"{tool}\n")


TOOLS = [read_orders, reserve, ship, report, pay]

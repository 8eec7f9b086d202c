"""The simulated world: a shop whose tools are of every class, whose effects lie in a ledger, and which misbehaves.

    order -> stock -> parcel_a, parcel_b, parcel_c -> label --+
      +----> charge --+---------------------------------------+-> ship -> mail (by a model, with tools) --+
    prices -----------+-> invoice ----------------------------------------------------------------------- +-> report
    voucher ----------------------------------------------------------------------------------------------+

What is demanded of a tool that must not act twice: that its effect can be looked at, or that a person can be
asked. A transport that delivers one request twice is beyond any caller, so it does so (fault `twice`) only to
tools that may be called twice as well.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from langchain_core.tools import tool

from agent import contract
from tests.simulation.kills.ledger import Ledger
from tests.simulation.kills.script import Script

BOXES = ("a", "b", "c")
ONCE = ("charge", "ship", "send_mail", *(f"parcel_{box}" for box in BOXES))
"""Effects that cost money when they happen twice."""
PRICED = ("prices", "invoice", "report")
"""What is made from the prices, which somebody may change."""
OLD, NEW = 100, 110
TIMEOUT = 1.0
"""Seconds that a call may take where one is slow on purpose."""
SLOW = 1.3


class HttpError(RuntimeError):
    """An answer with a status, as a client raises it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status_code = status


BEFORE: dict[str, Callable[[], Exception]] = {
    "refused": lambda: HttpError(503, "service unavailable"),
    "limited": lambda: HttpError(429, "too many requests"),
    "reset": lambda: ConnectionResetError("connection reset by peer"),
}
"""Instead of the effect."""
AFTER: dict[str, Callable[[], Exception]] = {
    "lost": lambda: ConnectionResetError("connection reset by peer"),
    "gateway": lambda: HttpError(504, "gateway timeout"),
}
"""Instead of the answer."""


def product_of(effect: str) -> str:
    """The artifact of the step that has an effect."""
    return "mail" if effect == "send_mail" else effect


class Shop:
    """The tools, and what they do to the world."""

    def __init__(self, script: Script, ledger: Ledger, reach: Callable[[str, str], None]) -> None:
        """Args: what goes wrong; what is noted; what hears of each effect, `before` and `after` it."""
        self.ledger = ledger
        self.change_goal: Callable[[], None] = lambda: None
        self._faults = {(each.tool, each.nth): each.kind for each in script.faults}
        self._reach = reach

    @property
    def cents(self) -> int:
        """The price as it stands in the world."""
        return NEW if self.ledger.has("edit") else OLD

    def acts(self, name: str, kind: str = "effect", **made: Any) -> Any:
        """One request: what may go wrong before, the effect, what may go wrong after."""
        fault = self._begins(name)
        if fault == "slow":
            time.sleep(SLOW)
        return self._finishes(name, kind, fault, made)

    async def acts_natively(self, name: str, **made: Any) -> Any:
        """The same for a tool that is a coroutine, which ends where it stands when its time is over."""
        fault = self._begins(name)
        if fault == "slow":
            await asyncio.sleep(SLOW)
        return self._finishes(name, "effect", fault, made)

    def sees(self, name: str) -> dict[str, Any] | None:
        """What a look finds of an effect."""
        return {"done": name} if self.ledger.counts("effect")[name] else None

    def _begins(self, name: str) -> str | None:
        fault = self._faults.get((name, self.ledger.note("call", name)))
        if fault == "edit":
            self.ledger.note("edit")
        if fault == "goal":
            self.ledger.note("goal meant")
            self.change_goal()
            self.ledger.note("goal told")
        if fault in BEFORE:
            raise BEFORE[fault]()
        return fault

    def _finishes(self, name: str, kind: str, fault: str | None, made: dict[str, Any]) -> Any:
        self._reach("effect", "before")
        self.ledger.note(kind, name, str(made.get("cents", "")))
        if fault == "twice":
            self.ledger.note(kind, name, str(made.get("cents", "")))
        self._reach("effect", "after")
        if fault in AFTER:
            raise AFTER[fault]()
        return "<html>it works</html>" if fault == "malformed" else {"done": name, **made}

    def tools(self) -> list[Any]:
        """All of them."""
        return [*self._readers(), *self._takers(), *self._writers(), *self._senders()]

    def _readers(self) -> Iterator[Any]:
        @contract(effect="read_only", ensures="artifacts.order.done == 'order'")
        @tool
        def order() -> dict:
            """Read the order."""
            return self.acts("order", "read", items=list(range(200)))

        @contract(effect="read_only", ensures="artifacts.prices.cents > 0", observe=lambda: self._priced())
        @tool
        def prices() -> dict:
            """Read the price list."""
            return self.acts("prices", "read", cents=self.cents)

        @contract(effect="read_only", ensures="artifacts.stock.done == 'stock'")
        @tool
        def stock(order: dict) -> dict:
            """Read the stock."""
            return self.acts("stock", "read")

        @contract(
            effect="read_only",
            args={"cents": "{{invoice.cents}}"},
            needs="mail invoice voucher",
            ensures="artifacts.report.done == 'report'",
        )
        @tool
        def report(cents: int) -> dict:
            """Sum up."""
            return self.acts("report", "read", cents=cents)

        yield from (order, prices, stock, report)

    def _priced(self) -> dict[str, Any]:
        return {"done": "prices", "cents": self.cents}

    def _takers(self) -> Iterator[Any]:
        @contract(ensures="artifacts.charge.done == 'charge'", idempotent=False)
        @tool
        def charge(order: dict) -> dict:
            """Charge the card. Nothing can tell afterwards whether it happened."""
            return self.acts("charge")

        @contract(
            needs="stock",
            produces="parcel_{box}",
            each={"box": "boxes"},
            ensures="result.done == 'parcel_' + args.box",
            idempotent=False,
            observe=lambda box: self.sees(f"parcel_{box}"),
        )
        @tool
        def parcel(box: str) -> dict:
            """Pack a box."""
            return self.acts(f"parcel_{box}")

        yield from (charge, parcel)

    def _writers(self) -> Iterator[Any]:
        @contract(ensures="artifacts.voucher.done == 'voucher'", idempotent=True)
        @tool
        def voucher() -> dict:
            """Issue the voucher of this order; the service knows a second request by the order's number."""
            return self.acts("voucher")

        @contract(needs="parcel_*", ensures="artifacts.label.done == 'label'", idempotent=True)
        @tool
        def label() -> dict:
            """Print a label; another one does no harm."""
            return self.acts("label")

        @contract(
            needs="charge",
            args={"cents": "{{prices.cents}}"},
            ensures="artifacts.invoice.cents == args.cents",
            idempotent=True,
            observe=self._invoiced,
        )
        @tool
        def invoice(cents: int) -> dict:
            """Write the invoice, over the one that may be there."""
            return self.acts("invoice", cents=cents)

        yield from (voucher, label, invoice)

    def _invoiced(self) -> dict[str, Any] | None:
        written = [each for each in self.ledger.lines() if each[:2] == ("effect", "invoice")]
        return {"done": "invoice", "cents": int(written[-1].detail)} if written else None

    def _senders(self) -> Iterator[Any]:
        @contract(ensures="artifacts.ship.done == 'ship'", idempotent=False, observe=partial(self.sees, "ship"))
        @tool
        async def ship(charge: dict, label: dict) -> dict:
            """Send the parcel."""
            return await self.acts_natively("ship")

        # planned like any tool; `Instructing` turns its step into an instruction for the inner loop
        @contract(ensures="artifacts.mail.done == 'mail'", idempotent=False)
        @tool
        def mail(ship: dict) -> dict:
            """Tell the customer."""
            raise AssertionError("an instruction, and no call")

        @contract(effect="read_only", produces="looked_up")
        @tool
        def address(order: int) -> str:
            """Look up the customer's address."""
            return str(self.acts("address", "read")["done"])

        @tool
        def send_mail(to: str) -> str:
            """Send a mail."""
            return str(self.acts("send_mail")["done"])

        yield from (ship, mail, address, send_mail)

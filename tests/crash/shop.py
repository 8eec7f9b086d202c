"""A process that can be killed anywhere: a shop whose effects are lines in a book that no crash takes back."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.tools import tool
from langgraph.types import Command

from agent import Goal, build_graph, contract
from agent.core.record import Committed
from agent.store.checkpoints import async_saver, open_saver

GOAL = {"wants": ["report"]}
CONFIG: Any = {"configurable": {"thread_id": "order-42"}}
ONCE = ("charge", "reserve", "ship", "mail")
"""Effects that cost money when they happen twice."""


class Kill(NamedTuple):
    """Where a process ends itself: the n-th time it comes by."""

    tool: str
    place: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.tool}:{self.place}:{self.nth}"


class Shop:
    """The tools, the book they write to, and the place where the process dies."""

    def __init__(self, folder: Path, kill: Kill | None) -> None:
        self.book = folder / "book.txt"
        self._kill = kill
        self._passed: Counter[tuple[str, str]] = Counter()

    def counts(self) -> Counter[str]:
        return Counter(self.book.read_text().split() if self.book.exists() else ())

    def passes(self, name: str, place: str) -> None:
        self._passed[name, place] += 1
        if self._kill == Kill(name, place, self._passed[name, place]):
            os.kill(os.getpid(), signal.SIGKILL)

    def does(self, name: str, seconds: float = 0.01) -> dict[str, Any]:
        self.passes(name, "before")
        time.sleep(seconds)
        with self.book.open("a") as book:
            book.write(f"{name}\n")
        self.passes(name, "after")
        return self.result(name)

    def sees(self, name: str) -> dict[str, Any] | None:
        self.passes(name, "probe")
        return self.result(name) if self.counts()[name] else None

    def result(self, name: str) -> dict[str, Any]:
        return {"done": name}

    def tools(self) -> list[Any]:
        return [*self._readers(), *self._takers(), *self._senders()]

    def _readers(self) -> list[Any]:
        @contract(effect="read_only")
        @tool
        def order() -> dict:
            """Read the order."""
            return self.does("order")

        @contract(effect="read_only")
        @tool
        def stock(order: dict) -> dict:
            """Read the stock."""
            return self.does("stock", 0.04)

        @contract(effect="read_only")
        @tool
        def report(mail: dict, stock: dict) -> dict:
            """Sum up."""
            return self.does("report")

        return [order, stock, report]

    def _takers(self) -> list[Any]:
        @contract(ensures="artifacts.charge.done == 'charge'", idempotent=False)
        @tool
        def charge(order: dict) -> dict:
            """Charge the card. Nothing can tell afterwards whether it happened."""
            return self.does("charge", 0.03)

        @contract(
            ensures="artifacts.reserve.done == 'reserve'", idempotent=False, observe=partial(self.sees, "reserve")
        )
        @tool
        async def reserve(stock: dict) -> dict:
            """Reserve the goods."""
            return self.does("reserve")

        return [charge, reserve]

    def _senders(self) -> list[Any]:
        @contract(ensures="artifacts.label.done == 'label'", idempotent=True)
        @tool
        def label(reserve: dict) -> dict:
            """Print a label; another one does no harm."""
            return self.does("label")

        @contract(ensures="artifacts.ship.done == 'ship'", idempotent=False, observe=partial(self.sees, "ship"))
        @tool
        def ship(charge: dict, label: dict) -> dict:
            """Send the parcel."""
            return self.does("ship", 0.02)

        @contract(ensures="artifacts.mail.done == 'mail'", idempotent=False, observe=partial(self.sees, "mail"))
        @tool
        def mail(ship: dict) -> dict:
            """Tell the customer."""
            return self.does("mail")

        return [label, ship, mail]


def work(folder: Path, kill: Kill | None, again: bool, native: bool) -> None:
    """One process's life: start or go on, answer like somebody who looks into the book, say how it ended.

    Args:
        folder: where the checkpoints, the book and the result lie.
        kill: where to die; None to live.
        again: state the goal again, rather than to take up the last checkpoint.
        native: through `ainvoke`.
    """
    shop = Shop(folder, kill)
    final, held, before = asyncio.run(_native(shop, folder, again)) if native else _blocking(shop, folder, again)
    after = shop.counts()
    result = {
        "status": final["outcome"].status,
        "values": {name: each.value for name, each in final["outcome"].artifacts.items()},
        "committed": Counter(each.name for each in final["trace"] if isinstance(each, Committed)),
        "remade": [name for name in held if after[name] != before[name]],
    }
    (folder / "result.json").write_text(json.dumps(result))


def _blocking(shop: Shop, folder: Path, again: bool) -> tuple[Any, list[str], Counter[str]]:
    saver = open_saver(folder / "shop.db")
    with closing(saver.conn):
        graph = build_graph(shop.tools(), checkpointer=saver)
        state, before = graph.get_state(CONFIG), shop.counts()
        final = graph.invoke(_first(state, again), CONFIG)
        while "__interrupt__" in final:
            final = graph.invoke(Command(resume=_answers(shop, final["__interrupt__"])), CONFIG)
    return final, _held(state), before


async def _native(shop: Shop, folder: Path, again: bool) -> tuple[Any, list[str], Counter[str]]:
    async with async_saver(folder / "shop.db") as saver:
        graph = build_graph(shop.tools(), checkpointer=saver)
        state, before = await graph.aget_state(CONFIG), shop.counts()
        final = await graph.ainvoke(_first(state, again), CONFIG)
        while "__interrupt__" in final:
            final = await graph.ainvoke(Command(resume=_answers(shop, final["__interrupt__"])), CONFIG)
    return final, _held(state), before


def _first(state: Any, again: bool) -> Any:
    return {"goal": Goal.model_validate(GOAL)} if again or not state.next or not state.values.get("goal") else None


def _held(state: Any) -> list[str]:
    """Artifacts that were verified, and durably so, when the process began."""
    world = state.values.get("world")
    return [name for name in world.artifacts if world.holds(name)] if world else []


def _answers(shop: Shop, interrupts: Iterable[Any]) -> dict[str, Any]:
    questions = {key: each for asked in interrupts for key, each in asked.value["questions"].items()}
    return {key: _answer(shop, each["question"] + each["error"]) for key, each in questions.items()}


def _answer(shop: Shop, question: str) -> dict[str, Any]:
    name = next(each for each in ONCE if each in question)
    done = shop.counts()[name]
    return {"choice": "answer", "value": shop.result(name)} if done else {"choice": "retry"}

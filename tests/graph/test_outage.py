"""A Postgres server that dies in the middle of a run, and comes back: nothing is lost, and nothing is done twice."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest

from agent import build_graph
from agent.store.checkpoints import async_saver, open_saver
from agent.store.connection import DatabaseLost
from agent.store.postgres import Postgres
from graphs.loop import LoopGraph
from tests.builders import Calls, arun, calm, goal, run, thread, values
from tests.postgres import Server

PAID = "artifacts.bill == 9000"
IMPATIENT = {"database_timeout": 0.2}


class Shop:
    """A run over a world outside of the database: big is stored, then something is paid, then told of."""

    def __init__(self) -> None:
        self.calls = Calls()
        self.paid: list[int] = []
        self.before: Callable[[], object] = list
        self.after: Callable[[], object] = list

    def pay(self, big: str) -> int:
        self.before()
        self.paid.append(len(big))
        self.after()
        return len(big)

    def tools(self) -> list[Any]:
        made = self.calls.tool
        seen = lambda: sum(self.paid) or None  # noqa: E731
        return [
            made("big", "", lambda: "x" * 9000),
            made("bill", "big", self.pay, effect="mutating", idempotent=False, observe=seen, ensures=PAID),
            made("note", "bill", effect="mutating", idempotent=False),
        ]


@pytest.fixture
def build(mortal: Postgres) -> Iterator[Callable[[Shop], LoopGraph]]:
    with ExitStack() as opened:

        def built(shop: Shop, seconds: float = 0.2) -> LoopGraph:
            saver = open_saver(replace(mortal, patience=seconds))
            opened.callback(saver.conn.close)
            return build_graph(shop.tools(), settings=calm(database_timeout=seconds), checkpointer=saver)

        yield built


def ended_well(shop: Shop, end: Any) -> None:
    assert end["outcome"].status == "satisfied"
    assert {name: values(end)[name] for name in ("bill", "note")} == {"bill": 9000, "note": 1}
    assert shop.paid == [9000]
    assert shop.calls == {"make_big": 1, "make_bill": 1, "make_note": 1}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_dies_around_an_effect_ends_the_run_with_a_sentence_and_the_run_goes_on_when_it_is_back(
    build: Callable[..., LoopGraph], server: Server, when: str
) -> None:
    shop = Shop()
    setattr(shop, when, server.kill)
    with pytest.raises(DatabaseLost, match=r"went away .*when it is back, go on with the run"):
        run(build(shop), goal("note"))
    setattr(shop, when, list)
    server.start()
    ended_well(shop, build(shop).invoke(None, thread()))


async def test_so_it_is_through_ainvoke(mortal: Postgres, server: Server) -> None:
    shop = Shop()
    shop.after = server.kill
    async with async_saver(replace(mortal, patience=0.2)) as saver:
        graph = build_graph(shop.tools(), settings=calm(**IMPATIENT), checkpointer=saver)
        with pytest.raises(DatabaseLost):
            await arun(graph, goal("note"))
        shop.after = list
        server.start()
        # the same graph over the same saver, whose connections are stale
        ended_well(shop, await graph.ainvoke(None, thread()))


def test_a_server_that_comes_back_in_time_is_waited_for_and_stale_connections_are_made_again(
    build: Callable[..., LoopGraph], server: Server
) -> None:
    shop = Shop()

    def restart() -> None:
        server.kill()
        server.start()

    shop.after = restart
    graph = build(shop, seconds=60.0)
    ended_well(shop, run(graph, goal("note")))
    restart()
    assert graph.get_state(thread()).values["outcome"].status == "satisfied"
    restart()
    ended_well(shop, run(graph, goal("note")))


def test_who_asks_while_the_server_is_away_waits_once_and_is_then_told_at_once(
    mortal: Postgres, server: Server
) -> None:
    with closing((saver := open_saver(replace(mortal, patience=0.2))).conn):
        server.kill()
        for _ in range(3):
            with pytest.raises(DatabaseLost):
                saver.get_tuple(thread())
        server.start()
        assert saver.get_tuple(thread()) is None

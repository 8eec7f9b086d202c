"""What calls of tools cost is counted under the money limit, for direct calls and for those of the inner loop."""

from typing import Any

import pytest

from agent import build_graph
from tests.builders import Calls, calm, goal, once, run
from tests.doubles import calling
from tests.graph.planning import calls, drafted, instructs, played


def test_every_call_that_is_sent_costs_its_price() -> None:
    counted = Calls()
    tools = [
        counted.tool("a", "", once(ConnectionError("reset")), price=2.5),
        counted.tool("b", "a", price=1.0),
        counted.tool("c", "b"),
    ]
    end = run(build_graph(tools, settings=calm()), goal("c"))
    assert end["ledger"].money == 6.0
    assert [each.money for each in end["trace"] if each.event == "attempt_ended"] == [2.5, 2.5, 1.0, 0.0]


def test_a_run_that_has_spent_its_money_ends_with_what_it_has() -> None:
    counted = Calls()
    tools = [counted.tool("a", price=4.0), counted.tool("b", "a", price=4.0), counted.tool("c", "b", price=4.0)]
    end = run(build_graph(tools, settings=calm(money=8.0)), goal("c"))
    assert (end["outcome"].status, end["outcome"].limit, counted) == (
        "out_of_budget",
        "money",
        {"make_a": 1, "make_b": 1},
    )


def test_calls_of_the_inner_loop_cost_their_price_as_well() -> None:
    counted = Calls()
    tools: list[Any] = [
        counted.tool("base"),
        counted.tool("rows", "", lambda page: [page], name="query", takes="page", needs=None, price=0.5),
    ]
    plan = drafted(calls("base"), instructs("answer", "query"), wants=["base", "answer"])
    replies = [calling("query", page=1), calling("query", page=2), calling("submit", answer=2)]
    end, _ = played(tools, {"goal": {"text": "Answer"}}, plan, *replies)
    assert end["ledger"].money == 1.0


def test_a_price_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="price"):
        Calls().tool("a", price=-1.0)

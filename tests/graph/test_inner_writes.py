"""Writes of the inner loop: once one of them may have happened, no other is made; and only with the step's tools."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from tests.builders import Calls, calm, run, values
from tests.doubles import calling, scripted
from tests.graph.planning import calls, drafted, instructs, played

TEXT: dict[str, Any] = {"goal": {"text": "Pay"}}
PLAN = drafted(calls("base"), instructs("paid", "pay", "look"), wants=["base", "paid"])


class Desk:
    """Pays, and loses the answers to its first payments."""

    def __init__(self, lost: int = 1) -> None:
        self.paid: list[Any] = []
        self.lost = lost
        self.counted = Calls()

    def pay(self, to: Any) -> str:
        self.paid.append(to)
        if len(self.paid) <= self.lost:
            raise RuntimeError("it went wrong")
        return "paid"

    def tools(self) -> list[Any]:
        return [
            self.counted.tool("base"),
            self.counted.tool("payment", "", self.pay, name="pay", takes="to", needs=None, effect="mutating"),
            self.counted.tool("payments", "", lambda: list(self.paid), name="look"),
        ]


def test_a_write_that_may_have_happened_is_not_made_in_another_way_in_any_attempt() -> None:
    desk = Desk()
    with scripted(PLAN, calling("pay", to="kim"), calling("pay", to="Kim Lee")) as model:
        settings = calm(escalation="finish")
        graph = build_graph(desk.tools(), model=model, settings=settings, checkpointer=InMemorySaver())
        first, second = run(graph, TEXT), run(graph, TEXT)
    assert [each["outcome"].status for each in (first, second)] == ["handed_over", "handed_over"]
    assert "pay was not called: an earlier call of pay in this step may have happened" in second["outcome"].reason
    assert desk.paid == ["kim"]


def test_a_write_that_may_have_happened_counts_although_its_tool_was_taken_away() -> None:
    desk, saver = Desk(), InMemorySaver()
    (base, pay, _), wire = (
        desk.tools(),
        desk.counted.tool("w", "", desk.pay, name="wire", takes="to", needs=None, effect="mutating"),
    )
    plan = drafted(calls("base"), instructs("paid", "pay", "wire"), wants=["base", "paid"])
    with scripted(plan, calling("pay", to="kim"), calling("wire", to="kim")) as model:
        run(build_graph([base, pay, wire], model=model, settings=calm(), checkpointer=saver), TEXT)
        graph = build_graph([base, wire], model=model, settings=calm(), checkpointer=saver)
        end = run(graph, Command(resume={"choice": "retry"}))
    assert "wire was not called: an earlier call of pay in this step may have happened" in str(end["__interrupt__"])
    assert desk.paid == ["kim"]


def test_writes_whose_answers_came_may_be_as_many_as_the_model_likes() -> None:
    desk = Desk(lost=0)
    replies = [calling("pay", to="kim"), calling("pay", to="sam"), calling("submit", paid=2)]
    end, _ = played(desk.tools(), TEXT, PLAN, *replies)
    assert (desk.paid, values(end)["paid"]) == (["kim", "sam"], 2)


def test_a_write_that_was_refused_may_be_made_otherwise() -> None:
    desk = Desk(lost=0)

    def pay(to: Any) -> str:
        if to == "nobody":
            raise ValueError("1 validation error for Payment")
        return desk.pay(to)

    tools = [*desk.tools()[:1], desk.counted.tool("p", "", pay, name="pay", takes="to", needs=None, effect="mutating")]
    plan = drafted(calls("base"), instructs("paid", "pay"), wants=["base", "paid"])
    replies = [calling("pay", to="nobody"), calling("pay", to="kim"), calling("submit", paid=1)]
    end, _ = played(tools, TEXT, plan, *replies)
    assert (desk.paid, end["outcome"].status) == (["kim"], "satisfied")

"""Writes of the inner loop: once one of them may have happened, no other is made; and only with the step's tools."""

import asyncio
from typing import Any

import pytest
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.core.record import AttemptEnded
from tests.builders import Calls, calm, questions, rules, run, rungs, values
from tests.doubles import ScriptedModel, calling, scripted
from tests.graph.planning import calls, drafted, instructs, played

TEXT: dict[str, Any] = {"goal": {"text": "Pay"}}
PEOPLE = "Pay kim or sam, or nobody"
PLAN = drafted(calls("base"), instructs("paid", "pay", "look", instruction=PEOPLE), wants=["base", "paid"])


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
    assert "pay was not called: an earlier call of pay to the same end may have happened" in second["outcome"].reason
    assert desk.paid == ["kim"]


def test_a_write_that_may_have_happened_is_not_made_in_another_way_by_the_step_of_a_later_plan() -> None:
    desk, other = Desk(), drafted(calls("base"), wants=["base"])
    with scripted(PLAN, calling("pay", to="kim"), other, PLAN, calling("pay", to="Kim Lee")) as model:
        settings = calm(escalation="finish")
        graph = build_graph(desk.tools(), model=model, settings=settings, checkpointer=InMemorySaver())
        ends = [run(graph, {"goal": {"text": text}}) for text in ("Pay", "Look", "Pay")]
    assert [each["outcome"].status for each in ends] == ["handed_over", "satisfied", "handed_over"]
    assert "pay was not called: an earlier call of pay to the same end may have happened" in ends[2]["outcome"].reason
    assert desk.paid == ["kim"]


def test_a_write_that_may_have_happened_counts_although_its_tool_was_taken_away() -> None:
    desk, saver = Desk(), InMemorySaver()

    def pay(to: Any) -> str:
        desk.paid.append(to)
        raise KeyboardInterrupt

    base, paying, wire = (
        desk.tools()[0],
        desk.counted.tool("p", "", pay, name="pay", takes="to", needs=None, effect="mutating"),
        desk.counted.tool("w", "", desk.pay, name="wire", takes="to", needs=None, effect="mutating"),
    )
    plan = drafted(calls("base"), instructs("paid", "pay", "wire"), wants=["base", "paid"])
    with scripted(plan, calling("pay", to="kim"), calling("wire", to="kim")) as model:
        with pytest.raises(KeyboardInterrupt):
            run(build_graph([base, paying, wire], model=model, settings=calm(), checkpointer=saver), TEXT)
        end = run(build_graph([base, wire], model=model, settings=calm(), checkpointer=saver), None)
    assert "wire was not called: an earlier call of pay to the same end may have happened" in str(end["__interrupt__"])
    assert desk.paid == ["kim"]


def test_a_person_who_says_retry_lets_the_lost_write_be_made_again_and_no_other() -> None:
    desk, saver = Desk(lost=0), InMemorySaver()

    def pay(to: Any) -> str:
        desk.paid.append(to)
        if desk.paid.count("kim") in (1, 2) and to == "kim":
            raise RuntimeError("it went wrong")
        return "paid"

    paying = desk.counted.tool("p", "", pay, name="pay", takes="to", needs=None, effect="mutating")
    tools, step = [*desk.tools()[:1], paying], instructs("paid", "pay", instruction=PEOPLE)
    plan = drafted(calls("base"), step, wants=["base", "paid"])
    both = [calling("pay", to="sam"), calling("pay", to="kim")]
    with scripted(plan, *both, *both, *both, calling("submit", paid=2)) as model:
        graph = build_graph(tools, model=model, settings=calm(), checkpointer=saver)
        end = run(graph, TEXT)
        for times in (1, 2):
            (question,) = questions(end).values()
            assert "pay was begun" in question["error"]
            assert "called with {'to': 'kim'}" in question["error"]
            assert desk.paid == ["sam", *["kim"] * times]
            end = run(graph, Command(resume={"choice": "retry"}))
    assert (end["outcome"].status, desk.paid) == ("satisfied", ["sam", "kim", "kim", "kim"])


def test_after_a_person_has_said_retry_the_model_may_go_on_in_another_way() -> None:
    desk = Desk()
    replies = [calling("pay", to="kim"), calling("pay", to="Kim Lee"), calling("submit", paid=1)]
    with scripted(PLAN, *replies) as model:
        graph = build_graph(desk.tools(), model=model, settings=calm(), checkpointer=InMemorySaver())
        assert questions(run(graph, TEXT))
        end = run(graph, Command(resume={"choice": "hint", "hint": "his account is Kim Lee"}))
    assert (end["outcome"].status, desk.paid) == ("satisfied", ["kim", "Kim Lee"])


def test_where_a_probe_can_look_it_is_asked_again_before_the_lost_write_is_made_again() -> None:
    desk, sight = Desk(), list[bool]()

    def look() -> Any:
        if not sight:
            raise OSError("dark")
        return list(desk.paid) or None

    def pay(to: Any) -> str:
        return desk.pay(to)

    promised: dict[str, Any] = {"effect": "mutating", "observe": look, "ensures": "artifacts.payment.size() == 1"}
    paying = desk.counted.tool("payment", "", pay, name="pay", takes="to", needs=None, **promised)
    plan = drafted(calls("base"), instructs("paid", "pay"), wants=["base", "paid"])
    with scripted(plan, *[calling("pay", to="kim")] * 2, calling("submit", paid=1)) as model:
        graph = build_graph([*desk.tools()[:1], paying], model=model, settings=calm(), checkpointer=InMemorySaver())
        assert questions(run(graph, TEXT))
        sight.append(True)
        end = run(graph, Command(resume={"choice": "retry"}))
    assert (end["outcome"].status, desk.paid) == ("satisfied", ["kim"])


class Dreaming(ScriptedModel):
    """A model that follows its script, and then never answers again."""

    dreams: int = 0

    async def _agenerate(self, *args: Any, **options: Any) -> ChatResult:
        if len(self.prompts) == len(self.replies):
            self.dreams += 1
            await asyncio.Event().wait()
        return await super()._agenerate(*args, **options)


def test_a_model_that_never_comes_to_an_end_ends_its_step() -> None:
    counted = Calls()
    tools = [counted.tool("base", seconds=60), counted.tool("payments", name="look")]
    model = Dreaming(replies=[drafted(calls("base"), instructs("paid", "look"), wants=["base", "paid"])])
    settings = calm(step_timeout=0.2, retry=1, replan=0, escalation="finish")
    end = run(build_graph(tools, model=model, settings=settings), TEXT)
    assert end["outcome"].status == "handed_over"
    assert "the step was not done within 0.2 seconds" in end["outcome"].reason
    assert (rungs(end), rules(end)) == (["retry", "escalate"], ["time-out", "time-out"])
    spent = [each.cost for each in end["trace"] if isinstance(each, AttemptEnded) and each.how == "turns"]
    assert sum(each.calls for each in spent) >= model.dreams, "nobody answered, and the prompts were read"
    assert all(each.tokens > 0 for each in spent if each.calls)


def test_a_write_that_never_answers_is_unknown_when_the_time_of_its_step_is_up() -> None:
    paid, plan = list[str](), drafted(calls("base"), instructs("paid", "pay"), wants=["base", "paid"])

    async def pay(to: Any) -> None:
        paid.append(to)
        await asyncio.Event().wait()

    counted = Calls()
    paying = counted.tool("p", "", pay, name="pay", takes="to", needs=None, effect="mutating")
    model = ScriptedModel(replies=[plan, *[calling("pay", to="kim")] * 5])
    settings = calm(step_timeout=0.5, retry=3)
    graph = build_graph(
        [counted.tool("base", seconds=60), paying], model=model, settings=settings, checkpointer=InMemorySaver()
    )
    assert questions(run(graph, TEXT))
    assert len(paid) <= 1
    assert questions(run(graph, Command(resume={"choice": "retry"})))
    assert len(paid) <= 1


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
    plan = drafted(calls("base"), instructs("paid", "pay", instruction=PEOPLE), wants=["base", "paid"])
    replies = [calling("pay", to="nobody"), calling("pay", to="kim"), calling("submit", paid=1)]
    end, _ = played(tools, TEXT, plan, *replies)
    assert (desk.paid, end["outcome"].status) == (["kim"], "satisfied")

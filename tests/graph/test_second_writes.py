"""A write that may stand is not made again in another way: not by a patch, a stand-in, a later plan or a later run."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from tests.builders import Calls, calm, goal, once, questions, run, rungs, thread, values

WRITES = {"effect": "mutating", "idempotent": False}


class Desk:
    """What stands outside, and what the probe of it sees."""

    def __init__(self) -> None:
        self.there: list[Any] = []
        self.blind = 0
        self.looks = 0

    def look(self) -> Any:
        self.looks += 1
        if self.blind:
            self.blind -= 1
            raise ConnectionError("service unavailable")
        return self.there[-1] if self.there else None


@pytest.mark.parametrize("lost", [RuntimeError("it went wrong"), TimeoutError("timed out"), ConnectionResetError()])
@pytest.mark.parametrize("limits", [{}, {"retry": 0}], ids=["retries", "no retries"])
@pytest.mark.parametrize("other", ["value", "tool"])
def test_a_write_whose_answer_was_lost_is_not_made_in_another_way(lost: Exception, limits: Any, other: str) -> None:
    desk, counted = Desk(), Calls()

    def writes(**_: Any) -> Any:
        desk.there.append("paid")
        raise lost

    way: dict[str, Any] = {"alternatives": {"by": ("card", "cash")}, "takes": "by"} if other == "value" else {}
    tools = [counted.tool("pay", "", writes, observe=desk.look, **WRITES, **way)]
    if other == "tool":
        tools.append(counted.tool("pay", "", writes, name="other", stands_in_for="make_pay", **WRITES))
    end = run(build_graph(tools, settings=calm(escalation="finish", **limits)), goal("pay"))
    assert (counted.total(), end["outcome"].status) == (1, "handed_over")


def test_a_write_that_a_look_shows_to_have_failed_is_made_in_another_way() -> None:
    desk, counted = Desk(), Calls()

    def writes(by: str) -> str:
        if by == "card":
            raise RuntimeError("it went wrong")
        desk.there.append(by)
        return by

    ways = {"alternatives": {"by": ("card", "cash")}, "takes": "by"}
    end = run(build_graph([counted.tool("pay", "", writes, observe=desk.look, **WRITES, **ways)]), goal("pay"))
    assert (values(end), rungs(end), desk.there) == ({"pay": "cash"}, ["patch"], ["cash"])


# --- the way that was found is kept ----------------------------------------------------------------------------


def mended(counted: Calls, desk: Desk, other: str) -> list[Any]:
    """A write whose first way is refused, something made from it, and something else."""
    refuses = [ValueError("1 validation error for Order")]

    def writes(**args: Any) -> Any:
        if refuses:
            raise refuses.pop()
        desk.there.append(args.get("by", "plain"))
        return desk.there[-1]

    promised: dict[str, Any] = {"observe": desk.look, **WRITES}
    if other == "tool":
        pay = [
            counted.tool("pay", "seed", writes, **promised),
            counted.tool(
                "pay", "seed", lambda seed: writes(by="other"), name="other", stands_in_for="make_pay", **promised
            ),
        ]
    else:
        ways = {"alternatives": {"by": ("card", "cash")}, "takes": "seed by", "args": {"seed": "{{seed}}"}}
        pay = [counted.tool("pay", "seed", writes, **ways, **promised)]
    return [*pay, counted.tool("mail", "pay", lambda pay: pay), counted.tool("note", "pay", lambda pay: pay)]


@pytest.mark.parametrize("other", ["value", "tool"])
def test_a_later_plan_keeps_the_way_that_worked(other: str) -> None:
    desk, counted = Desk(), Calls()
    graph = build_graph(mended(counted, desk, other), settings=calm(), checkpointer=InMemorySaver())
    first = run(graph, goal("mail", given={"seed": 1}))
    assert rungs(first) == ["patch"]
    desk.there.append("somebody else's")  # seen as changed, so it is to be made again: in the way in which it was made
    run(graph, goal("note", given={"seed": 1}))
    planned = run(graph, goal("note mail", given={"seed": 2}))
    assert planned["outcome"].status == "satisfied"
    assert desk.there in (["cash", "somebody else's", "cash"], ["other", "somebody else's", "other"])


@pytest.mark.parametrize("observed", [True, False], ids=["can be looked at", "nothing can look"])
def test_an_old_goal_that_comes_back_is_not_paid_again_in_the_way_that_was_found_meanwhile(observed: bool) -> None:
    desk, counted, refused = Desk(), Calls(), list[Any]()

    def writes(seed: int, by: str) -> str:
        if (seed, by) == (2, "card"):
            refused.append(by)
            raise ValueError("1 validation error for Order")
        desk.there.append((seed, by))
        return by

    ways = {"alternatives": {"by": ("card", "cash")}, "takes": "seed by", "args": {"seed": "{{seed}}"}}
    looked = {"observe": lambda **_: list(desk.there) or None} if observed else {}
    tools = [counted.tool("pay", "seed", writes, **ways, **looked, **WRITES)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    for seed in (1, 2):
        assert run(graph, goal("pay", given={"seed": seed}))["outcome"].status == "satisfied"
    asked = questions(run(graph, goal("pay", given={"seed": 1})))
    assert (desk.there, refused) == ([(1, "card"), (2, "cash")], ["card"])
    assert "made from the same inputs before" in str(asked)
    # what can be looked at is not made again by a word, but taken as it is
    says = {"choice": "answer", "value": "card"} if observed else {"choice": "retry"}
    end = graph.invoke(Command(resume={next(iter(asked)): says}), thread())
    assert (end["outcome"].status, desk.there[2:]) == ("satisfied", [] if observed else [(1, "cash")])


def test_a_call_that_a_person_has_edited_is_what_a_later_plan_makes() -> None:
    desk, counted = Desk(), Calls()

    def writes(by: str) -> str:
        if by == "card":
            raise PermissionError("cards are not accepted here")
        desk.there.append(by)
        return by

    pay = counted.tool("pay", "", writes, takes="by", args={"by": "card"}, needs="", observe=desk.look, **WRITES)
    tools = [pay, counted.tool("mail", "pay", lambda pay: pay)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    asked = questions(run(graph, goal("pay")))
    graph.invoke(Command(resume={next(iter(asked)): {"choice": "edit", "args": {"by": "cash"}}}), thread())
    end = run(graph, goal("mail"))
    assert (values(end), desk.there) == ({"pay": "cash", "mail": "cash"}, ["cash"])


def test_an_edited_call_whose_answer_is_lost_too_is_found_by_a_later_plan_and_not_made_again() -> None:
    desk, counted = Desk(), Calls()

    def writes(by: str) -> str:
        desk.there.append(by)
        raise TimeoutError("timed out")

    pay = counted.tool("pay", "", writes, takes="by", args={"by": "card"}, needs="", **WRITES)
    tools = [pay, counted.tool("mail", "pay", lambda pay: pay), counted.tool("note", "")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    (card,) = questions(run(graph, goal("pay")))
    edited = graph.invoke(Command(resume={card: {"choice": "edit", "args": {"by": "cash"}}}), thread())
    (cash,) = questions(edited)
    graph.invoke(Command(resume={cash: {"choice": "skip", "reason": "not now"}}), thread())
    run(graph, goal("note"))
    end = run(graph, goal("mail"))
    assert (desk.there, len(questions(end))) == (["card", "cash"], 1)


# --- a look that fails is no change -----------------------------------------------------------------------------


def test_a_look_that_fails_is_looked_again_and_nothing_is_made_again() -> None:
    desk, counted = Desk(), Calls()

    def writes() -> str:
        desk.there.append("paid")
        return "paid"

    tools = [counted.tool("pay", "", writes, observe=desk.look, **WRITES), counted.tool("mail", "pay", lambda pay: pay)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("pay"))
    desk.blind = 2
    end = run(graph, goal("mail"))
    assert (counted, rungs(end)) == ({"make_pay": 1, "make_mail": 1}, ["retry", "retry"])
    assert not [each for each in end["trace"] if each.event == "invalidated"]


def test_what_can_be_looked_at_no_more_is_not_relied_upon() -> None:
    desk, counted = Desk(), Calls()

    def writes() -> str:
        desk.there.append("paid")
        return "paid"

    tools = [counted.tool("pay", "", writes, observe=desk.look, **WRITES), counted.tool("mail", "pay", lambda pay: pay)]
    graph = build_graph(tools, settings=calm(escalation="finish"), checkpointer=InMemorySaver())
    run(graph, goal("pay"))
    desk.blind = 1000
    end = run(graph, goal("mail"))
    assert (counted, end["outcome"].status) == ({"make_pay": 1}, "handed_over")
    assert "service unavailable" in end["outcome"].reason


# --- what changes while it is read ------------------------------------------------------------------------------


def test_what_changed_while_it_was_read_is_read_again() -> None:
    page, counted = {"text": "old", "edits": 1}, Calls()

    def reads() -> str:
        said = page["text"]
        if page["edits"]:  # somebody saves while the answer is on its way
            page.update(text="new", edits=0)
        return str(said)

    tools = [counted.tool("page", "", reads, observe=lambda: {"etag": page["text"]})]
    end = run(build_graph(tools, settings=calm()), goal("page"))
    assert (values(end), counted, rungs(end)) == ({"page": "new"}, {"make_page": 2}, ["rewrite"])


async def test_what_was_seen_before_others_did_their_work_is_looked_at_again() -> None:
    page, counted, read, saved = {"text": "old"}, Calls(), asyncio.Event(), asyncio.Event()

    async def reads() -> str:
        said = page["text"]
        read.set()
        await saved.wait()  # the answer is long on its way
        return said

    async def writes() -> str:
        await read.wait()
        page["text"] = "new"
        return "saved"

    tools = [
        counted.tool("page", "", reads, observe=lambda: page["text"]),
        counted.tool("note", "", writes, effect="mutating"),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    stated: Any = {"goal": goal("page note")}
    async for record in graph.astream(stated, thread(), stream_mode="custom"):
        if record.event == "committed" and record.name == "note":
            saved.set()
    end: Any = (await graph.aget_state(thread())).values
    assert (values(end), counted) == ({"page": "new", "note": "saved"}, {"make_page": 2, "make_note": 1})


def test_what_never_stands_still_is_no_result() -> None:
    moving, counted = iter(range(10_000)), Calls()
    tools = [counted.tool("page", "", observe=lambda: {"etag": next(moving)})]
    end = run(build_graph(tools, settings=calm(escalation="finish")), goal("page"))
    assert (values(end), end["outcome"].status) == ({}, "handed_over")
    assert "page changed since it was verified" in end["outcome"].reason


def test_a_first_failure_of_a_read_that_has_a_probe_is_retried() -> None:
    counted = Calls()
    tools = [counted.tool("page", "", once(ConnectionError("reset"), "text"), observe=lambda: "text")]
    end = run(build_graph(tools, settings=calm()), goal("page"))
    assert (values(end), rungs(end)) == ({"page": "text"}, ["retry"])

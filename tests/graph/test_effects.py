"""Nothing that changes the world happens twice: through retry, replan, kill, resume, cancel and two graphs."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from agent import NothingDone, build_graph, contract
from agent.store.checkpoints import open_saver
from tests.builders import Calls, always, arun, calm, goal, once, questions, rules, run, rungs, values


class Ledger:
    """A world that a tool writes to and a probe looks at."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def write(self, **_: Any) -> int:
        self.rows.append("row")
        return len(self.rows)

    def look(self) -> int | None:
        return len(self.rows) or None

    def lost(self, times: int = 1) -> Any:
        """Writes, and loses the answer on its way back."""
        left = [TimeoutError("gateway timeout")] * times

        def does(**_: Any) -> int:
            made = self.write()
            if left:
                raise left.pop()
            return made

        return does


PROMISE = "artifacts.x == 1"


def test_a_lost_answer_is_adopted_where_a_probe_sees_the_effect() -> None:
    calls, there = Calls(), Ledger()
    tools = [calls.tool("x", "", there.lost(), effect="mutating", observe=there.look, ensures=PROMISE)]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert (values(end), there.rows, rungs(end)) == ({"x": 1}, ["row"], [])
    assert [each.how for each in end["trace"] if each.event == "attempt_ended"] == ["adopted"]


def test_a_lost_answer_without_a_probe_is_taken_to_a_person_and_never_repeated() -> None:
    calls, there = Calls(), Ledger()
    tools = [calls.tool("x", "", there.lost(), effect="mutating")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    (asked,) = questions(run(graph, goal("x"))).values()
    assert "could do it twice" in asked["tried"][0]
    run(graph, goal("x"))
    run(graph, goal("x", "artifacts.x == 1"))
    assert there.rows == ["row"]


def test_a_write_that_a_probe_shows_to_be_missing_is_made_again() -> None:
    calls, there = Calls(), Ledger()
    cut = [TimeoutError()]

    def write() -> int:
        if cut:
            raise cut.pop()
        return there.write()

    tools = [calls.tool("x", "", write, effect="mutating", observe=there.look, ensures=PROMISE)]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert (there.rows, calls["make_x"], rungs(end)) == (["row"], 2, ["retry"])


def test_an_idempotent_write_is_simply_repeated() -> None:
    calls, there = Calls(), Ledger()
    tools = [calls.tool("x", "", there.lost(times=2), effect="mutating", idempotent=True)]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert (calls["make_x"], rungs(end)) == (3, ["retry", "retry"])


@pytest.mark.parametrize(
    "thrown",
    [KeyError("id"), TypeError("none"), json.JSONDecodeError("Expecting value", "<html>", 0)],
    ids=lambda each: type(each).__name__,
)
def test_a_write_whose_answer_could_not_be_read_is_not_repeated(thrown: Exception) -> None:
    calls = Calls()
    tools = [calls.tool("x", "", always(thrown), effect="mutating", takes="by", alternatives={"by": [1, 2, 3]})]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    run(graph, goal("x"))
    assert calls["make_x"] == 1


@pytest.mark.parametrize(
    ("thrown", "seen", "made"),
    [
        pytest.param(ValueError("odd"), False, 1, id="an error that may have come after"),
        pytest.param(ValueError("odd"), True, 2, id="the same, where a probe sees that nothing was done"),
        pytest.param(NothingDone("odd"), False, 2, id="a tool that says that nothing was done"),
        pytest.param(ValueError("date range too wide"), False, 2, id="a sentence that says what is wrong"),
    ],
)
def test_a_write_is_made_otherwise_only_when_the_first_is_known_to_have_done_nothing(
    thrown: Exception, seen: bool, made: int
) -> None:
    calls = Calls()

    def write(by: str) -> str:
        if by == "week":
            raise thrown
        return by

    ways = {"takes": "by", "alternatives": {"by": ["week", "day"]}, **({"observe": lambda: None} if seen else {})}
    run(build_graph([calls.tool("x", "", write, effect="mutating", **ways)], settings=calm(retry=0)), goal("x"))
    assert calls["make_x"] == made


@pytest.mark.parametrize(
    ("timeout", "takes", "status"), [(0.4, 0.6, "satisfied"), (0.1, 3.0, "handed_over")], ids=["late", "very late"]
)
def test_a_write_that_is_too_slow_is_waited_for_and_not_made_beside_itself(
    timeout: float, takes: float, status: str
) -> None:
    there, over = Ledger(), threading.Event()

    def slow() -> int:
        time.sleep(takes)
        made = there.write()
        over.set()
        return made

    tools = [Calls().tool("x", "", slow, effect="mutating", observe=there.look, ensures=PROMISE)]
    end = run(build_graph(tools, settings=calm(step_timeout=timeout, escalation="finish")), goal("x"))
    assert over.wait(20)
    assert (end["outcome"].status, there.rows) == (status, ["row"])


def test_a_late_success_is_the_one_that_a_person_allowed_to_be_made_once_more() -> None:
    there, go_on = Ledger(), threading.Event()

    def slow() -> int:
        go_on.wait(20)
        return there.write()

    tools = [Calls().tool("x", "", slow, effect="mutating", takes="", args={}, needs="seed")]
    settings = calm(step_timeout=0.3, retry=0)
    graph = build_graph(tools, settings=settings, checkpointer=InMemorySaver())
    assert questions(run(graph, goal("x", given={"seed": 1})))
    go_on.set()
    end = run(graph, Command(resume="retry"))
    assert (values(end), there.rows) == ({"x": 1}, ["row"])
    # and nothing is left of what they have allowed
    end = run(graph, goal("x", given={"seed": 2}))
    assert (values(end), there.rows) == ({"x": 1}, ["row"])


def test_a_person_who_edits_a_call_is_told_when_it_went_through_after_all() -> None:
    there, go_on, over = Ledger(), threading.Event(), threading.Event()

    def pay(amount: int) -> int:
        if amount == 100:
            go_on.wait(20)
        there.write()
        over.set()
        return amount

    tools = [Calls().tool("x", "", pay, effect="mutating", takes="amount", args={"amount": 100}, needs="")]
    graph = build_graph(tools, settings=calm(step_timeout=0.3, retry=0), checkpointer=InMemorySaver())
    assert questions(run(graph, goal("x")))
    go_on.set()
    assert over.wait(20)
    edit: Any = Command(resume={"choice": "edit", "args": {"amount": 50}})
    (asked,) = questions(run(graph, edit)).values()
    assert "went through after its time" in asked["error"]
    assert there.rows == ["row"]
    # no other run forgets it
    assert questions(run(graph, goal("x")))
    assert there.rows == ["row"]
    # who says so once more, and knows it, gets it
    assert values(run(graph, edit)) == {"x": 50}
    assert there.rows == ["row", "row"]


@pytest.mark.parametrize("again", ["edit", "retry"])
def test_a_write_that_is_still_at_work_is_waited_for_however_often_a_person_says_to_go_on(again: str) -> None:
    there, go_on = Ledger(), threading.Event()

    def pay(amount: int) -> int:
        go_on.wait(20)
        return there.write()

    tools = [Calls().tool("x", "", pay, effect="mutating", takes="amount", args={"amount": 100}, needs="")]
    graph = build_graph(tools, settings=calm(step_timeout=0.2, retry=0), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    # the same goal anew, and then what a person says
    given: Any
    for given in (goal("x"), Command(resume={"choice": again, "args": {"amount": 50}}), goal("x")):
        (asked,) = questions(run(graph, given)).values()
        assert "still at work" in asked["error"]
        assert there.rows == []
    go_on.set()


def test_no_other_way_is_tried_while_a_write_that_is_too_slow_is_still_at_work() -> None:
    there, over = Ledger(), threading.Event()

    def by(by: str) -> int:
        if by == "week":
            time.sleep(1.5)
        made = there.write()
        over.set()
        return made

    ways = {"alternatives": {"by": ["week", "day"]}, "takes": "by"}
    tools = [Calls().tool("x", "", by, effect="mutating", observe=there.look, ensures=PROMISE, **ways)]
    settings = calm(step_timeout=0.2, retry=1, escalation="finish")
    end = run(build_graph(tools, settings=settings), goal("x"))
    assert "patch" not in rungs(end)
    assert over.wait(20)
    assert there.rows == ["row"]


def test_a_harmless_write_is_made_again_from_new_inputs_though_what_stands_looks_well() -> None:
    source, there = [1], dict[str, int]()
    calls = Calls()

    def write(a: int) -> int:
        there["x"] = a
        return a

    promise = {"effect": "mutating", "idempotent": True, "ensures": "artifacts.x > 0"}
    tools = [
        calls.tool("a", "", lambda: source[-1], observe=lambda: source[-1]),
        calls.tool("x", "a", write, observe=lambda: there.get("x"), **promise),
    ]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    source.append(2)
    assert values(run(graph, goal("x"))) == {"a": 2, "x": 2}
    assert calls == {"make_a": 2, "make_x": 2}


def test_what_stands_from_old_inputs_is_no_success_of_a_harmless_write_that_stumbles() -> None:
    source, there = [1], dict[str, int]()
    calls = Calls()

    def write(a: int) -> int:
        there["x"] = {1: 1}[a]
        return a

    promise = {"effect": "mutating", "idempotent": True, "ensures": "artifacts.x > 0"}
    tools = [
        calls.tool("a", "", lambda: source[-1], observe=lambda: source[-1]),
        calls.tool("x", "a", write, observe=lambda: there.get("x"), **promise),
    ]
    graph = build_graph(tools, settings=calm(escalation="finish"), checkpointer=InMemorySaver())
    assert values(run(graph, goal("x"))) == {"a": 1, "x": 1}
    source.append(2)
    end = run(graph, goal("x"))
    assert end["outcome"].status == "handed_over"
    assert not end["outcome"].artifacts["x"].valid


def test_arguments_that_were_refused_did_nothing_and_may_be_patched() -> None:
    sent: list[int] = []

    @contract(produces="x", alternatives={"n": [9, 3]})
    @tool
    def send(n: Annotated[int, Field(le=5)]) -> int:
        """Send."""
        sent.append(n)
        return n

    end = run(build_graph([send], settings=calm()), goal("x"))
    assert (sent, rungs(end), rules(end)) == ([3], ["patch"], ["arguments refused"])


def test_a_write_that_says_it_was_done_already_is_looked_at_and_adopted() -> None:
    calls, there = Calls(), Ledger()
    there.write()
    tools = [
        calls.tool(
            "x", "", always(ValueError("already exists")), effect="mutating", observe=there.look, ensures=PROMISE
        )
    ]
    end = run(build_graph(tools, settings=calm()), goal("x"))
    assert (values(end), rungs(end)) == ({"x": 1}, [])


def test_the_same_write_under_a_new_id_is_not_made_again() -> None:
    """The replan renumbers everything and works with a new format; the mail was sent and stays sent."""
    calls, formats, there = Calls(), ["old", "new", "new"], Ledger()

    def load(form: str) -> str:
        if form == "old":
            raise ValueError("the format changed")
        return "rows"

    tools = [
        calls.tool("form", "", lambda: formats.pop(0)),
        calls.tool("mail", "", there.write, effect="mutating"),
        calls.tool("rows", "form mail", lambda form, mail: load(form)),
        calls.tool("sums", "rows"),
        calls.tool("post", "sums", there.write, effect="mutating"),
    ]
    end = run(build_graph(tools, settings=calm(replan_breadth=0.0)), goal("post"))
    assert rungs(end) == ["replan"]
    assert end["outcome"].status == "satisfied"
    assert there.rows == ["row", "row"]
    assert (calls["make_mail"], calls["make_post"]) == (1, 1)


def test_a_write_is_made_once_however_often_the_goal_changes_and_comes_back() -> None:
    calls, there = Calls(), Ledger()
    tools = [calls.tool("x", "", there.write, effect="mutating"), calls.tool("y")]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    for wants in ("x", "y", "x y", "y", "x"):
        assert run(graph, goal(wants))["outcome"].status == "satisfied"
    assert there.rows == ["row"]


def test_another_thread_is_another_world() -> None:
    calls, there = Calls(), Ledger()
    graph = build_graph(
        [calls.tool("x", "", there.write, effect="mutating")], settings=calm(), checkpointer=InMemorySaver()
    )
    run(graph, goal("x"), "one")
    run(graph, goal("x"), "two")
    assert len(there.rows) == 2


def test_what_the_world_lost_is_made_again() -> None:
    calls, there = Calls(), Ledger()
    tools = [calls.tool("x", "", there.write, effect="mutating", observe=there.look, ensures=PROMISE)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    there.rows.clear()
    end = run(graph, goal("x"))
    assert end["outcome"].status == "satisfied"
    assert (there.rows, calls["make_x"]) == (["row"], 2)


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_others_altered_is_made_again_only_where_that_is_harmless(idempotent: bool) -> None:
    calls, there = Calls(), {"x": 0}

    def write() -> int:
        there["x"] = 1
        return 1

    promised = {"ensures": PROMISE, "observe": lambda: there["x"] or None, "idempotent": idempotent}
    tools = [calls.tool("x", "", write, effect="mutating", **promised)]
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    run(graph, goal("x"))
    there["x"] = 7
    end = run(graph, goal("x"))
    assert bool(end["outcome"] and end["outcome"].status == "satisfied") == idempotent  # else a person is asked
    assert (calls["make_x"], there["x"]) == ((2, 1) if idempotent else (1, 7))


# --- killed between ---------------------------------------------------------------------------------------------


def kinds_of_death(there: Ledger, when: str) -> Any:
    """A tool whose process dies before, or after, its effect; the next process finds it well."""
    deaths = [KeyboardInterrupt()]

    def does(**_: Any) -> int:
        if when == "before" and deaths:
            raise deaths.pop()
        made = there.write()
        if when == "after" and deaths:
            raise deaths.pop()
        return made

    return does


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_write_that_can_be_looked_at_is_finished_by_the_next_process(when: str, tmp_path: Path) -> None:
    calls, there = Calls(), Ledger()
    body = kinds_of_death(there, when)

    def graph() -> Any:
        tools = [
            calls.tool("a"),
            calls.tool("x", "a", body, effect="mutating", observe=there.look, ensures=PROMISE),
            calls.tool("y", "x"),
        ]
        return build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))

    with pytest.raises(KeyboardInterrupt):
        run(graph(), goal("y"))
    end = run(graph(), None)
    assert end["outcome"].status == "satisfied"
    assert there.rows == ["row"]
    assert (calls["make_a"], calls["make_y"]) == (1, 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_write_that_nothing_can_look_at_is_a_persons_to_decide(when: str, tmp_path: Path) -> None:
    calls, there = Calls(), Ledger()
    body = kinds_of_death(there, when)

    def graph() -> Any:
        tools = [calls.tool("a"), calls.tool("x", "a", body, effect="mutating")]
        return build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))

    with pytest.raises(KeyboardInterrupt):
        run(graph(), goal("x"))
    made = len(there.rows)
    end = run(graph(), None)
    assert "outcome is unknown" in next(iter(questions(end).values()))["error"]
    assert len(there.rows) == made
    end = run(graph(), Command(resume="retry" if when == "before" else {"choice": "answer", "value": 1}))
    assert (end["outcome"].status, there.rows, calls["make_a"]) == ("satisfied", ["row"], 1)


def test_a_killed_read_is_simply_read_again(tmp_path: Path) -> None:
    calls = Calls()
    body = once(KeyboardInterrupt())  # type: ignore[arg-type]

    def graph() -> Any:
        tools = [calls.tool("a"), calls.tool("x", "a", body), calls.tool("y", "x")]
        return build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))

    with pytest.raises(KeyboardInterrupt):
        run(graph(), goal("y"))
    assert run(graph(), None)["outcome"].status == "satisfied"
    assert calls == {"make_a": 1, "make_x": 2, "make_y": 1}


async def test_a_cancelled_call_lets_its_write_finish_and_finds_it_recorded() -> None:
    calls, there = Calls(), Ledger()
    started, go_on = asyncio.Event(), asyncio.Event()

    async def write() -> int:
        started.set()
        await go_on.wait()
        return there.write()

    graph = build_graph([calls.tool("x", "", write, effect="mutating")], settings=calm(), checkpointer=InMemorySaver())
    task = asyncio.create_task(arun(graph, goal("x")))
    await started.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    end = await arun(graph, None)
    assert (values(end), there.rows, calls["make_x"]) == ({"x": 1}, ["row"], 1)
    assert [each.how for each in end["trace"] if each.event == "attempt_ended"] == ["recorded"]


async def test_a_cancelled_call_leaves_nothing_running() -> None:
    calls = Calls()
    started = asyncio.Event()

    async def read() -> int:
        started.set()
        await asyncio.Event().wait()
        return 1

    graph = build_graph([calls.tool("x", "", read)], settings=calm())
    before = asyncio.all_tasks()
    task = asyncio.create_task(arun(graph, goal("x")))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before


def test_two_products_of_one_call_are_one_write() -> None:
    calls, there = Calls(), Ledger()

    def send() -> dict[str, int]:
        there.write()
        return {"mail": 1, "receipt": 2}

    end = run(
        build_graph([calls.tool("mail receipt", "", send, effect="mutating")], settings=calm()), goal("mail receipt")
    )
    assert (values(end), there.rows) == ({"mail": 1, "receipt": 2}, ["row"])

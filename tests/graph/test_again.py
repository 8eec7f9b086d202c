"""Doing an identical thing twice: on purpose it is possible and explicit, by accident it is not."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from agent import Goal, build_graph, contract
from agent.store.checkpoints import open_saver
from tests.builders import Calls, calm, goal, questions, run, rungs, thread, values

SAVER = InMemorySaver


def mailer(calls: Calls, **promised: Any) -> list[Any]:
    return [calls.tool("order"), calls.tool("mail", "order", effect="mutating", **promised), calls.tool("log", "mail")]


def test_a_goal_that_wants_it_anew_has_it_done_once_more_and_only_once() -> None:
    calls = Calls()
    graph = build_graph(mailer(calls), settings=calm(), checkpointer=SAVER())
    run(graph, goal("log"))
    for _ in range(3):
        assert run(graph, goal("log", again="mail"))["outcome"].status == "satisfied"
    assert calls == {"make_order": 1, "make_mail": 2, "make_log": 1}
    run(graph, goal("log"))
    assert calls["make_mail"] == 2
    run(graph, goal("log", again="mail"))
    assert calls["make_mail"] == 3


def test_what_is_wanted_anew_is_wanted_also_when_nothing_else_needs_it() -> None:
    calls = Calls()
    graph = build_graph(mailer(calls), settings=calm(), checkpointer=SAVER())
    run(graph, goal("mail"))
    end = run(graph, goal("order", again="mail"))
    assert end["goal"].wants == ("order", "mail")
    assert calls == {"make_order": 1, "make_mail": 2}


def test_a_read_that_is_wanted_anew_is_read_again_and_what_stands_on_it_follows() -> None:
    calls, numbers = Calls(), [1, 1, 2]
    tools = [calls.tool("n", "", lambda: numbers.pop(0)), calls.tool("m", "n", lambda n: n, effect="mutating")]
    graph = build_graph(tools, settings=calm(), checkpointer=SAVER())
    run(graph, goal("m"))
    assert values(run(graph, goal("m", again="n")))["m"] == 1
    assert calls == {"make_n": 2, "make_m": 1}
    run(graph, goal("m"))
    assert values(run(graph, goal("m", again="n")))["m"] == 2
    assert calls == {"make_n": 3, "make_m": 2}


def test_what_stands_from_before_is_no_success_of_what_is_wanted_anew() -> None:
    calls, sent = Calls(), list[int]()

    def send(order: int) -> int:
        sent.append(order)
        return len(sent)

    promise = {"observe": lambda: len(sent) or None, "ensures": "artifacts.mail > 0"}
    tools = [calls.tool("order"), calls.tool("mail", "order", send, effect="mutating", **promise)]
    graph = build_graph(tools, settings=calm(), checkpointer=SAVER())
    run(graph, goal("mail"))
    assert values(run(graph, goal("mail", again="mail")))["mail"] == 2
    assert len(sent) == 2


def test_a_write_wanted_anew_whose_outcome_is_lost_is_not_adopted_from_the_first_time() -> None:
    calls, sent, cut = Calls(), list[int](), [False]

    def send(order: int) -> int:
        if cut[0]:
            raise TimeoutError("gateway timeout")
        sent.append(order)
        return len(sent)

    promise = {"observe": lambda: len(sent) or None, "ensures": "artifacts.mail > 0"}
    tools = [calls.tool("order"), calls.tool("mail", "order", send, effect="mutating", **promise)]
    graph = build_graph(tools, settings=calm(), checkpointer=SAVER())
    run(graph, goal("mail"))
    cut[0] = True
    (asked,) = questions(run(graph, goal("mail", again="mail"))).values()
    assert "outcome is unknown" in asked["error"]
    assert (len(sent), calls["make_mail"]) == (1, 2)


def test_a_replan_under_the_goal_that_wants_it_anew_does_not_do_it_a_third_time() -> None:
    calls, formats = Calls(), ["old", "new", "new"]
    broken = [False]

    def load(form: str, mail: int) -> str:
        if broken[0] and form == "old":
            raise ValueError("the format changed")
        return "rows"

    tools = [
        calls.tool("form", "", lambda: formats.pop(0) if broken[0] else "older"),
        calls.tool("mail", "", effect="mutating"),
        calls.tool("rows", "form mail", load),
    ]
    graph = build_graph(tools, settings=calm(replan_breadth=0.0), checkpointer=SAVER())
    run(graph, goal("rows"))
    broken[0] = True
    end = run(graph, goal("rows", again="mail form"))
    assert (rungs(end), end["outcome"].status) == (["replan"], "satisfied")
    assert calls["make_mail"] == 2


def test_a_killed_run_that_does_something_anew_is_finished_by_the_next_without_a_third_time(tmp_path: Path) -> None:
    calls, deaths = Calls(), list[BaseException]()

    def log(mail: int) -> int:
        if deaths:
            raise deaths.pop()
        return calls["make_mail"]

    def graph() -> Any:
        tools = [calls.tool("mail", "", lambda: calls["make_mail"], effect="mutating"), calls.tool("log", "mail", log)]
        return build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))

    run(graph(), goal("log"))
    deaths.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(graph(), goal("log", again="mail"))
    assert values(run(graph(), None))["log"] == 2
    assert values(run(graph(), goal("log", again="mail")))["log"] == 2


def test_a_replay_into_another_thread_does_it_there_as_well() -> None:
    calls = Calls()
    graph = build_graph(mailer(calls), settings=calm(), checkpointer=SAVER())
    run(graph, goal("log"), "one")
    run(graph, goal("log"), "two")
    assert calls["make_mail"] == 2


# --- by accident ------------------------------------------------------------------------------------------------


def test_time_travel_to_any_checkpoint_repeats_no_write() -> None:
    calls = Calls()
    graph = build_graph(mailer(calls), settings=calm(), checkpointer=SAVER())
    run(graph, goal("log"))
    run(graph, goal("log", again="mail"))
    history = [each for each in graph.get_state_history(thread()) if each.next]
    assert len(history) > 10
    for each in history:
        end: Any = graph.invoke(None, each.config)
        assert end["outcome"].status == "satisfied"
    assert calls["make_mail"] == 2


def test_an_edit_that_forks_the_run_repeats_no_write() -> None:
    calls = Calls()
    graph = build_graph(mailer(calls), settings=calm(), checkpointer=SAVER())
    run(graph, goal("log"))
    history = list(graph.get_state_history(thread()))
    early = next(each for each in reversed(history) if each.next == ("planner",))
    for stated in (goal("mail"), goal("log", "artifacts.mail == 1"), goal("log mail")):
        forked = graph.update_state(early.config, {"goal": stated.model_dump(mode="json")})
        end: Any = graph.invoke(None, forked)
        assert end["outcome"].status == "satisfied"
    assert calls["make_mail"] == 1


@pytest.mark.parametrize("stated", [{"n": {"b": 1, "a": 2}}, {"n": {"a": 2, "b": 1}}, {"n": {"a": 2.0, "b": 1}}])
def test_arguments_that_only_look_different_are_the_same_write(stated: dict[str, Any]) -> None:
    calls = Calls()
    graph = build_graph([calls.tool("mail", "n", effect="mutating")], settings=calm(), checkpointer=SAVER())
    run(graph, goal("mail", given={"n": {"a": 2, "b": 1}}))
    run(graph, goal("mail", text="once more", given=stated))
    assert calls["make_mail"] == 1


def test_arguments_that_differ_in_spacing_or_case_are_another_write() -> None:
    calls = Calls()
    graph = build_graph([calls.tool("mail", "n", effect="mutating")], settings=calm(), checkpointer=SAVER())
    for text in ("a b", "a  b", "A b"):
        run(graph, goal("mail", given={"n": text}))
    assert calls["make_mail"] == 3


def test_a_default_that_is_spelled_out_and_a_number_in_words_make_no_other_write() -> None:
    sent: list[int] = []

    @contract(produces="mail", needs="n", args={"copies": "{{n}}"})
    @tool
    def send(copies: int = 1) -> int:
        """Send."""
        sent.append(copies)
        return copies

    graph = build_graph([send], settings=calm(), checkpointer=SAVER())
    for n in (1, 1.0, "1"):
        run(graph, Goal(text=repr(n), wants=("mail",), given={"n": n}))
    assert sent == [1]

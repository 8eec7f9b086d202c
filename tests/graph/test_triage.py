"""What each strategy does in a run, what it costs, and how it is demanded."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from agent.core.recompute import contradictions
from tests.builders import Calls, always, calm, goal, once, run, rungs, thread, values
from tests.doubles import Reply, calling, scripted
from tests.graph.planning import calls, drafted, instructs, played

QUESTION: dict[str, Any] = {"goal": {"text": "How old is Kim?"}}


def reading() -> Any:
    return Calls().tool("found", "", lambda name: f"{name}, 41", name="look_up", takes="name", needs=None)


def triaged(end: Any) -> tuple[str, str]:
    (record,) = [each for each in end["trace"] if each.event == "triaged"]
    assert list(contradictions(end["trace"])) == []
    return record.chosen.strategy.value, record.chosen.reason


def test_a_short_question_over_tools_that_read_is_one_step_without_a_planner() -> None:
    replies = [calling("look_up", name="Kim"), calling("submit", answer=41)]
    end, _ = played([reading()], QUESTION, *replies, strategy="auto")
    assert triaged(end) == ("single", "short and exploratory: 4 words, and 1 tools that only read")
    assert (values(end), end["outcome"].status) == ({"answer": 41}, "satisfied")
    assert (end["ledger"].planner_calls, end["ledger"].executor_turns) == (0, 2)
    spent = end["trace"][-1].spent
    assert (spent.planner_calls, spent.executor_turns, spent.tokens) == (0, 2, end["ledger"].tokens)


def test_a_single_step_that_fails_is_planned_after_all() -> None:
    steps = [calls("found", tool="look_up", args={"name": "Kim"}), instructs("answer", "look_up", needs=["found"])]
    said: list[Reply] = ['{"scope": "precondition"}', drafted(*steps), calling("submit", answer=41)]
    end, _ = played([reading()], QUESTION, calling("give_up", reason="no idea"), *said, strategy="auto")
    assert values(end) == {"found": "Kim, 41", "answer": 41}
    assert end["ledger"].planner_calls == 1


def test_an_instruction_that_is_tried_again_is_told_why() -> None:
    replies = [
        calling("look_up", name="Kim"),
        calling("give_up", reason="the directory is being rebuilt", scope="nothing"),
        calling("submit", answer=41),
    ]
    end, model = played([reading()], QUESTION, *replies, strategy="auto")
    assert (values(end), rungs(end)) == ({"answer": 41}, ["retry"])
    assert "the directory is being rebuilt" not in str(model.prompts[0][-1].content)
    assert "the directory is being rebuilt" in str(model.prompts[2][-1].content)


def test_a_request_for_one_tool_costs_one_planner_call_at_most() -> None:
    plan = drafted(calls("found", tool="look_up", args={"name": "Kim"}), wants=["found"])
    end, _ = played([reading()], QUESTION, plan, strategy="full")
    assert triaged(end) == ("full", "full was asked for")
    assert (end["ledger"].planner_calls, end["ledger"].tool_calls, end["outcome"].status) == (1, 1, "satisfied")


def test_static_and_short_is_planned_once_and_not_repaired_above_patch() -> None:
    counted = Calls()
    tools = [counted.tool("a"), counted.tool("b", "a", always(FileNotFoundError("no such file")))]
    settings = calm(strategy="auto", escalation="finish")
    end = run(build_graph(tools, settings=settings), goal("b"))
    assert triaged(end) == ("one_pass", "static and short: 2 steps that only read, and nothing can move under them")
    assert rungs(end) == ["escalate"]
    assert (counted["make_a"], values(end), end["ledger"].planner_calls) == (1, {"a": 1}, 1)
    whole = run(build_graph(tools, settings=calm(escalation="finish")), goal("b"))
    assert rungs(whole)[0] == "rewrite", "the whole loop looks again"


def test_static_and_short_is_retried_all_the_same() -> None:
    counted = Calls()
    tools = [counted.tool("a", "", once(ConnectionError("reset")))]
    end = run(build_graph(tools, settings=calm(strategy="auto")), goal("a"))
    assert (triaged(end)[0], end["outcome"].status, rungs(end)) == ("one_pass", "satisfied", ["retry"])


@pytest.mark.parametrize("how", ["settings", "configurable", "context"])
def test_a_strategy_is_demanded_by_settings_or_for_one_call(how: str) -> None:
    config, more = thread(), dict[str, Any]()
    if how == "configurable":
        config["configurable"]["strategy"] = "full"
    if how == "context":
        more["context"] = {"strategy": "full"}
    graph = build_graph([Calls().tool("a")], settings=calm(strategy="full" if how == "settings" else "auto"))
    end = graph.invoke({"goal": goal("a")}, config, **more)
    assert triaged(end) == ("full", "full was asked for")


def test_a_strategy_that_there_is_not_is_refused() -> None:
    config = thread()
    config["configurable"]["strategy"] = "best"
    with pytest.raises(ValueError, match="there is no strategy 'best'; it is one of: auto, single, one_pass, full"):
        build_graph([Calls().tool("a")]).invoke({"goal": goal("a")}, config)


def test_the_same_goal_again_goes_on_as_it_was() -> None:
    with scripted(calling("look_up", name="Kim"), calling("submit", answer=41)) as model:
        graph = build_graph([reading()], model=model, settings=calm(strategy="auto"), checkpointer=InMemorySaver())
        first, second = run(graph, QUESTION), run(graph, QUESTION)
    assert [each["outcome"].status for each in (first, second)] == ["satisfied"] * 2
    assert [each.chosen.strategy for each in second["trace"] if each.event == "triaged"] == ["single"] * 2

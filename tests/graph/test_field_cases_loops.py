"""Loops and thrash from the field: each is noticed by counting, told to the model, and ended with what there is."""

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from agent.trace.story import story
from tests.builders import Calls, always, rules, rungs, statuses, values
from tests.doubles import Reply, calling
from tests.graph.planning import calls, drafted, instructs, nudges, played, report, told

TEXT: dict[str, Any] = {"goal": {"text": "Answer the question"}}
BOTH = drafted(calls("base"), instructs("answer", "query", "look"), wants=["base", "answer"])
"""One step that works, and one for the inner loop."""
AGAIN = drafted(calls("base", id="1"), instructs("answer", "query", "look", id="2"), wants=["base", "answer"])
"""The same under other ids."""


def saying(text: str, tool: str, **args: Any) -> AIMessage:
    return AIMessage(text, tool_calls=calling(tool, **args).tool_calls)


def asks(counted: Calls, does: Any) -> list[Any]:
    return [
        counted.tool("base"),
        counted.tool("rows", "", does, name="query", takes="sql", needs=None),
        counted.tool("view", "", lambda where: f"nothing in {where}", name="look", takes="where", needs=None),
    ]


def test_case_1_a_failing_query_that_is_sent_again_is_nudged_and_then_ends_the_step_with_a_partial_report() -> None:
    counted = Calls()
    same = [calling("query", sql="select foo()") for _ in range(3)]
    end, model = played(
        asks(counted, always(ConnectionError("server timed out: no function foo"))), TEXT, BOTH, *same, *[AGAIN] * 3
    )
    assert counted == {"make_base": 1, "query": 2}
    assert "The arguments are not the problem" in told(model, 3)
    assert "a loop" in rules(end)
    assert "retry" not in rungs(end)
    assert (end["outcome"].status, values(end)) == ("handed_over", {"base": 1})
    assert "base (version 1)" in report(end)
    assert "query was called 2 times" in report(end)


def test_case_3_a_successful_read_is_answered_from_before_and_the_third_time_closes_the_step() -> None:
    counted = Calls()
    same = [calling("query", sql="select 1") for _ in range(3)]
    end, model = played(asks(counted, lambda sql: [1]), TEXT, BOTH, *same, *[AGAIN] * 3)
    assert counted["query"] == 1
    assert "[1]" in told(model, 2)
    assert "[1]" in told(model, 3)
    assert statuses(end["plan"])["answer"] != "done"


def test_a_nudge_is_a_way_out_that_a_model_can_take() -> None:
    counted = Calls()
    replies = [calling("query", sql="Prices"), calling("query", sql=" prices"), calling("submit", answer=2)]
    end, _ = played(asks(counted, lambda sql: []), TEXT, BOTH, *replies)
    assert values(end) == {"base": 1, "answer": 2}
    (nudge,) = [each for each in end["trace"] if each.event == "nudged"]
    assert (nudge.detector, end["plan"].step(nudge.step).produces) == ("loop", ("answer",))
    assert any(keyword == "nudge" and "query 2 times" in said for _, keyword, said in story(end["trace"], end["plan"]))


def test_case_5_equal_calls_are_counted_with_others_and_prose_in_between() -> None:
    counted = Calls()
    replies: list[Reply] = [
        saying("I will look.", "query", sql="a"),
        saying("A new approach!", "look", where="b"),
        saying("Now something else entirely.", "query", sql="a"),
        saying("A fresh idea.", "look", where="c"),
        saying("This will work.", "query", sql="a"),
        *[AGAIN] * 3,
    ]
    end, _ = played(asks(counted, always(ValueError("bad"))), TEXT, BOTH, *replies)
    assert counted == {"make_base": 1, "query": 2, "look": 2}
    assert "a loop" in rules(end)


def test_cosmetic_changes_of_a_query_are_none_also_for_a_tool_that_nobody_declared_harmless() -> None:
    counted = Calls()

    @tool
    def search(query: str, page: int = 1) -> list[str]:
        """Search the web."""
        counted["search"] += 1
        return []

    plan = drafted(calls("base"), instructs("answer", "search"), wants=["base", "answer"])
    queries = [("competitor pricing", 1), ("competitor pricing ", 1), ("Competitor Pricing", 2)]
    replies = [calling("search", query=query, page=page) for query, page in queries]
    end, model = played([counted.tool("base"), search], TEXT, plan, *replies, untraced="off")
    assert counted == {"make_base": 1, "search": 2}
    assert "The arguments are not the problem" in told(model)
    assert (end["outcome"].status, values(end)) == ("handed_over", {"base": 1})


def test_pages_that_bring_something_new_are_turned_to_the_last() -> None:
    counted = Calls()
    tools = [
        counted.tool("base"),
        counted.tool("rows", "", lambda page: [page], name="query", takes="page", needs=None),
    ]
    plan = drafted(calls("base"), instructs("answer", "query"), wants=["base", "answer"])
    pages = [calling("query", page=n) for n in range(6)]
    end, _ = played(tools, TEXT, plan, *pages, calling("submit", answer=6))
    assert counted["query"] == 6
    assert (end["outcome"].status, nudges(end)) == ("satisfied", [])


def test_what_was_read_before_a_write_is_read_again() -> None:
    counted, lines = Calls(), list[str]()

    def add(line: str) -> str:
        lines.append(line)
        return "ok"

    tools = [
        counted.tool("base"),
        counted.tool("text", "", lambda: list(lines), name="read"),
        counted.tool("line", "", add, name="add", takes="line", needs=None, effect="mutating"),
    ]
    plan = drafted(calls("base"), instructs("answer", "read", "add"), wants=["base", "answer"])
    replies = [calling("read"), calling("add", line="x"), calling("read"), calling("add", line="y"), calling("read")]
    end, model = played(tools, TEXT, plan, *replies, calling("submit", answer=1), untraced="off")
    assert counted["read"] == 3
    assert '["x","y"]' in told(model)
    assert end["outcome"].status == "satisfied"


def test_case_6_an_equivalent_plan_is_refused_each_time_and_the_run_stops() -> None:
    counted = Calls()
    first = drafted(calls("base"), calls("x", needs="base"), wants=["x"])
    again = [drafted(calls("base", id=f"b{n}"), calls("x", needs="base", id=f"x{n}"), wants=["x"]) for n in range(3)]
    tools = [counted.tool("base", effect="mutating"), counted.tool("x", "base", always(PermissionError("forbidden")))]
    end, _ = played(tools, TEXT, first, *again, replan=5)
    assert counted == {"make_base": 1, "make_x": 1}
    assert (end["outcome"].status, values(end)) == ("handed_over", {"base": 1})
    assert "the plan's shape is not the problem" in end["outcome"].reason
    assert all("the plan's shape is not the problem" in each for each in nudges(end))


def test_case_6_what_is_looked_at_again_and_is_the_same_is_no_progress_either() -> None:
    counted = Calls()
    first = drafted(calls("base"), calls("x", needs="base"), wants=["x"])
    tools = [counted.tool("base"), counted.tool("x", "base", always(PermissionError("forbidden")))]
    end, _ = played(tools, TEXT, first, replan=5, rewrite=0)
    assert rungs(end) == ["replan", "escalate"]
    assert counted == {"make_base": 2, "make_x": 2}
    assert "the plan's shape is not the problem" in report(end)


def test_plans_that_differ_and_achieve_nothing_stop_as_well() -> None:
    counted = Calls()
    tools = [counted.tool("x", "", always(PermissionError(f"no {n}")), name=f"by{n}") for n in range(3)]
    plans = [drafted(calls("x", tool=f"by{n}"), wants=["x"]) for n in range(3)]
    end, _ = played(tools, TEXT, *plans[:2], replan=5)
    assert counted == {"by0": 1, "by1": 1}
    assert "no artifact was verified since the last replan: the plan's shape is not the problem" in str(end["outcome"])


def test_case_8_a_finished_plan_is_finished_whatever_a_planner_would_say() -> None:
    counted = Calls()
    end, model = played([counted.tool("x")], TEXT, drafted(calls("x"), wants=["x"]))
    assert (end["outcome"].status, counted["make_x"], len(model.prompts)) == ("satisfied", 1, 1)


def test_case_12_a_replan_that_is_the_failed_step_again_is_told_so_and_counts_as_no_progress() -> None:
    counted = Calls()
    tools = [counted.tool("x", "", always(PermissionError("forbidden")))]
    plans = [drafted(calls("x", id=each), wants=["x"]) for each in ("a", "b", "c", "d")]
    end, model = played(tools, TEXT, *plans)
    assert counted["make_x"] == 1
    assert "step 'b' is the step that failed, to be done in the same way on the same inputs" in told(model, 2)
    assert end["outcome"].status == "handed_over"
    assert "the plan's shape is not the problem" in report(end)


def test_the_same_step_after_one_that_may_help_it_is_another_plan() -> None:
    counted, open_ = Calls(), list[int]()

    def makes() -> int:
        if not open_:
            raise PermissionError("service is not enabled")
        return 1

    def enable() -> str:
        open_.append(1)
        return "on"

    tools = [counted.tool("x", "", makes), counted.tool("service", "", enable, name="enable", effect="mutating")]
    helped = drafted(calls("service", tool="enable", id="e"), calls("x", after=["e"]), wants=["x"])
    end, _ = played(tools, TEXT, drafted(calls("x"), wants=["x"]), helped)
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 2, "enable": 1})

"""Drafts from the field that are no plan, lose something or claim something: named, bounded and never believed."""

import json
from typing import Any

import pytest

from agent import build_graph
from agent.app import assemble
from agent.store.database import memory_database
from tests.builders import Calls, ScriptedPlanner, always, calm, draft, goal, once, run, step, values
from tests.doubles import Reply, calling
from tests.graph.planning import calls, drafted, instructs, nudges, played, report, told

TEXT: dict[str, Any] = {"goal": {"text": "Answer the question"}}
GOOD = drafted(calls("x"), wants=["x"])


def tools(counted: Calls) -> list[Any]:
    return [
        counted.tool("x"),
        counted.tool("y"),
        counted.tool("mail", "", name="Send_Mail", takes="to", needs=None, effect="mutating"),
    ]


# --- nothing to do, and nothing one could read ------------------------------------------------------------------


@pytest.mark.parametrize("reply", [drafted(), drafted(wants=["x"]), '{"steps": [', "I would rather talk about it."])
def test_cases_14_and_20_a_planner_that_gives_no_steps_ends_the_run_with_the_cause(reply: str) -> None:
    counted = Calls()
    end, model = played(tools(counted), TEXT, *[reply] * 3, tool_calling=False)
    assert end["outcome"].status == "unreachable"
    assert "the model gave no valid plan" in report(end)
    assert (counted, len(model.prompts)) == ({}, 3)


def test_case_20_no_steps_are_complete_only_where_the_goal_is_met() -> None:
    counted = Calls()
    given = {"goal": {"text": "Have x", "wants": ["z"], "given": {"z": 1}}}
    end, _ = played(tools(counted), given)
    assert (end["outcome"].status, counted) == ("satisfied", {})


BROKEN: dict[str, tuple[str, str]] = {
    "empty object": ("{}", "steps: Field required"),
    "an answer": ('{"question": "q", "answer": "42"}', "steps: Field required"),
    "a missing field": ('{"steps": [{"id": "a"}], "wants": ["x"]}', "steps.0.intent: Field required"),
    "nested": ('{"content": {"plan": 1}}', "steps: Field required"),
    "trailing comma": (GOOD[:-1] + ",}", "the JSON is broken"),
    "cut": (GOOD[:50], "the JSON is broken"),
    "null": ("null", "no JSON object"),
    "a list": ('[{"id": "x"}]', "steps: Field required"),
}


@pytest.mark.parametrize(("reply", "fault"), BROKEN.values(), ids=BROKEN)
def test_case_59_a_broken_draft_is_asked_for_again_with_its_fault(reply: str, fault: str) -> None:
    counted = Calls()
    end, model = played(tools(counted), TEXT, reply, GOOD, tool_calling=False)
    assert fault in told(model)
    assert any(fault in each for each in nudges(end))
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 1})


@pytest.mark.parametrize(("reply", "fault"), BROKEN.values(), ids=BROKEN)
def test_case_59_a_draft_that_stays_broken_ends_the_run_and_its_text_is_kept(reply: str, fault: str) -> None:
    end, _ = played(tools(Calls()), TEXT, *[reply] * 3, tool_calling=False)
    assert end["outcome"].status == "unreachable"
    assert fault in end["outcome"].reason
    assert reply[:30] in end["outcome"].reason
    assert reply not in report(end)


def test_case_59_a_fenced_draft_is_a_draft() -> None:
    end, _ = played(tools(Calls()), TEXT, f"Here you are:\n```json\n{GOOD}\n```\nGood luck!", tool_calling=False)
    assert end["outcome"].status == "satisfied"


# --- drafts that could not be run -------------------------------------------------------------------------------

UNSOUND: dict[str, tuple[str, str]] = {
    "a circle": (
        drafted(calls("x", id="a", after=["b"]), calls("y", id="b", after=["a"]), wants=["x", "y"]),
        "the steps wait for each other in a circle",
    ),
    "itself": (drafted(calls("x", id="a", after=["a"]), wants=["x"]), "a -> a"),
    "nobody": (drafted(calls("x", id="a", after=["z"]), wants=["x"]), "step 'a' comes after 'z', which is no step"),
    "twice": (drafted(calls("x", id="a"), calls("y", id="a"), wants=["x", "y"]), "2 steps have the id 'a'"),
    "1 and '1'": (drafted(calls("x", id=1), calls("y", id="1"), wants=["x", "y"]), "2 steps have the id '1'"),
    "no such tool": (drafted(calls("x", tool="make_z"), wants=["x"]), "uses the tool 'make_z', which does not exist"),
    "another case": (drafted(calls("x", tool="Make_X"), wants=["x"]), "did you mean 'make_x'?"),
    "prose": (
        drafted(calls("x", tool="use make_x to make it"), wants=["x"]),
        "the tools are: Send_Mail, make_x, make_y",
    ),
    "wrong argument": (drafted(calls("x", args={"a": 1}), wants=["x"]), "there is no argument 'a'"),
}


@pytest.mark.parametrize(("reply", "fault"), UNSOUND.values(), ids=UNSOUND)
def test_cases_60_and_61_a_draft_that_cannot_run_is_refused_before_anything_runs(reply: str, fault: str) -> None:
    counted = Calls()
    end, model = played(tools(counted), TEXT, reply, GOOD)
    assert fault in told(model)
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 1})


def test_case_61_a_near_miss_never_becomes_a_write() -> None:
    counted = Calls()
    reply = drafted(calls("mail", tool="send_mail", args={"to": "kim"}), wants=["mail"])
    end, _ = played(tools(counted), TEXT, *[reply] * 3)
    assert (end["outcome"].status, counted) == ("unreachable", {})
    assert "did you mean 'Send_Mail'?" in report(end)


def test_case_63_the_same_invalid_plan_is_asked_for_three_times_and_no_more() -> None:
    end, model = played(tools(Calls()), TEXT, *[drafted(calls("x", tool="nope"), wants=["x"])] * 3)
    assert (end["outcome"].status, len(model.prompts)) == ("unreachable", 3)
    assert end["ledger"].verified == 0


# --- replans that lose or repeat work ---------------------------------------------------------------------------


def test_case_16_five_new_ids_for_the_same_work_make_nothing_again() -> None:
    counted = Calls()
    made = [counted.tool(name, effect="mutating") for name in ("a", "b", "c")]
    fails = counted.tool("d", "a", always(FileNotFoundError("no such file")), name="read_file")
    other = counted.tool("d", "a", name="read_table")
    first = [calls(name) for name in "abc"]
    last = calls("e", needs="d")
    drafts = [
        drafted(*first, calls("d", tool="read_file", needs="a"), last, wants=["b", "c", "e"]),
        drafted(
            *({**each, "id": f"new {each['id']}"} for each in first),
            calls("d", tool="read_table", needs="a", id="new d"),
            {**last, "id": "new e"},
            wants=["b", "c", "e"],
        ),
    ]
    end, _ = played([*made, fails, other, counted.tool("e", "d")], TEXT, *drafts)
    assert counted == {"make_a": 1, "make_b": 1, "make_c": 1, "read_file": 1, "read_table": 1, "make_e": 1}
    assert end["outcome"].status == "satisfied"


def test_case_19_a_replan_that_drops_a_criterion_is_refused_and_the_criterion_named() -> None:
    counted = Calls()
    made = [
        counted.tool("rows", "", always(FileNotFoundError("no such file")), name="by_file"),
        counted.tool("rows", name="by_table"),
        counted.tool("audit", "rows"),
    ]
    aim = {
        "text": "Load and audit",
        "wants": ["rows"],
        "criteria": [{"id": "audited", "predicate": "artifacts.audit == 1"}],
    }
    whole = [drafted(calls("rows", tool=tool), calls("audit", needs="rows")) for tool in ("by_file", "by_table")]
    end, model = played(made, {"goal": aim}, whole[0], drafted(calls("rows", tool="by_table")), whole[1])
    assert "criterion 'audited' checks 'audit', but no step produces it" in told(model)
    assert (end["outcome"].status, counted["make_audit"]) == ("satisfied", 1)


def test_a_stated_goal_is_not_worded_anew() -> None:
    aim = {"goal": {"text": "Make x", "wants": ["x"]}}
    made = [Calls().tool("x", name="one"), Calls().tool("x", name="other")]
    plan = calls("x", tool="one")
    drafts = [
        drafted(plan, goal="Write a poem"),
        drafted(plan, wants=["y"], criteria=[{"text": "short", "predicate": "artifacts.x > 0"}]),
        drafted(plan, goal="make  X"),
    ]
    end, model = played(made, aim, *drafts)
    assert "the goal is 'Make x', and the draft words it as 'Write a poem'" in told(model, 1)
    assert "the goal wants x, and the draft says y" in told(model, 2)
    assert "the criterion 'artifacts.x > 0' is none of the goal's" in told(model, 2)
    assert end["outcome"].status == "satisfied"


def test_no_planner_may_want_something_else_than_the_goal() -> None:
    counted = Calls()
    with ScriptedPlanner(draft(step("x"), wants=("y",))) as planner:
        graph = assemble([counted.tool("x")], memory_database(), calm(), planner=planner)
        end = run(graph, goal("x"))
    assert (end["outcome"].status, counted) == ("unreachable", {})
    assert "the goal wants x, and the draft says y" in report(end)


def test_a_step_that_serves_nothing_of_the_goal_is_refused() -> None:
    counted = Calls()
    end, model = played(tools(counted), TEXT, drafted(calls("x"), calls("y"), wants=["x"]), GOOD)
    assert "step 'y' serves no want and no criterion, for nothing needs y" in told(model)
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 1})


def test_a_step_that_only_looks_at_what_is_wanted_is_left_out_and_nobody_is_asked_again() -> None:
    counted = Calls()
    end, _ = played(tools(counted), TEXT, drafted(calls("x"), {**calls("y"), "needs": ["x"]}, wants=["x"]))
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 1})
    assert nudges(end) == ["step 'y' only looks at what was made, and is left out"]


# --- splitting --------------------------------------------------------------------------------------------------


def group(name: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": name, "intent": f"Group {name}", "steps": steps, **more}


def test_steps_within_steps_are_all_done() -> None:
    counted = Calls()
    nested = drafted(group("g", calls("x"), calls("y", after=["x"])), wants=["x", "y"])
    end, _ = played(tools(counted), TEXT, nested)
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 1, "make_y": 1})
    assert {each.depth for each in end["plan"].live()} == {1}


SPLIT: dict[str, tuple[dict[str, Any], str]] = {
    "too deep": (
        group("a", calls("y"), group("b", calls("z"), group("c", calls("x"), calls("u")))),
        "step 'c' is split 3 levels deep; at most 2: do it in one step",
    ),
    "trivial": (group("a", calls("x")), "step 'a' is split into the one step 'x', which changes nothing"),
    "no reduction": (
        {**instructs("x", "make_x", "make_y"), "id": "a", "steps": [calls("y"), instructs("x", "make_x", "make_y")]},
        "step 'x' is as large as 'a', of which it is a part; the parts have to be simpler",
    ),
    "lost": (group("a", calls("x"), calls("y"), produces=["z"]), "step 'a' makes 'z', and none of its sub-steps does"),
    "both": (
        {**calls("x", id="a"), "steps": [calls("x"), calls("y")]},
        "step 'a' has a tool and sub-steps; give one of them",
    ),
}


@pytest.mark.parametrize(("step", "fault"), SPLIT.values(), ids=SPLIT)
def test_a_split_that_does_not_help_is_refused(step: dict[str, Any], fault: str) -> None:
    counted = Calls()
    end, model = played(tools(counted), TEXT, drafted(step, wants=["x"]), GOOD)
    assert fault in told(model)
    assert (end["outcome"].status, counted) == ("satisfied", {"make_x": 1})


def test_a_step_that_breaks_is_split_only_so_often() -> None:
    """Each replan makes two steps of the last one that broke; the third is told to stop splitting."""
    counted = Calls()
    ways = [counted.tool(f"m{n}", "", effect="mutating") for n in range(3)]
    ways += [
        counted.tool("x", "", always(FileNotFoundError("gone")), name=f"way{n}", takes="a", needs=None)
        for n in range(3)
    ]

    def plan(n: int) -> str:
        return drafted(
            calls(f"m{n}"), calls("x", tool=f"way{n}", needs=f"m{n}", args={"a": f"{{{{m{n}}}}}"}), wants=["x"]
        )

    first = drafted(calls("x", tool="way0", args={"a": "1"}), wants=["x"])
    end, model = played([*ways], TEXT, first, plan(1), plan(2), plan(0), plan(0), plan(0), replan=5)
    assert "is split 3 levels deep" in told(model)
    assert end["outcome"].status in ("unreachable", "handed_over")


# --- claims -----------------------------------------------------------------------------------------------------


def test_case_23_an_answer_after_a_tool_error_is_no_result_and_is_not_told() -> None:
    counted = Calls()
    made = [counted.tool("x"), counted.tool("rows", "", always(ValueError("no such table")), name="query")]
    plan = drafted(calls("x"), instructs("revenue", "query"), wants=["x", "revenue"])
    replies: list[Reply] = [plan, calling("query"), "Done! The revenue is 4242."]
    end, _ = played(made, TEXT, *replies, replan=0)
    assert end["outcome"].status == "handed_over"
    assert values(end) == {"x": 1}
    assert "4242" not in report(end)
    assert "4242" in json.dumps(end["outcome"].model_dump()["unfinished"])


def test_case_26_the_status_follows_the_verifier_and_no_claim() -> None:
    counted = Calls()
    claims = counted.tool("x", "", lambda: {"success": True, "rows": 0}, ensures="artifacts.x.rows > 0")
    end = run(build_graph([claims], settings=calm(replan=0, rewrite=0, escalation="finish")), goal("x"))
    assert (end["outcome"].status, values(end)) == ("handed_over", {})
    assert [each.verdict for each in end["outcome"].grades] == ["refuted"]


def test_case_26_a_submission_that_its_effect_does_not_bear_out_is_refuted() -> None:
    plan = drafted(instructs("x", effects=["result.size() > 2"]), wants=["x"])
    end, _ = played([Calls().tool("y")], TEXT, plan, calling("submit", x="ok"), replan=0, rewrite=0)
    assert (end["outcome"].status, values(end)) == ("handed_over", {})


def test_all_that_was_done_is_in_the_report_and_what_was_not_is_said() -> None:
    counted = Calls()
    made = [counted.tool("x"), counted.tool("y", "", once(ValueError("bad"), times=9)), counted.tool("z", "y")]
    end = run(build_graph(made, settings=calm(replan=0, escalation="finish")), goal("x z"))
    said = report(end)
    assert "x (version 1)" in said
    assert said.count("- not done:") == 2
    assert any("'z' is not in the world" in each.reason for each in end["outcome"].grades)

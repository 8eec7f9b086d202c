"""Every choice that a person has, from the command line: typed at the terminal, or given as JSON."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from agent.cli.asking import AtTerminal, Given, Nobody
from agent.cli.exits import BadInput
from agent.core.control import Choice, Question
from agent.core.plan import Call, StepId
from agent.core.value import JsonValue
from tests.builders import plan, step
from tests.cli.conftest import JOBS, calls

PLAN = plan(step("x"))
SCHEMA: dict[str, JsonValue] = {"properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
ASKED = Question(
    id="q1",
    step=StepId("X"),
    question="step X cannot be recovered: too much. What should happen?",
    tried=("patch x2",),
    learned=("2 calls proven wrong",),
    error="too much",
    call=Call(tool="pay", args={"amount": 500}),
    parameters=SCHEMA,
    limits={"retry": 3},
)


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[JsonValue, str]]:
    """Answer the question by typing these lines; what was answered, and what the screen showed."""

    def typed(*lines: str, question: Question = ASKED) -> tuple[JsonValue, str]:
        left: Iterator[str] = iter(lines)
        screen = io.StringIO()
        monkeypatch.setattr("builtins.input", lambda *_: next(left))
        answer = AtTerminal(Console(file=screen, width=200)).ask({question.id: question}, PLAN)
        assert next(left, None) is None, "not everything that was typed was read"
        return answer, screen.getvalue()

    return typed


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["approve"], {"choice": "approve"}),
        (["retry"], {"choice": "retry"}),
        (["hint", "pay less"], {"choice": "hint", "hint": "pay less"}),
        (["answer", '{"paid": 5}'], {"choice": "answer", "value": {"paid": 5}}),
        (["edit", '{"amount": 50}'], {"choice": "edit", "args": {"amount": 50}}),
        (["raise", "retry=6, patch=4"], {"choice": "raise", "limits": {"retry": 6, "patch": 4}}),
        (["raise", '{"retry": 6}'], {"choice": "raise", "limits": {"retry": 6}}),
        (["skip", "not needed"], {"choice": "skip", "reason": "not needed"}),
        (["goal", '{"wants": ["y"]}'], {"choice": "goal", "goal": {"wants": ["y"]}}),
        (["abort", ""], {"choice": "abort", "reason": ""}),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_every_choice_can_be_typed(typing: Any, lines: list[str], answer: JsonValue) -> None:
    assert typing(*lines)[0] == {"q1": answer}


def test_a_question_can_be_left_for_later(typing: Any) -> None:
    assert typing("later")[0] is None


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["edit", '{"sum": 5}'], "there is no argument 'sum'"),
        (["edit", '{"amount": "much"}'], "argument 'amount' must be"),
        (["raise", "retry=2"], "is 3 already"),
        (["raise", "patience=9"], "there is no limit 'patience'"),
        (["raise", "more"], "limits"),
        (["hint", ""], "needs a hint"),
        (["skip", ""], "needs a reason"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_asked_for_again(
    typing: Any, lines: list[str], problem: str
) -> None:
    answer, shown = typing(*lines, "retry")
    assert answer == {"q1": {"choice": "retry"}}
    assert problem in shown


def test_a_question_is_shown_with_its_call_and_all_that_is_known(typing: Any) -> None:
    _, shown = typing("later")
    assert "? step X cannot be recovered: too much. What should happen? (q1)" in shown
    assert 'Call: pay {"amount":500}' in shown
    assert "Tried: patch x2" in shown
    assert "Learned: 2 calls proven wrong" in shown
    assert all(f"\n  {each.value:<7} " in shown for each in Choice)


def test_only_what_is_offered_is_taken(typing: Any) -> None:
    offered = ASKED.model_copy(update={"choices": (Choice.APPROVE, Choice.ABORT)})
    answer, shown = typing("retry", "approve", question=offered)
    assert answer == {"q1": {"choice": "approve"}}
    assert "select one of the available options" in shown


def test_a_bare_word_takes_the_reason_as_its_hint() -> None:
    assert Given("hint", "pay less", Nobody()).ask({"q1": ASKED}, PLAN) == {"choice": "hint", "hint": "pay less"}
    with pytest.raises(BadInput, match="needs a hint"):
        Given("hint", "", Nobody()).ask({"q1": ASKED}, PLAN)


# --- with a thread that waits ---------------------------------------------------------------------------------


@pytest.fixture
def guarded(folder: Any, monkeypatch: pytest.MonkeyPatch, cli: Any) -> str:
    """A run in which both writes wait for a person's word; what it printed."""
    monkeypatch.setenv("KINTSUGI_APPROVE", "mutating")
    (folder / "both.toml").write_text('wants = "total receipt"')
    said: str = cli("run", "both.toml", "--tools", JOBS, "--thread", "8", code=4).stdout
    return said


def open_calls(found: dict[str, Any]) -> dict[str, str]:
    """Ids of the open questions, by the tool they are about."""
    return {each["call"]["tool"]: each["id"] for each in found["questions"]}


def test_a_policy_from_the_environment_asks_before_writes_and_exits_with_4(guarded: str, folder: Any) -> None:
    assert "is about to call charge_card. May it?" in guarded
    assert 'Call: write_total {"numbers":[1,2,3]}' in guarded
    assert "approve let the call be made as it stands" in guarded
    assert '"approve"' in guarded.splitlines()[-1]
    assert calls(folder) == []


def test_json_shows_each_question_with_its_id_its_call_and_its_choices(guarded: str, document: Any) -> None:
    found = document("resume", "8", code=4)
    assert found["outcome"] is None
    assert set(open_calls(found)) == {"charge_card", "write_total"}
    for each in found["questions"]:
        assert each["choices"] == ["approve", "edit", "skip", "goal", "abort"]
    assert found["questions"][0]["call"]["args"] in ({"numbers": [1, 2, 3]}, {})


def test_calls_are_allowed_by_id_one_now_and_the_other_later(
    guarded: str, folder: Any, cli: Any, document: Any
) -> None:
    ids = open_calls(document("resume", "8", code=4))
    first = json.dumps({ids["charge_card"]: "approve"})
    assert open_calls(document("resume", "8", "--answer", first, code=4)) == {"write_total": ids["write_total"]}
    assert calls(folder) == ["charge_card"]
    assert ids["charge_card"] in cli("resume", "8", "--answer", first, code=2).stderr
    edit = json.dumps({"choice": "edit", "args": {"numbers": [4, 5]}})
    found = document("resume", "8", "--answer", edit)
    assert {each["name"]: each["value"] for each in found["artifacts"]}["total"] == {"sum": 9}
    assert calls(folder) == ["charge_card", "write_total"]


def test_an_answer_given_twice_is_refused(guarded: str, cli: Any, folder: Any, document: Any) -> None:
    both = json.dumps(dict.fromkeys(open_calls(document("resume", "8", code=4)).values(), "approve"))
    cli("resume", "8", "--answer", both)
    assert "asks nothing" in cli("resume", "8", "--answer", both, code=2).stderr
    assert sorted(calls(folder)) == ["charge_card", "write_total"]


def test_another_goal_while_calls_wait_makes_none_of_them(guarded: str, cli: Any, folder: Any) -> None:
    (folder / "read.toml").write_text('wants = "numbers"')
    assert "Satisfied: " in cli("goal", "8", "read.toml").stdout
    assert calls(folder) == []


def test_a_limit_is_raised_from_the_command_line(folder: Any, cli: Any, document: Any) -> None:
    (folder / "pay.toml").write_text('wants = "receipt"')
    (folder / "bank-is-down").touch()
    cli("run", "pay.toml", "--tools", JOBS, "--thread", "9", code=4)
    raised = json.dumps({"choice": "raise", "limits": {"retry": 9}})
    (question,) = document("resume", "9", "--answer", raised, code=4)["questions"]
    assert question["limits"]["retry"] == 9
    assert calls(folder) == ["charge_card"]


def test_a_policy_that_names_no_tool_is_bad_input(folder: Any, monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    monkeypatch.setenv("KINTSUGI_APPROVE_TOOLS", "charge_crad")
    said = cli("run", "goal.toml", "--tools", JOBS, code=2).stderr
    assert "approve_tools names 'charge_crad', which is no tool" in said

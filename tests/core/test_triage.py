"""How much machinery a goal gets: from the goal and the tools alone, and the same again from its record."""

from typing import Any

import pytest

from agent.core.goal import Goal
from agent.core.limits import Limits
from agent.core.recompute import contradictions
from agent.core.record import Triaged
from agent.core.triage import Signs, Strategy, bounded, signs_of, triage
from tests.builders import WRITE, contracts, goal, promise

SINGLE, ONE_PASS, FULL = Strategy
LOOK = {"search": promise("search", produces="search"), "read": promise("read", produces="read")}
CHAIN = contracts(promise("f", produces="a"), promise("g", "a", "b"), promise("h", "b", "c"), promise("i", "c", "d"))


def chosen(stated: Goal, tools: Any = LOOK, loop: bool = True, asked: Strategy | None = None) -> Strategy:
    found = triage(signs_of(stated, tools, tools, (), loop), asked)
    assert found.reason
    assert list(contradictions([Triaged(at=0, chosen=found)])) == []
    return found.strategy


def text(said: str) -> Goal:
    return Goal(text=said)


@pytest.mark.parametrize(
    ("stated", "tools", "loop", "strategy"),
    [
        pytest.param(text("Who is the mayor?"), LOOK, True, SINGLE, id="short, exploratory, tools that read"),
        pytest.param(text("Who is the mayor?"), LOOK, False, FULL, id="nobody to carry out a step"),
        pytest.param(text("word " * 40), LOOK, True, FULL, id="a long text"),
        pytest.param(text("Do this. Then that. Then report."), LOOK, True, FULL, id="three sentences"),
        pytest.param(text("Fix it"), {**LOOK, "w": promise("w", effect=WRITE)}, True, FULL, id="a tool that writes"),
        pytest.param(text("Make a d"), CHAIN, True, FULL, id="tools that promise"),
        pytest.param(text("Look"), {f"t{n}": promise(f"t{n}") for n in range(9)}, True, FULL, id="too many tools"),
        pytest.param(text("What is 2 + 2?"), {}, True, FULL, id="no tools"),
        pytest.param(goal("b"), CHAIN, False, ONE_PASS, id="two steps that read"),
        pytest.param(goal("d"), CHAIN, False, FULL, id="four steps"),
        pytest.param(goal("zzz"), CHAIN, False, FULL, id="nothing makes it"),
        pytest.param(goal("a"), contracts(promise("f", produces="a", effect=WRITE)), True, FULL, id="a write"),
        pytest.param(goal("a"), contracts(promise("f", produces="a", observable=True)), True, FULL, id="watched"),
        pytest.param(goal("a"), contracts(promise("f", produces="a", requires=("facts.x",))), True, FULL, id="stands"),
    ],
)  # fmt: skip
def test_it_follows_from_goal_and_tools(stated: Goal, tools: Any, loop: bool, strategy: Strategy) -> None:
    assert chosen(stated, tools, loop) is strategy


@pytest.mark.parametrize("asked", Strategy)
def test_what_is_demanded_is_done_where_it_can_be(asked: Strategy) -> None:
    assert chosen(text("word " * 40), asked=asked) is asked
    assert chosen(goal("b"), CHAIN, asked=asked) is (FULL if asked is SINGLE else asked)
    assert chosen(text("Look"), loop=False, asked=asked) is (FULL if asked is SINGLE else asked)


def test_another_choice_than_follows_from_the_record_is_a_contradiction() -> None:
    found = triage(Signs(stated=False, words=99, loop=True)).model_copy(update={"strategy": SINGLE})
    (said,) = contradictions([Triaged(at=0, chosen=found)])
    assert "recorded the strategy single, recomputed full: its text is long" in said


def test_one_pass_has_no_rung_above_patch_and_only_for_its_goal() -> None:
    once = triage(Signs(stated=True, steps=1, still=True))
    limits = bounded(Limits(), once, Goal())
    assert (limits.retry, limits.patch, limits.rewrite, limits.replan) == (3, 2, 0, 0)
    assert bounded(Limits(), once, Goal(revision=2)) == bounded(Limits(), None, Goal()) == Limits()

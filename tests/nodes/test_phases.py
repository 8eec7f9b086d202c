"""Intake opens a run, the dispatcher steers it, the escalator hands over, and the finisher says how it ended."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agent.core.consent import Consent
from agent.core.control import Recovery
from agent.core.goal import Goal
from agent.core.ladder import Rung, RungChoice
from agent.core.limits import Ledger, Limits
from agent.core.move import Broken, Finish, Start
from agent.core.outcome import OutcomeStatus, conclude
from agent.core.phase import Phase
from agent.nodes.dispatcher import Dispatcher
from agent.nodes.escalator import Escalator
from agent.nodes.finisher import Finisher, summary
from agent.nodes.intake import Intake
from agent.nodes.state import append_records, take_goal, take_ledger
from agent.ports import Letter
from tests.builders import (
    ManualClock,
    ScriptedInbox,
    artifact,
    bodies,
    classified,
    config,
    goal,
    plan,
    state,
    statuses,
    step,
    world,
)

# --- intake -----------------------------------------------------------------------------------------------------


async def opened(**channels: Any) -> Any:
    return await Intake(ManualClock())(state(**channels), config())


async def test_a_new_run_starts_with_a_fresh_ledger_and_keeps_world_and_plan() -> None:
    old = {
        "ledger": Ledger(run=2, tokens=9, replan=1),
        "trace": ["something"],
        "world": world("x"),
        "move": Start(steps=()),
    }
    update = await opened(**old)
    assert (update["ledger"], update["move"], update["outcome"]) == (Ledger(run=3), None, None)
    assert update["world"].holds("x")
    record, _ = update["trace"]
    assert (record.event, record.run, record.resumed) == ("run_started", 3, True)


async def test_what_was_given_up_on_is_tried_again() -> None:
    steps = plan(step("x", status="failed"), step("y", status="running"), step("z", status="skipped", reason="no"))
    update = await opened(plan=steps)
    assert statuses(update["plan"]) == {"x": "pending", "y": "running", "z": "skipped"}


async def test_stated_facts_are_taken_into_the_world_and_a_changed_one_is_a_new_version() -> None:
    update = await opened(facts={"region": "us", "n": 1}, world=world(region="eu", n=1))
    assert update["world"].facts["region"].version == 2
    assert update["world"].facts["n"].version == 1


@pytest.mark.parametrize(
    ("messages", "stated", "text"),
    [
        pytest.param([HumanMessage("make a")], Goal(), "make a", id="a message"),
        pytest.param([HumanMessage("make a")], Goal(text="make a"), "make a", id="the same once more"),
        pytest.param([HumanMessage("make b")], Goal(text="make a"), "make b", id="another"),
        pytest.param([HumanMessage("make b"), AIMessage("done")], Goal(text="make a"), "make a", id="answered already"),
        pytest.param([HumanMessage("  ")], Goal(text="make a"), "make a", id="an empty one"),
    ],
)
async def test_the_last_word_of_a_person_is_the_goal(messages: list[Any], stated: Goal, text: str) -> None:
    assert (await opened(messages=messages, goal=stated))["goal"].text == text


async def test_without_a_goal_the_run_ends_at_once() -> None:
    update = await opened(goal=Goal())
    assert (update["phase"], update["outcome"].status) == (Phase.FINISHER, "unreachable")


# --- dispatcher -------------------------------------------------------------------------------------------------


async def dispatched(letter: Letter | None = None, **channels: Any) -> Any:
    with ScriptedInbox(letter) as inbox:
        update: Any = await Dispatcher(Limits(), Consent(), bodies(), inbox, ManualClock())(state(**channels), config())
        return update


async def test_steps_are_marked_running_before_they_start() -> None:
    update = await dispatched(plan=plan(step("x"), step("y", "x")))
    assert statuses(update["plan"]) == {"x": "running", "y": "pending"}
    assert update["plan"].steps[0].attempts == 1
    assert (update["ledger"].moves, update["ledger"].steps) == (1, 1)
    assert update["phase"] is Phase.EXECUTOR
    assert [(each.event, each.attempt) for each in update["trace"]] == [("step_started", 1)]


async def test_what_is_broken_goes_to_the_classifier() -> None:
    update = await dispatched(plan=plan(step("x", preconditions=["1 == 2"])))
    assert isinstance(update["move"], Broken)
    assert (update["failures"], update["phase"]) == (update["move"].failures, Phase.CLASSIFIER)


async def test_a_letter_changes_the_goal_and_is_heard_once() -> None:
    update = await dispatched(Letter(number=4, goal=goal("y")), heard=3)
    assert (update["goal"].wants, update["goal"].revision, update["heard"]) == (("y",), 2, 4)
    assert update["phase"] is Phase.PLANNER
    assert (await dispatched(None, heard=4))["heard"] == 4


# --- escalator and finisher -------------------------------------------------------------------------------------


async def test_where_nobody_can_be_asked_the_run_is_handed_over_with_everything_that_was_tried() -> None:
    choice = RungChoice(rung=Rung.ESCALATE, start=Rung.RETRY)
    stuck = Recovery(classified=classified("nothing", message="no access"), choice=choice)
    with ScriptedInbox() as inbox:
        node = Escalator(False, False, Consent(), Limits(), {}, bodies(), inbox, ManualClock())
        update: Any = await node(state(unresolved=(stuck,), plan=plan(step("x", status="failed"))), config())
    assert (update["move"].status, update["phase"]) == ("handed_over", Phase.FINISHER)
    assert "no access" in update["move"].reason
    assert [each.event for each in update["trace"]] == ["escalated"]


async def finished(status: str, **channels: Any) -> Any:
    move = Finish(status=OutcomeStatus(status), reason="said")
    return await Finisher(bodies(), ManualClock())(state(move=move, **channels), config())


async def test_a_claim_of_success_that_the_grades_do_not_bear_out_is_not_made() -> None:
    update = await finished("satisfied", plan=plan(step("x", status="done")))
    assert update["outcome"].status == "no_progress"
    assert "has x: refuted" in update["outcome"].reason


async def test_a_success_is_told_with_what_was_made() -> None:
    done = {"plan": plan(step("x", status="done")), "world": world("x")}
    update = await finished("satisfied", **done)
    assert (update["outcome"].status, list(update["outcome"].artifacts)) == ("satisfied", ["x"])
    assert (update["phase"], update["trace"][0].event) == (Phase.END, "ended")


async def test_what_is_still_reading_is_to_be_done_again() -> None:
    update = await finished("out_of_budget", plan=plan(step("x", status="running")))
    assert statuses(update["plan"]) == {"x": "pending"}
    assert update["outcome"].unfinished == {"X": "running"}


async def test_an_outcome_that_is_there_already_is_kept() -> None:
    early = conclude(OutcomeStatus.UNREACHABLE, "no goal", goal("x"), plan(), world(), {})
    assert (await finished("satisfied", outcome=early))["outcome"] == early


def test_the_report_names_only_what_holds() -> None:
    state_ = world("x", artifact("y", mark="root"))
    end = conclude(OutcomeStatus.CANCELLED, "enough", goal("x y"), plan(step("y", status="failed")), state_, {})
    assert summary(end).splitlines() == ["cancelled: enough", "- x (version 1)", "- not done: Y: failed"]


# --- the doors of the state -------------------------------------------------------------------------------------


def test_a_goal_may_come_as_text_mapping_or_value() -> None:
    assert take_goal(Goal(), "make a") == Goal(text="make a")
    assert take_goal(goal("a"), {"wants": "a"}) == goal("a")
    assert take_goal(goal("a"), {"wants": "b"}).revision == 2
    assert take_goal(goal("a"), goal("b", revision=7)).revision == 7


def test_a_ledger_may_come_as_a_mapping_and_nothing_changes_nothing() -> None:
    assert take_ledger(Ledger(), [{"tokens": 3}]) == Ledger(tokens=3)
    assert take_ledger(Ledger(tokens=3), [None]) == Ledger(tokens=3)


def test_records_are_only_ever_added() -> None:
    one = {"event": "escalated", "at": 1.0, "question": "?", "id": "q"}
    first = append_records([], [[one]])
    assert append_records(first, [[one], [one]])[:1] == first

"""The planner node: one draft laid over the old plan, charged whatever comes of it, and never a repeat."""

from typing import Any

from agent.core.chaining import Need, Unreachable
from agent.core.failure import Trigger
from agent.core.goal import Goal
from agent.core.limits import Ledger, Limits
from agent.core.move import Draw, PlanOrder
from agent.core.phase import Phase
from agent.core.plan import Call, Plan
from agent.core.repair import call_digest
from agent.core.value import digest
from agent.nodes.planner import PREVIEW, PlannerNode
from agent.ports import PlanningFailed, Usage
from tests.builders import (
    ManualClock,
    ScriptedPlanner,
    artifact,
    bodies,
    config,
    contracts,
    draft,
    failure,
    goal,
    plan,
    promise,
    state,
    statuses,
    step,
    world,
)

PROMISES = contracts(promise("make_x", produces="x", alternatives={"by": ("week", "day")}))


async def draw(planner: Any, trigger: Trigger = Trigger.INITIAL, **channels: Any) -> Any:
    node = PlannerNode(planner, PROMISES, bodies(), ManualClock())
    order = PlanOrder(trigger=trigger, failure=channels.pop("failure", None))
    return await node(state(**{"plan": Plan(), "move": Draw(order=order), **channels}), config())


async def test_the_request_shows_the_goal_what_holds_and_what_is_done_and_no_transcript() -> None:
    held = world(artifact("a", "v" * 1000), artifact("b", mark="root"))
    with ScriptedPlanner(draft(step("x"))) as planner:
        await draw(planner, world=held, plan=plan(step("a", status="done")), goal=goal("x", "artifacts.y == 1"))
        (asked,) = planner.asked
    assert list(asked.present) == ["a"]
    assert len(asked.present["a"]) == PREVIEW
    assert asked.done == ("make a -> a",)
    assert asked.wants == ("x", "y")
    assert (asked.contracts, asked.region) == (PROMISES, False)


async def test_a_draft_becomes_a_plan_under_runtime_ids() -> None:
    with ScriptedPlanner(draft(step("x", id="1"), usage=Usage(calls=1, tokens_in=8))) as planner:
        update = await draw(planner)
    assert [each.id for each in update["plan"].steps] == ["s1.1"]
    assert (update["ledger"].planner_calls, update["ledger"].tokens) == (1, 8)
    assert (update["phase"], update["order"], update["unresolved"]) == (Phase.DISPATCHER, None, ())


async def test_given_values_are_taken_in_and_what_was_made_from_others_falls() -> None:
    held = world(artifact("n", 1, producer="goal"), artifact("d", 2, inputs={"n": digest(1)}))
    done = plan(step("d", "n", status="done"))
    with ScriptedPlanner(draft(step("d", "n"))) as planner:
        update = await draw(planner, world=held, plan=done, goal=goal("d", given={"n": 5}, revision=2))
        assert "d" not in planner.asked[0].present
    assert update["world"].artifacts["n"].value == 5
    assert statuses(update["plan"]) == {"d": "pending"}


async def test_a_changed_goal_is_on_the_record_with_what_still_serves_it() -> None:
    with ScriptedPlanner(draft(step("x"))) as planner:
        update = await draw(planner, Trigger.INTENT_CHANGE, world=world("a"), goal=goal("a x", revision=3))
    intent, planned = update["trace"]
    assert (intent.event, intent.goal_revision, intent.still_serving) == ("intent_changed", 3, ("a",))
    assert planned.event == "planned"


async def test_a_goal_in_words_is_completed_and_a_stated_one_is_never_changed() -> None:
    with ScriptedPlanner(draft(step("x"), wants=("x",))) as planner:
        update = await draw(planner, goal=Goal(text="make x"))
    assert (update["goal"].wants, update["goal"].text) == (("x",), "make x")
    assert update["plan"].goal_revision == update["goal"].revision
    with ScriptedPlanner(draft(step("x"), wants=("x", "more"))) as planner:
        refused = await draw(planner)
    assert "goal" not in refused
    assert (refused["phase"], "more" in refused["move"].reason) == (Phase.FINISHER, True)


async def test_a_goal_that_cannot_be_reached_ends_the_run_with_the_proof_and_is_paid_for() -> None:
    with ScriptedPlanner(Unreachable((Need(name="x"),))) as planner:
        update = await draw(planner)
    assert update["phase"] is Phase.FINISHER
    assert (update["move"].status, update["move"].proof) == ("unreachable", ("no tool produces 'x'",))
    assert update["ledger"].planner_calls == 1


async def test_a_planner_that_gives_nothing_valid_ends_the_run_and_its_tokens_are_paid_for() -> None:
    failed = PlanningFailed("api_key=hunter2secret was no plan", Usage(calls=3, tokens_in=50))
    with ScriptedPlanner(failed) as planner:
        update = await draw(planner)
    assert update["ledger"].tokens == 50
    assert "hunter2secret" not in update["move"].reason


WRONG = Ledger(tried={"x": (call_digest("make_x", {"by": "week"}),)})
BY_WEEK = step("x", call=Call(tool="make_x", args={"by": "week"}))


async def test_a_draft_that_brings_back_a_wrong_call_is_given_the_next_declared_way() -> None:
    with ScriptedPlanner(draft(BY_WEEK)) as planner:
        update = await draw(planner, ledger=WRONG)
    assert update["plan"].steps[0].call.args == {"by": "day"}


async def test_a_draft_that_can_only_repeat_a_wrong_call_goes_to_a_person_with_what_was_learned() -> None:
    ledger = Ledger(tried={"x": tuple(call_digest("make_x", {"by": each}) for each in ("week", "day"))})
    with ScriptedPlanner(draft(BY_WEEK)) as planner:
        update = await draw(planner, Trigger.TASK_FAILURE, failure=failure("x"), ledger=ledger)
    (stuck,) = update["unresolved"]
    assert "proven wrong" in stuck.choice.passed[0].reason
    assert (update["phase"], update["ledger"].escalate) == (Phase.DISPATCHER, 1)
    with ScriptedPlanner(draft(BY_WEEK)) as planner:
        assert (await draw(planner, ledger=ledger))["phase"] is Phase.FINISHER


async def test_a_raised_depth_is_what_the_planner_is_told_from_then_on() -> None:
    with ScriptedPlanner(draft(step("x"))) as planner:
        node = PlannerNode(planner, PROMISES, bodies(), ManualClock(), Limits(depth=1))
        order = Draw(order=PlanOrder(trigger=Trigger.INITIAL))
        await node(state(move=order, goal=goal("x"), granted={"depth": 4}), config())
    assert planner.asked[0].depth == 4

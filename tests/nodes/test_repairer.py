"""The repairer carries out the rung that was chosen; what cannot be carried out is a failure again."""

from typing import Any

import pytest
from langchain_core.tools import tool

from agent import contract
from agent.core.chaining import Need, Unreachable
from agent.core.control import Recovery
from agent.core.failure import Trigger
from agent.core.ladder import Rung, RungChoice
from agent.core.limits import Ledger
from agent.core.move import PlanOrder
from agent.core.phase import Phase
from agent.core.plan import Call, StepId
from agent.core.repair import call_digest
from agent.nodes.repairer import Repairer
from agent.ports import PlanningFailed, ProposedCall, Usage
from agent.tools.registry import Registry
from tests.builders import (
    Calls,
    ManualClock,
    ScriptedPatcher,
    ScriptedPlanner,
    artifact,
    bodies,
    classified,
    config,
    draft,
    plan,
    state,
    statuses,
    step,
    world,
)


@contract(produces="x", alternatives={"by": ["week", "day"]}, effect="read_only")
@tool
def make_x(by: str, of: str = "") -> str:
    """Make x."""
    return by + of


TOOLS = [make_x, Calls().tool("a"), Calls().tool("b", "a"), Calls().tool("c", "b")]
BY_WEEK = step("x", call=Call(tool="make_x", args={"by": "week"}), status="running", delay=3.0)
BY_DAY = step("x", call=Call(tool="make_x", args={"by": "day"}), status="running")


def recovery(rung: str, scope: str = "call", of: str = "x", delay: float = 0.0, **more: Any) -> Recovery:
    choice = RungChoice(rung=Rung(rung), start=Rung(rung), delay=delay)
    return Recovery(classified=classified(scope, of, **more), choice=choice)


async def repair(*recoveries: Recovery, planner: Any = None, patcher: Any = None, **channels: Any) -> Any:
    node = Repairer(planner or ScriptedPlanner(), patcher, Registry(TOOLS), bodies(), ManualClock())
    return await node(state(recoveries=recoveries, **{"plan": plan(BY_WEEK), **channels}), config())


async def test_a_retry_waits_as_long_as_was_chosen() -> None:
    update = await repair(recovery("retry", "nothing", delay=4.0))
    (only,) = update["plan"].steps
    assert (only.status, only.delay) == ("pending", 4.0)
    assert (update["phase"], update["recoveries"]) == (Phase.DISPATCHER, ())
    assert (await repair(recovery("retry", step=None)))["plan"] == plan(BY_WEEK)


async def test_a_patch_takes_the_next_declared_value_and_asks_nobody() -> None:
    with ScriptedPatcher() as patcher:
        update = await repair(recovery("patch"), patcher=patcher)
    (only,) = update["plan"].steps
    assert only.call.args == {"by": "day"}
    assert (only.status, only.delay, update["plan"].revision) == ("pending", 0.0, 2)
    (record,) = update["trace"]
    assert (record.event, record.rung, record.because) == ("repaired", "patch", "by = 'day' instead of 'week'")


def proposal(*, tool: str = "make_x", **args: Any) -> ProposedCall:
    return ProposedCall(call=Call(tool=tool, args=args), usage=Usage(calls=1, tokens_in=5))


USED = Ledger(tried={"x": (call_digest("make_x", {"by": "week"}), call_digest("make_x", {"by": "day"}))})


async def test_a_model_is_asked_when_no_declared_way_is_left_and_sees_only_the_call() -> None:
    with ScriptedPatcher(proposal(by="hour", of="{{a}}")) as patcher:
        by_a = BY_DAY.model_copy(update={"call": Call(tool="make_x", args={"by": "day", "of": "{{a}}"})})
        update = await repair(
            recovery("patch", message="too wide"),
            patcher=patcher,
            plan=plan(by_a),
            world=world(artifact("a", "q1")),
            ledger=USED.model_copy(
                update={"tried": {"x": (*USED.tried["x"], call_digest("make_x", {"by": "week", "of": "{{a}}"}))}}
            ),
        )
        (asked,) = patcher.asked
    assert set(type(asked).model_fields) == {"intent", "tool", "args", "template", "error", "tool_schema", "hint"}
    assert (asked.intent, asked.tool) == ("make x", "make_x")
    assert asked.args == {"by": "day", "of": "q1"}
    assert asked.template == {"by": "day", "of": "{{a}}"}
    assert asked.error.message == "too wide"
    assert set(asked.tool_schema["properties"]) == {"by", "of"}
    assert update["plan"].steps[0].call.args == {"by": "hour", "of": "{{a}}"}
    assert (update["ledger"].repairer_calls, update["ledger"].tokens) == (1, 5)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ProposedCall(call=None), id="no idea"),
        pytest.param(proposal(by="week"), id="the call that failed"),
        pytest.param(proposal(by="day"), id="another call that failed"),
        pytest.param(proposal(by="hour", ghost=1), id="an argument that does not exist"),
        pytest.param(proposal(tool="make_a"), id="another tool"),
    ],
)
async def test_a_proposal_that_repeats_or_does_not_fit_is_a_failure_again(answer: ProposedCall) -> None:
    stuck = recovery("patch")
    with ScriptedPatcher(answer) as patcher:
        update = await repair(stuck, patcher=patcher, plan=plan(BY_DAY), ledger=USED)
    assert update["failures"] == (stuck.classified.failure,)
    assert update["phase"] is Phase.CLASSIFIER
    assert update["plan"] == plan(BY_DAY)


async def test_a_template_that_cannot_be_resolved_is_shown_as_planned() -> None:
    loose = BY_DAY.model_copy(update={"call": Call(tool="make_x", args={"by": "{{ghost}}"})})
    wrong = Ledger(tried={"x": tuple(call_digest("make_x", {"by": each}) for each in ("week", "day"))})
    with ScriptedPatcher(ProposedCall(call=None)) as patcher:
        await repair(recovery("patch"), patcher=patcher, plan=plan(loose), ledger=wrong)
        assert patcher.asked[0].args == {"by": "{{ghost}}"}


CHAIN = plan(step("a", status="invalid"), step("b", "a", status="invalid"), step("c", status="done"))


async def test_a_rewrite_asks_for_the_products_of_its_region_and_touches_nothing_else() -> None:
    with ScriptedPlanner(draft(step("a", id="1"), step("b", "a", id="2"))) as planner:
        update = await repair(
            recovery("rewrite", "precondition", "b", delay=2.0, falsified=("a",)), planner=planner, plan=CHAIN
        )
        (asked,) = planner.asked
    assert (asked.region, asked.wants) == (True, ("a", "b"))
    assert statuses(update["plan"]) == {"a": "pending", "b": "pending", "c": "done"}
    assert [each.delay for each in update["plan"].steps] == [2.0, 0.0, 0.0]
    assert update["ledger"].planner_calls == 0


@pytest.mark.parametrize(
    "thrown",
    [
        PlanningFailed("nothing valid", Usage(calls=3, tokens_in=40)),
        Unreachable((Need(name="a"),)),
        ValueError("needs are cyclic"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_region_that_cannot_be_drawn_is_a_failure_again_and_is_paid_for(thrown: Exception) -> None:
    with ScriptedPlanner(thrown) as planner:
        update = await repair(recovery("rewrite", "precondition", "b", falsified=("a",)), planner=planner, plan=CHAIN)
    (again,) = update["failures"]
    assert str(thrown) in again.error.message
    assert update["phase"] is Phase.CLASSIFIER
    assert update["plan"] == CHAIN
    assert update["ledger"].tokens == (40 if isinstance(thrown, PlanningFailed) else 0)


async def test_a_replan_is_ordered_once_with_what_was_falsified() -> None:
    first, second = recovery("replan", "precondition", falsified=("a",)), recovery("replan", "goal", message="later")
    update = await repair(first, second)
    assert update["order"].falsified == ("a",)
    assert update["order"].failure == first.classified.failure
    assert statuses(update["plan"]) == {"x": "invalid"}
    order = PlanOrder(trigger=Trigger.BLOCKED)
    assert (await repair(first, order=order))["order"] == order


async def test_a_broken_predicate_is_what_a_replan_is_told() -> None:
    update = await repair(recovery("replan", "precondition", predicate="artifacts.a == 1"))
    assert update["order"].falsified == ("artifacts.a == 1",)


async def test_what_has_no_rung_left_waits_for_a_person() -> None:
    stuck, before = recovery("escalate", message="no access"), recovery("escalate", of="y")
    update = await repair(stuck, unresolved=(before,))
    assert update["unresolved"] == (before, stuck)
    (only,) = update["plan"].steps
    assert (only.status, only.reason) == ("failed", "no access")
    assert (await repair(recovery("escalate", step=None)))["plan"] == plan(BY_WEEK)


async def test_a_step_that_the_first_recovery_replaced_is_not_brought_back_by_the_second() -> None:
    other = step("b", "a", id="1", call=Call(tool="other"))
    with ScriptedPlanner(draft(step("a", id="0"), other)) as planner:
        update = await repair(
            recovery("rewrite", "precondition", "b", falsified=("a",)),
            recovery("retry", "nothing", "b"),
            planner=planner,
            plan=CHAIN,
        )
    assert update["plan"].step(StepId("B")).status == "superseded"
    assert len([each for each in update["plan"].live() if "b" in each.produces]) == 1

"""The classifier: the table first, a model only for what it does not know, marks along the edges, one charge each."""

from typing import Any

from agent.core.failure import Scope, Trigger
from agent.core.limits import Ledger, Limits
from agent.core.move import PlanOrder
from agent.core.phase import Phase
from agent.core.value import digest
from agent.nodes.classifier import Classifier
from agent.ports import ScopeAnswer, Usage
from tests.builders import (
    WRITE,
    ManualClock,
    ScriptedScope,
    artifact,
    bodies,
    config,
    contracts,
    failure,
    plan,
    promise,
    state,
    statuses,
    step,
    world,
)


async def classify(model: Any = None, promises: Any = None, patcher: bool = False, **channels: Any) -> Any:
    node = Classifier(promises or {}, Limits(), bodies(), ManualClock(), model, patcher)
    return await node(state(**channels), config())


async def test_what_the_table_knows_asks_no_model() -> None:
    with ScriptedScope() as model:
        update = await classify(model, failures=(failure("x", status=503),))
    (only,) = update["recoveries"]
    assert (only.classified.rule, only.choice.rung) == ("status: transient", "retry")
    assert update["ledger"].retry == {"x": 1}
    assert (update["phase"], update["failures"]) == (Phase.REPAIRER, ())


async def test_what_the_table_does_not_know_asks_the_model_and_pays_for_it() -> None:
    strange = failure("x", message="strange")
    with ScriptedScope(ScopeAnswer(scope=Scope.PRECONDITION, usage=Usage(calls=1, tokens_in=9))) as model:
        update = await classify(model, failures=(strange,))
        assert model.asked == [("make x", "make_x", strange.error)]
    assert update["recoveries"][0].classified.scope is Scope.PRECONDITION
    assert (update["ledger"].classifier_calls, update["ledger"].tokens) == (1, 9)


async def test_without_a_model_the_unknown_is_a_wrong_call() -> None:
    update = await classify(failures=(failure("x", message="strange"),))
    found = update["recoveries"][0].classified
    assert (found.scope, found.rule) == (Scope.CALL, "default")


async def test_a_wrong_call_is_remembered_and_a_broken_precondition_is_not_one() -> None:
    update = await classify(failures=(failure("x", status=400),))
    assert list(update["ledger"].tried) == ["x"]
    violated = failure("x", kind="verdict", trigger=Trigger.PRECONDITION_VIOLATION, message="refuted: 1 == 2")
    assert (await classify(failures=(violated,)))["ledger"].tried == {}


async def test_a_falsified_observation_takes_down_what_was_made_from_it() -> None:
    steps = plan(
        step("a", status="done"),
        step("b", "a", status="done"),
        step("x", "b a", status="running"),
        step("o", status="done"),
    )
    held = world(artifact("a", ["total"]), artifact("b", inputs={"a": digest(["total"])}), artifact("o"))
    missing = failure("x", message="column total not found", reads=("a", "b"))
    update = await classify(world=held, plan=steps, failures=(missing,))
    assert statuses(update["plan"]) == {"a": "invalid", "b": "invalid", "x": "invalid", "o": "done"}
    assert [each.event for each in update["trace"]] == ["recovered", "invalidated"]
    assert update["world"].holds("o")


async def test_two_failures_that_call_for_a_replan_are_charged_once() -> None:
    steps = plan(step("x"), step("y"))
    gone = (failure("x", type="FileNotFoundError"), failure("y", type="FileNotFoundError"))
    update = await classify(plan=steps, failures=gone)
    assert [each.choice.joined for each in update["recoveries"]] == [False, True]
    assert update["ledger"].replan == 1
    order = PlanOrder(trigger=Trigger.BLOCKED)
    update = await classify(plan=steps, failures=gone, order=order)
    assert [each.choice.joined for each in update["recoveries"]] == [True, True]
    assert update["ledger"].replan == 0


async def test_an_attempt_over_inputs_that_changed_meanwhile_is_simply_repeated() -> None:
    held = world(artifact("a", "new"))
    late = failure("x", status=400, reads=("a",), inputs={"a": digest("old")})
    update = await classify(world=held, failures=(late,))
    (only,) = update["recoveries"]
    assert (only.classified.scope, only.classified.outdated, only.choice.rung) == (Scope.NOTHING, True, "retry")
    assert update["ledger"].tried == {}


async def test_whether_a_failure_was_a_write_is_read_from_its_step_or_its_tool() -> None:
    steps = plan(step("x", effect=WRITE))
    timed_out = failure("x", kind="timeout")
    assert (await classify(plan=steps, failures=(timed_out,)))["recoveries"][0].choice.rung == "escalate"
    no_step = failure("x", kind="timeout", step=None)
    writes = contracts(promise("make_x", produces="x", effect=WRITE))
    assert (await classify(promises=writes, failures=(no_step,)))["recoveries"][0].classified.effect == "unknown"
    assert (await classify(failures=(no_step,)))["recoveries"][0].classified.effect == "absent"


async def test_the_record_holds_the_ledger_as_it_was_before_the_charge() -> None:
    update = await classify(failures=(failure("x", status=503), failure("x", status=504)), ledger=Ledger(run=3))
    first, second = update["trace"]
    assert (first.ledger.retry, second.ledger.retry, first.run) == ({}, {"x": 1}, 3)
    assert update["ledger"].retry == {"x": 2}

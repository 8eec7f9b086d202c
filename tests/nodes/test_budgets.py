"""What the phase nodes do with budgets and rests: charge the right counter, wait as long as the ledger says."""

from typing import Any

from agent.core.failure import Origin, Scope
from agent.core.limits import Ledger, Limits
from agent.core.move import Start
from agent.core.plan import StepId
from agent.core.spending import Price
from agent.nodes.classifier import Classifier
from agent.nodes.executor import Executor
from agent.ports import Result, ScopeAnswer, Usage
from tests.builders import (
    ManualClock,
    ScriptedRunner,
    ScriptedScope,
    bodies,
    config,
    contracts,
    failure,
    plan,
    promise,
    state,
    step,
    world,
)

DEAR = {"m": Price(call=2.0)}


def running(**more: Any) -> Any:
    steps = plan(step("x", status="running", attempts=1))
    return state(plan=steps, move=Start(steps=(StepId("X"),)), **more)


async def test_a_rest_in_the_checkpoint_holds_in_another_process() -> None:
    clock = ManualClock(at=1000.0)
    ledger = Ledger(endpoints={"make_x": "api.example"}, cooldowns={"api.example": 1007.0})
    with ScriptedRunner(Result(value=1)) as runner:
        await Executor(runner, bodies(), clock, 0.0)(running(ledger=ledger), config())
    assert [each for each in clock.slept if each] == [7.0]


async def test_a_rest_that_is_over_and_one_of_another_endpoint_are_not_waited_for() -> None:
    clock = ManualClock(at=1000.0)
    ledger = Ledger(endpoints={"make_x": "a"}, cooldowns={"a": 999.0, "b": 2000.0, "make_x": 3000.0})
    with ScriptedRunner(Result(value=1)) as runner:
        await Executor(runner, bodies(), clock, 0.0)(running(ledger=ledger), config())
    assert clock.at == 1000.0


async def test_the_executor_pays_for_turns_and_the_table_prices_them() -> None:
    used = Usage(calls=3, tokens_in=20, tokens_out=4, tokens_estimated=24, model="m")
    with ScriptedRunner(Result(value=1, tool_calls=2, usage=used)) as runner:
        update = await Executor(runner, bodies(), ManualClock(), 0.0, DEAR)(running(), config())
    ledger = update["ledger"]
    assert (ledger.executor_turns, ledger.tool_calls, ledger.money) == (3, 2, 6.0)
    assert (ledger.executor_tokens_in, ledger.executor_tokens_out, ledger.tokens_estimated) == (20, 4, 24)


def classifier(model: Any, **limits: Any) -> Classifier:
    promised = contracts(promise("make_x", produces="x"))
    return Classifier(promised, Limits(**limits), bodies(), ManualClock(), model, False, DEAR)


def strange(**more: Any) -> Any:
    channels = {name: more.pop(name) for name in ("ledger", "trace") if name in more}
    given = {"message": "strange", "type": "Odd", **more}
    steps = plan(step("x", "a", status="failed"))
    return state(world=world("a"), plan=steps, failures=(failure(**given),), **channels)


async def test_what_a_model_says_is_charged_to_the_classifier_and_blamed_by_evidence() -> None:
    answer = ScopeAnswer(scope=Scope.PRECONDITION, usage=Usage(calls=1, tokens_in=9, tokens_out=1, model="m"))
    with ScriptedScope(answer) as model:
        update = await classifier(model)(strange(reads=("a",)), config())
    (recovery,) = update["recoveries"]
    assert (recovery.classified.rule, recovery.classified.origin) == ("model", Origin.ENVIRONMENT)
    assert (update["ledger"].classifier_calls, update["ledger"].money) == (1, 2.0)


async def test_what_nobody_knows_counts_as_a_wrong_call() -> None:
    update = await classifier(None)(strange(), config())
    (recovery,) = update["recoveries"]
    found = recovery.classified
    assert (found.rule, found.scope, found.origin) == ("default", Scope.CALL, Origin.AGENT)


async def test_no_model_is_asked_what_the_table_knows_or_what_was_answered_or_once_the_budget_is_used() -> None:
    with ScriptedScope() as model:
        await classifier(model)(strange(status=503), config())
        spent = strange(ledger=Ledger(classifier_calls=1))
        used = await classifier(model, classifier_calls=1)(spent, config())
    assert used["recoveries"][0].classified.rule == "default"
    with ScriptedScope(ScopeAnswer(scope=Scope.NOTHING)) as model:
        first = await classifier(model)(strange(), config())
        again = strange(message="strange; and no other way was found", trace=first["trace"])
        second = await classifier(model)(again, config())
    assert second["recoveries"][0].classified.scope is Scope.NOTHING


async def test_a_wrong_call_is_remembered_as_planned_and_as_sent() -> None:
    update = await classifier(None)(strange(type="ValueError"), config())
    assert len(update["ledger"].tried["x"]) == 2


async def test_a_rate_limit_puts_its_endpoint_to_rest_until_it_asked() -> None:
    limited = strange(status=429, retry_after=2.0, endpoint="api.example")
    update = await classifier(None)(limited, config())
    assert update["ledger"].cooldowns == {"api.example": 1002.0}
    assert update["ledger"].endpoints == {"make_x": "api.example"}

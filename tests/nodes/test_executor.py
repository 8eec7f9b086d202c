"""The executor launches what is marked running, returns with the first that ends, and hides no failure."""

import asyncio
from typing import Any

import pytest

from agent.core.failure import ErrorFacts
from agent.core.move import Start, Wait
from agent.core.phase import Phase
from agent.core.plan import StepId
from agent.core.value import digest
from agent.nodes.executor import Executor
from agent.nodes.scope import RunScope
from agent.ports import Result, Task, Usage
from tests.builders import (
    ManualClock,
    ScriptedRunner,
    artifact,
    bodies,
    config,
    plan,
    state,
    step,
    world,
)


def executor(runner: Any, clock: ManualClock | None = None, jitter: float = 0.0) -> Executor:
    return Executor(runner, bodies(inline=50), clock or ManualClock(), jitter)


def start(*ids: str, wait: bool = True) -> Start:
    return Start(steps=tuple(StepId(each) for each in ids), wait=wait)


async def test_a_step_is_run_on_what_it_reads() -> None:
    held = world(artifact("a", 7), artifact("other", 8), region="eu")
    running = plan(step("x", "a", status="running", attempts=1))
    with ScriptedRunner(Result(value=1, tool_calls=1, usage=Usage(calls=2, tokens_in=30))) as runner:
        update = await executor(runner)(state(plan=running, world=held, move=start("X")), config("thread"))
        (task,) = runner.asked
    assert (task.thread, task.args, task.inputs, task.facts) == ("thread", {"a": 7}, {"a": 7}, {"region": "eu"})
    assert not task.look_first
    (attempt,) = update["attempts"]
    assert (attempt.step, attempt.number, attempt.args, attempt.inputs) == ("X", 1, {"a": "{{a}}"}, {"a": digest(7)})
    ledger = update["ledger"]
    assert (ledger.tool_calls, ledger.executor_turns, ledger.tokens) == (1, 2, 30)
    assert update["phase"] is Phase.VERIFIER
    assert [each.event for each in update["trace"]] == ["attempt_ended"]


async def test_a_reference_to_nothing_is_a_failure_before_anything_is_called() -> None:
    loose = plan(step("x", "a", status="running"))
    with ScriptedRunner() as runner:
        update = await executor(runner)(state(plan=loose, world=world(), move=start("X")), config())
    error = update["attempts"][0].result.error
    assert error is not None
    assert (error.kind, error.type) == ("refused", "UnresolvedReference")


async def test_a_backoff_is_waited_out_with_its_share_of_jitter() -> None:
    clock = ManualClock(share=0.5)
    waiting = plan(step("x", status="running", delay=4.0))
    with ScriptedRunner(Result(value=1)) as runner:
        await executor(runner, clock, jitter=0.25)(state(plan=waiting, move=start("X")), config())
    assert clock.slept == [4.5]


async def test_a_large_value_is_parked_and_only_its_digest_travels() -> None:
    with ScriptedRunner(Result(value="x" * 100)) as runner:
        running = plan(step("x", status="running"))
        update = await executor(runner)(state(plan=running, move=start("X")), config())
    result = update["attempts"][0].result
    assert (result.value, result.stored) == (None, digest("x" * 100))


@pytest.mark.parametrize(
    ("move", "made", "looks"),
    [
        pytest.param(start("X"), False, False, id="started now for the first time"),
        pytest.param(Wait(), False, True, id="lost with its process"),
        pytest.param(start("X"), True, True, id="its artifact was made before"),
    ],
)
async def test_a_step_that_may_have_acted_before_looks_first(move: Any, made: bool, looks: bool) -> None:
    held = world(artifact("x", mark="root")) if made else world()
    running = plan(step("x", status="running", attempts=1))
    with ScriptedRunner(Result(value=1)) as runner:
        await executor(runner)(state(plan=running, world=held, move=move), config())
        assert runner.asked[0].look_first is looks


async def test_a_step_in_flight_is_not_started_again() -> None:
    go_on, scope, ran = asyncio.Event(), RunScope(), list[str]()

    class Slow:
        async def run(self, task: Task) -> Result:
            ran.append(task.step.id)
            if task.step.id == "SLOW":
                await go_on.wait()
            return Result(value=1)

    node = executor(Slow())
    both = state(plan=plan(step("slow", status="running"), step("x", status="running")), move=start("SLOW", "X"))
    first = await node(both, config(scope=scope))
    assert [each.step for each in first["attempts"]] == ["X"]
    go_on.set()
    rest = state(plan=plan(step("slow", status="running")), move=Wait())
    second = await node(rest, config(scope=scope))
    assert [each.step for each in second["attempts"]] == ["SLOW"]
    assert ran == ["SLOW", "X"]


async def test_without_waiting_it_leaves_what_has_finished_to_the_next_round() -> None:
    scope, both = RunScope(), plan(step("x", status="running"), step("y", status="running"))
    with ScriptedRunner(Result(value=1), Result(value=2)) as runner:
        first = await executor(runner)(state(plan=both, move=start("X", "Y", wait=False)), config(scope=scope))
        while any(each.get_name().startswith("step ") for each in asyncio.all_tasks()):
            await asyncio.sleep(0)
        again = await executor(runner)(state(plan=both, move=start("Y", wait=False)), config(scope=scope))
        last = await executor(runner)(state(plan=both, move=Wait()), config(scope=scope))
    assert [(each["attempts"], each["phase"]) for each in (first, again)] == [((), Phase.DISPATCHER)] * 2
    assert [each.step for each in last["attempts"]] == ["X", "Y"]


async def test_a_failed_attempt_is_told_as_it_was() -> None:
    error = ErrorFacts(kind="exception", message="no")
    with ScriptedRunner(Result(error=error, tool_calls=1)) as runner:
        update = await executor(runner)(state(plan=plan(step("x", status="running")), move=start("X")), config())
    (record,) = update["trace"]
    assert (record.ok, record.error) == (False, "no")  # type: ignore[union-attr]

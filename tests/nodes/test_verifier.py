"""The verifier: only here does a step become done, only what is verified is committed, and staleness is noticed."""

from typing import Any

import pytest

from agent.core.failure import ErrorFacts
from agent.core.limits import Ledger
from agent.core.move import Look
from agent.core.phase import Phase
from agent.core.predicate import Judgement, Verdict
from agent.core.value import digest
from agent.nodes.verifier import Verifier
from agent.ports import Attempt, Observation, Result
from tests.builders import (
    ManualClock,
    ScriptedProber,
    artifact,
    bodies,
    config,
    plan,
    state,
    statuses,
    step,
    world,
)

FINE = (Judgement(predicate="gives a value", verdict=Verdict.VERIFIED),)


def attempt(of: str = "x", value: Any = 1, error: ErrorFacts | None = None, **more: Any) -> Attempt:
    fields = {"judgements": FINE, "by": ("result",), **more}
    inputs = fields.pop("inputs", {})
    result = Result(value=value, error=error, **fields)
    return Attempt(step=of.upper(), number=1, inputs=inputs, result=result)  # type: ignore[arg-type]


async def verify(*attempts: Attempt, prober: Any = None, **channels: Any) -> Any:
    node = Verifier(prober or ScriptedProber(), bodies(), ManualClock())
    running = plan(step("x", status="running"), step("y", status="running"))
    return await node(state(attempts=attempts, **{"plan": running, **channels}), config())


async def test_a_verified_attempt_is_done_and_its_artifact_is_in_the_world() -> None:
    update = await verify(attempt("x", 7, seen=digest(7)))
    made = update["world"].artifacts["x"]
    assert (made.value, made.producer, made.verification.by, made.seen) == (7, "X", ("result",), digest(7))
    assert statuses(update["plan"]) == {"x": "done", "y": "running"}
    assert (update["phase"], update["ledger"].verified, update["attempts"]) == (Phase.DISPATCHER, 1, ())
    assert [each.event for each in update["trace"]] == ["judged", "committed"]
    assert update["world"].tick == 1


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(attempt("x", error=ErrorFacts(kind="exception", message="no")), id="an error"),
        pytest.param(attempt("x", judgements=()), id="nothing was judged"),
        pytest.param(attempt("x", judgements=(*FINE, Judgement(predicate="p", verdict=Verdict.REFUTED))), id="refuted"),
        pytest.param(
            attempt("x", judgements=(*FINE, Judgement(predicate="p", verdict=Verdict.UNVERIFIABLE))), id="unverifiable"
        ),
    ],
)
async def test_everything_else_is_a_failure_whatever_the_tool_said(failed: Attempt) -> None:
    update = await verify(failed)
    assert update["world"].artifacts == {}
    assert statuses(update["plan"])["x"] == "failed"
    (only,) = update["failures"]
    assert (only.step, only.key, only.tool) == ("X", "x", "make_x")
    assert (update["phase"], update["ledger"].barren, update["ledger"].verified) == (Phase.CLASSIFIER, 1, 0)


async def test_one_failure_does_not_hide_what_the_others_made() -> None:
    update = await verify(attempt("x", error=ErrorFacts(kind="timeout")), attempt("y", 2))
    assert list(update["world"].artifacts) == ["y"]
    assert len(update["failures"]) == 1
    assert statuses(update["plan"])["y"] == "done"


async def test_several_products_are_committed_by_name() -> None:
    two = plan(step("x y", status="running"))
    update = await verify(attempt("x", {"x": 1, "y": 2, "z": 3}), plan=two)
    assert {name: each.value for name, each in update["world"].artifacts.items()} == {"x": 1, "y": 2}


async def test_an_artifact_knows_what_it_was_made_from_and_under_which_assumptions() -> None:
    made = plan(step("x", "a", status="running", preconditions=["facts.region == 'eu'"]))
    update = await verify(attempt("x", inputs={"a": digest(1)}), plan=made, world=world("a", region="eu"))
    found = update["world"].artifacts["x"]
    assert found.inputs == {"a": digest(1)}
    (assumed,) = found.assumptions
    assert (assumed.predicate, assumed.reads) == ("facts.region == 'eu'", {"a": digest(1)})


async def test_the_same_content_again_is_no_progress_and_invalidates_nothing() -> None:
    held = world(artifact("x", 1, mark="root"), artifact("y", inputs={"x": digest(1)}, mark="derived"))
    steps = plan(step("x", status="running"), step("y", "x", status="invalid"))
    update = await verify(attempt("x", 1), world=held, plan=steps, ledger=Ledger(barren=3))
    assert statuses(update["plan"]) == {"x": "done", "y": "done"}
    assert (update["ledger"].verified, update["ledger"].barren) == (0, 3)
    assert update["trace"][-1].unchanged


async def test_new_content_is_progress_and_forgets_what_was_wrong_on_the_old() -> None:
    steps = plan(step("x", status="running"), step("y", "x"))
    update = await verify(attempt("x", 2), plan=steps, ledger=Ledger(barren=3, tried={"y": ("d",)}))
    assert (update["ledger"].verified, update["ledger"].barren, update["ledger"].tried) == (1, 0, {})


async def test_a_step_that_was_superseded_meanwhile_leaves_its_artifact_and_nothing_else() -> None:
    steps = plan(step("x", status="superseded"), step("x", id="X2"))
    update = await verify(attempt("x", 5), plan=steps)
    assert update["world"].artifacts["x"].value == 5
    assert update["plan"].steps[0].status == "superseded"


async def test_a_parked_value_becomes_a_stored_artifact() -> None:
    shelf = bodies(inline=10)
    stored = await shelf.parked("x" * 100)
    node = Verifier(ScriptedProber(), shelf, ManualClock())
    given = attempt("x", None, stored=stored)
    update = await node(state(attempts=(given,), plan=plan(step("x", status="running"))), config())
    made = update["world"].artifacts["x"]
    assert (made.stored, made.value, made.digest, made.size) == (True, None, stored, 102)


# --- looking again ----------------------------------------------------------------------------------------------

SEEN = world(artifact("a", 1, seen=digest(1)), artifact("b", 2, seen=digest(2)))
MAKERS = plan(step("a", status="done"), step("b", "a", status="done"))


async def look(*seen: Any, names: tuple[str, ...] = ("a", "b"), **channels: Any) -> Any:
    with ScriptedProber(*seen) as prober:
        channels = {"world": SEEN.ticked(), "plan": MAKERS, **channels}
        update = await verify(prober=prober, move=Look(names=names), **channels)
        return update, prober.asked


async def test_what_is_as_it_was_is_seen_at_this_tick() -> None:
    update, asked = await look(Observation(value=1), Observation(value=2))
    assert {each.seen_at for each in update["world"].artifacts.values()} == {1}
    assert (update["failures"], update["phase"]) == ((), Phase.DISPATCHER)
    assert asked == [("make_a", {}), ("make_b", {"a": 1})]


BLIND = ErrorFacts(kind="probe", message="no sight")


@pytest.mark.parametrize(
    ("seen", "kind", "says"),
    [
        (Observation(value=9), "stale", "a changed since it was verified"),
        (Observation(value=None), "stale", "a is gone since it was verified"),
        (Observation(error=BLIND), "probe", "a could not be looked at again: no sight"),
    ],
)
async def test_what_is_not_as_it_was_is_a_failure_of_nobodys_step(seen: Observation, kind: str, says: str) -> None:
    update, _ = await look(seen, Observation(value=2))
    (only,) = update["failures"]
    assert only.error.message.startswith(says)
    assert (only.error.kind, only.step, only.reads, only.key) == (kind, None, ("a",), "a")
    assert update["phase"] is Phase.CLASSIFIER
    assert update["world"].artifacts["b"].seen_at == 1


async def test_what_nothing_can_look_at_any_more_is_taken_as_it_is() -> None:
    update, _ = await look(None, names=("a",))
    assert update["failures"] == ()
    update, _ = await look(names=("a",), plan=plan())
    assert update["failures"] == ()
    gone = SEEN.with_artifacts(artifact("a", 1, mark="root", seen=digest(1)))
    update, _ = await look(names=("b",), world=gone)
    assert update["failures"] == ()


async def test_finished_attempts_are_verified_before_anything_is_looked_at() -> None:
    update = await verify(attempt("x"), move=Look(names=("a",)))
    assert list(update["world"].artifacts) == ["x"]

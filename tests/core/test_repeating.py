"""A repair that makes the failed call once more is refused before it runs, however the call is spelled."""

from agent.core.dispatch import next_move
from agent.core.limits import Ledger, Limits
from agent.core.move import Broken, Start
from agent.core.plan import Call, StepId
from agent.core.repeating import as_sent, excused, noted, repeats, reproduced, spellings
from tests.builders import goal, plan, step, view, world

PLANNED = Call(tool="load", args={"week": "{{week}}", "by": "day"})
SENT = Call(tool="load", args={"week": 7, "by": "day"})
SEEN = {"week": 7}


def wrong(call: Call = PLANNED, needs: str = "week") -> Ledger:
    return noted(Ledger(), step("x", needs, call=call), SEEN)


def test_a_call_is_known_as_planned_and_as_sent() -> None:
    ledger = wrong()
    assert ledger.tried == {"x": spellings(PLANNED, SEEN)}
    assert len(ledger.tried["x"]) == 2
    assert repeats(PLANNED, "x", ledger, {})
    assert repeats(SENT, "x", ledger, {})


def test_a_call_that_spells_a_reference_where_a_value_failed_is_the_same() -> None:
    ledger = noted(Ledger(), step("x", call=SENT), {})
    assert repeats(PLANNED, "x", ledger, SEEN)
    assert not repeats(PLANNED, "x", ledger, {"week": 8})


def test_another_call_or_other_products_are_not() -> None:
    ledger = wrong()
    assert not repeats(Call(tool="load", args={"week": 7, "by": "hour"}), "x", ledger, SEEN)
    assert not repeats(Call(tool="pull", args=SENT.args), "x", ledger, SEEN)
    assert not repeats(PLANNED, "y", ledger, SEEN)


def test_what_is_noted_twice_is_noted_once() -> None:
    ledger = wrong()
    assert noted(ledger, step("x", "week", call=PLANNED), SEEN) is ledger
    assert noted(ledger, step("y", call=None, instruction="do"), SEEN) is ledger


def test_a_reference_that_leads_nowhere_is_taken_as_it_is_written() -> None:
    assert as_sent(PLANNED, {}) == {"week": "{{week}}", "by": "day"}
    assert spellings(PLANNED, {}) == (spellings(PLANNED, {})[0],)


def test_a_step_that_would_repeat_is_a_failure_and_is_not_started() -> None:
    steps = plan(step("week", status="done"), step("x", "week", call=PLANNED), step("y"))
    state = world("week")
    move = next_move(goal("x y"), state, steps, view(state), Limits(), wrong())
    assert isinstance(move, Start)
    assert move.steps == ("Y",)
    alone = plan(step("week", status="done"), step("x", "week", call=PLANNED))
    stuck = next_move(goal("x"), state, alone, view(state), Limits(), wrong())
    assert isinstance(stuck, Broken)
    (failed,) = stuck.failures
    assert (failed.error.kind, failed.error.type, failed.tool) == ("refused", "RepeatedCall", "load")


def test_a_step_with_another_call_or_with_none_is_started() -> None:
    assert reproduced(step("x", "week", call=SENT), Ledger()) is None
    assert reproduced(step("x", call=None, instruction="do"), wrong()) is None


def test_steps_that_look_again_by_order_are_excused_and_no_others() -> None:
    ledger = Ledger(tried={"a": ("1",), "b": ("2",)})
    steps = plan(step("a"), step("b"))
    assert excused(ledger, steps, [StepId("A")]).tried == {"b": ("2",)}
    assert excused(ledger, steps, []) is ledger

"""What each repair would do without a model: another argument, another tool, a region to redo."""

from typing import Any

import pytest

from agent.core.aftermath import teaches
from agent.core.failure import Trigger
from agent.core.limits import Ledger
from agent.core.plan import Call, Plan, Step, StepId
from agent.core.repair import boundary, call_digest, forget, options, region
from agent.core.ways import learned, next_patch, proven_wrong, remember
from tests.builders import WRITE, classified, contracts, plan, promise, step


def calling(tool: str = "make_x", **args: Any) -> Step:
    return step("x", call=Call(tool=tool, args=args))


def patches(start: Step, promises: Any) -> list[tuple[str, dict[str, Any]]]:
    """All the patches one after the other, each proven wrong in turn."""
    found: list[tuple[str, dict[str, Any]]] = []
    ledger, current = Ledger(), start
    while True:
        ledger = remember(ledger, current)
        patch = next_patch(current, promises, ledger)
        if patch is None:
            return found
        current = patch.step
        assert current.call is not None
        found.append((current.call.tool, current.call.args))


def test_declared_values_are_tried_in_order_and_each_only_once() -> None:
    promises = contracts(promise("make_x", produces="x", alternatives={"by": ("week", "day", "hour")}))
    assert patches(calling(by="week", of="rows"), promises) == [
        ("make_x", {"by": "day", "of": "rows"}),
        ("make_x", {"by": "hour", "of": "rows"}),
    ]


def test_values_come_before_stand_ins_and_cheap_stand_ins_before_dear_ones() -> None:
    promises = contracts(
        promise("make_x", produces="x", alternatives={"by": ("week", "day")}),
        promise("dear", produces="x", stands_in_for="make_x", cost=9),
        promise("cheap", produces="x", stands_in_for="make_x", cost=2),
        promise("unrelated", produces="x"),
    )
    assert [tool for tool, _ in patches(calling(by="week"), promises)] == ["make_x", "cheap", "dear"]


def test_a_stand_in_can_itself_be_stood_in_for_by_its_family() -> None:
    promises = contracts(
        promise("make_x", produces="x"),
        promise("one", produces="x", stands_in_for="make_x"),
        promise("two", produces="x", stands_in_for="make_x", cost=2),
    )
    assert [tool for tool, _ in patches(calling("one"), promises)] == ["make_x", "two"]


@pytest.mark.parametrize(
    ("stand_in", "serves"),
    [
        pytest.param(promise("other", produces="x", stands_in_for="make_x"), True, id="from nothing"),
        pytest.param(promise("other", "a", "x", stands_in_for="make_x"), True, id="from what the step waits for"),
        pytest.param(promise("other", "b", "x", stands_in_for="make_x"), False, id="from something else"),
        pytest.param(promise("other", produces="y", stands_in_for="make_x"), False, id="another artifact"),
        pytest.param(promise("other", produces="x y", stands_in_for="make_x"), True, id="more than is needed"),
    ],
)
def test_a_stand_in_makes_the_same_from_what_is_there(stand_in: Any, serves: bool) -> None:
    patch = next_patch(step("x", "a"), contracts(promise("make_x", "a", "x"), stand_in), Ledger())
    assert (patch is not None) is serves
    if patch:
        assert patch.step.id == "X"
        assert patch.step.produces == ("x",)
        assert "other stands in for make_x" in patch.because


def test_a_stand_in_for_one_member_of_a_family_takes_over_its_element() -> None:
    one = step("x_3", call=Call(tool="make", args={"n": 3}))
    family = contracts(
        promise("make", produces="x_{n}", each={"n": "ns"}),
        promise("other", produces="x_{n}", each={"n": "ns"}, stands_in_for="make"),
    )
    patch = next_patch(one, family, Ledger())
    assert patch is not None
    assert patch.step.call == Call(tool="other", args={"n": 3})


def test_a_patch_brings_the_stand_ins_own_promises_with_it() -> None:
    other = promise("other", produces="x", stands_in_for="make_x", effect=WRITE, ensures="artifacts.x == 1")
    patch = next_patch(step("x", attempts=2, serves=["c"]), contracts(promise("make_x", produces="x"), other), Ledger())
    assert patch is not None
    assert (patch.step.effect, patch.step.effects) == (WRITE, ("artifacts.x == 1",))
    assert (patch.step.attempts, patch.step.serves) == (2, ("c",))


def test_an_instruction_and_an_unknown_tool_have_no_patch() -> None:
    assert next_patch(step("x", call=None, instruction="do it"), {}, Ledger()) is None
    assert next_patch(step("x"), {}, Ledger()) is None


def test_the_identity_of_a_call_is_its_tool_and_its_arguments() -> None:
    assert call_digest("t", {"a": 1, "b": 2}) == call_digest("t", {"b": 2, "a": 1})
    assert call_digest("t", {"a": 1}) != call_digest("u", {"a": 1}) != call_digest("t", {"a": 2})


def test_what_was_proven_wrong_is_remembered_once_and_for_the_product() -> None:
    ledger = remember(remember(Ledger(), calling(by=1)), calling(by=1))
    assert ledger.tried == {"x": (call_digest("make_x", {"by": 1}),)}
    assert proven_wrong(calling(by=1).model_copy(update={"id": StepId("other")}), ledger)
    assert not proven_wrong(calling(by=2), ledger)
    assert remember(ledger, step("x", call=None)) == ledger


def test_a_new_draft_does_not_go_back_on_what_was_learned() -> None:
    promises = contracts(promise("make_x", produces="x", alternatives={"by": ("week", "day")}))
    ledger = remember(Ledger(), calling(by="week"))
    (once,) = learned([calling(by="week")], promises, ledger)
    assert once.call == Call(tool="make_x", args={"by": "day"})
    assert learned([calling(by="day")], promises, ledger) == (calling(by="day"),)
    assert learned([calling(by="week")], {}, ledger) == (calling(by="week"),)


@pytest.mark.parametrize(
    ("effect", "idempotent", "learns"),
    [("absent", False, True), ("present", False, False), ("unknown", False, False), ("present", True, True)],
)
def test_a_call_is_not_proven_wrong_while_a_write_of_it_may_stand(effect: str, idempotent: bool, learns: bool) -> None:
    known = contracts(promise("make_x", produces="x", effect=WRITE, idempotent=idempotent))
    assert teaches(classified("call", effect=effect), known) is learns
    assert not teaches(classified("nothing", effect=effect), known)
    assert not teaches(classified("call", effect=effect, trigger=Trigger.PRECONDITION_VIOLATION), known)


def test_with_new_inputs_it_is_another_call() -> None:
    steps = plan(step("x", "a"), step("y"))
    ledger = remember(remember(Ledger(), steps.steps[0]), steps.steps[1])
    assert set(forget(ledger, steps, ["a"]).tried) == {"y"}
    assert forget(ledger, steps, ["b"]) is ledger


# --- the region a rewrite would redo ----------------------------------------------------------------------------


def seed(**more: Any) -> Plan:
    return plan(
        step("config"),
        step("settings", "config"),
        step("schema"),
        step("db", "settings schema", effect=WRITE, **more),
        step("report", "settings"),
    )


def test_a_precondition_judged_in_advance_breaks_its_step_and_looks_again() -> None:
    violation = classified(
        "precondition",
        "db",
        trigger=Trigger.PRECONDITION_VIOLATION,
        kind="verdict",
        reads=("schema",),
        falsified=("schema",),
    )
    part = region(violation, seed())
    assert part.observers == {"SCHEMA"}
    assert part.steps == {"SCHEMA", "DB"}
    assert part.breadth == pytest.approx(0.2)


def test_a_precondition_that_surprised_takes_down_all_that_stands_on_it() -> None:
    surprise = classified("precondition", "db", reads=("settings", "schema"), falsified=("settings",))
    part = region(surprise, seed())
    assert part.observers == {"SETTINGS"}
    assert part.steps == {"SETTINGS", "DB", "REPORT"}


def test_the_second_time_the_sources_are_looked_at_as_well() -> None:
    surprise = classified("precondition", "db", falsified=("settings",))
    assert region(surprise, seed(), depth=1).observers == {"CONFIG", "SETTINGS"}


def test_a_reference_that_leads_nowhere_puts_only_its_own_artifact_in_doubt() -> None:
    said = "{{settings.database}} asks for 'database', which 'settings' does not have"
    lost = classified("call", "db", type="UnresolvedReference", message=said, reads=("schema", "settings"))
    assert region(lost, seed()).observers == {"SETTINGS"}


def test_what_writes_does_not_look_again() -> None:
    surprise = classified("precondition", "report", falsified=("db",))
    assert region(surprise, seed()).observers == frozenset()


def test_what_was_seen_to_have_changed_is_made_again_whatever_made_it() -> None:
    stale = classified("precondition", "", step=None, kind="stale", reads=("db",), falsified=("db",))
    part = region(stale, seed())
    assert part.observers == {"DB"}
    assert part.steps == {"DB"}


def test_a_reader_whose_own_result_was_refuted_looks_again_itself() -> None:
    refuted = classified("call", "schema", kind="verdict")
    assert region(refuted, seed()).observers == {"SCHEMA"}


def test_a_plan_without_the_makers_has_nothing_to_look_at() -> None:
    part = region(classified("precondition", "ghost", falsified=("nowhere",)), plan())
    assert (part.steps, part.breadth) == (frozenset(), 0)


def test_the_boundary_of_a_region_is_what_it_makes() -> None:
    assert boundary(seed(), [StepId("DB"), StepId("SCHEMA")]) == ("schema", "db")


# --- what the ladder may choose from ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "contract", "repeatable"),
    [
        pytest.param("absent", None, True, id="nothing happened"),
        pytest.param("unknown", None, False, id="unknown, no contract"),
        pytest.param("unknown", {}, False, id="unknown, nothing can look"),
        pytest.param("unknown", {"observable": True}, True, id="unknown, but can be looked at"),
        pytest.param("unknown", {"idempotent": True}, True, id="unknown, but harmless"),
        pytest.param("present", {"observable": True}, False, id="there, but not as promised"),
        pytest.param("present", {"idempotent": True}, True, id="there, and harmless to repeat"),
    ],
)
def test_work_is_repeated_only_where_it_cannot_be_done_twice(
    effect: str, contract: dict[str, Any] | None, repeatable: bool
) -> None:
    known = {} if contract is None else contracts(promise("make_x", produces="x", effect=WRITE, **contract))
    found = options(classified("nothing", effect=effect), plan(step("x")), known, Ledger(), False)
    assert found.repeatable is repeatable


def test_a_step_is_patchable_while_a_way_is_left() -> None:
    known = contracts(promise("make_x", produces="x", alternatives={"by": ("week", "day")}))
    steps = plan(calling(by="week"))
    ledger = Ledger()
    assert options(classified("call"), steps, known, ledger, False).patchable
    ledger = remember(ledger, calling(by="day"))
    assert not options(classified("call"), steps, known, ledger, False).patchable
    assert options(classified("call"), steps, known, ledger, model_can_patch=True).patchable


@pytest.mark.parametrize("kind", ["lost", "probe"])
def test_while_nobody_could_look_whether_a_write_stands_no_other_call_is_made_for_it(kind: str) -> None:
    promised: dict[str, Any] = {"alternatives": {"by": ("week", "day")}, "effect": WRITE, "observable": True}
    steps, unknown = plan(calling(by="week")), classified("nothing", effect="unknown", kind=kind)
    once = options(unknown, steps, contracts(promise("make_x", produces="x", **promised)), Ledger(), True)
    assert (once.repeatable, once.patchable) == (True, False)
    harmless = contracts(promise("make_x", produces="x", idempotent=True, **promised))
    assert options(unknown, steps, harmless, Ledger(), False).patchable


def test_without_a_step_a_call_or_a_tool_that_exists_there_is_nothing_to_patch() -> None:
    known = contracts(promise("make_x", produces="x"))
    assert options(classified("call"), plan(step("x")), known, Ledger(), True).patchable
    assert not options(classified("call", step=None), plan(step("x")), known, Ledger(), True).patchable
    assert not options(classified("call"), plan(step("x")), {}, Ledger(), True).patchable
    instructed = plan(step("x", call=None, instruction="do it"))
    assert not options(classified("call"), instructed, {}, Ledger(), True).patchable


def test_breadth_counts_only_when_the_plan_was_surprised() -> None:
    surprise = classified("precondition", "db", falsified=("settings",))
    assert options(surprise, seed(), {}, Ledger(), False).breadth == pytest.approx(0.4)
    foreseen = classified(
        "precondition", "db", trigger=Trigger.PRECONDITION_VIOLATION, kind="verdict", falsified=("schema",)
    )
    assert options(foreseen, seed(), {}, Ledger(), False).breadth == 0

"""A change holds all of what is new, and nothing else: laid over the old value it gives the new one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.core.change import (
    LedgerChange,
    PlanChange,
    WorldChange,
    changed_ledger,
    changed_plan,
    changed_world,
    ledger_change,
    plan_change,
    world_change,
)
from agent.core.limits import Ledger
from agent.core.plan import Plan, Step, StepId, StepStatus
from agent.core.value import digest
from agent.core.world import Artifact, Fact, Mark, Verification, World

NAMES = st.sampled_from("abcdef")


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    value = draw(st.integers(0, 3))
    mark = Mark(cause="it changed", root=True) if draw(st.booleans()) else None
    name = draw(NAMES)
    return Artifact(
        name=name, digest=digest(value), value=value, producer="s", verification=Verification(by=("result",)), mark=mark
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    made = {each.name: each for each in draw(st.lists(artifacts(), max_size=6))}
    facts = {name: Fact(name=name, value=draw(st.integers(0, 2))) for name in draw(st.sets(NAMES, max_size=3))}
    return World(version=draw(st.integers(0, 9)), tick=draw(st.integers(0, 9)), artifacts=made, facts=facts)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ids = draw(st.lists(NAMES, max_size=6, unique=True))
    steps = tuple(
        Step(id=StepId(each), intent=each, status=draw(st.sampled_from(StepStatus)), attempts=draw(st.integers(0, 2)))
        for each in ids
    )
    return Plan(revision=draw(st.integers(0, 3)), goal_revision=draw(st.integers(0, 3)), steps=steps)


@given(worlds(), worlds())
def test_a_world_comes_back_from_its_change(old: World, new: World) -> None:
    match world_change(old, new):
        case WorldChange() as change:
            assert changed_world(old, change) is new
            assert changed_world(old, WorldChange.model_validate(change.model_dump())) == new
        case change:
            assert (change or old) == new


@given(plans(), plans())
def test_a_plan_comes_back_from_its_change_steps_in_order(old: Plan, new: Plan) -> None:
    match plan_change(old, new):
        case PlanChange() as change:
            assert changed_plan(old, change) is new
            assert changed_plan(old, PlanChange.model_validate(change.model_dump())) == new
        case change:
            assert (change or old) == new


def test_a_change_laid_over_another_value_changes_that_one() -> None:
    change = world_change(World(), World(tick=1))
    assert isinstance(change, WorldChange)
    other = World(facts={"f": Fact(name="f", value=1)})
    assert changed_world(other, change) == other.ticked()


def test_nothing_is_written_for_what_is_the_same() -> None:
    old = Plan(revision=1, steps=(Step(id=StepId("a"), intent="a"),))
    assert plan_change(old, old.model_copy()) is None
    assert world_change(World(tick=2), World(tick=2)) is None


def test_a_change_names_only_what_changed() -> None:
    one, other = (Step(id=StepId(each), intent=each) for each in "ab")
    old = Plan(revision=1, steps=(one, other))
    change = plan_change(old, old.with_steps(other.as_(StepStatus.DONE)))
    assert isinstance(change, PlanChange)
    assert [each.id for each in change.steps] == ["b"]


def test_a_world_that_lost_something_is_written_whole() -> None:
    old = World(facts={"f": Fact(name="f", value=1)})
    assert world_change(old, World()) == World()


def test_a_mapping_without_the_word_change_is_a_whole() -> None:
    with pytest.raises(ValidationError, match="change"):
        WorldChange.model_validate(World(version=1, tick=1).model_dump())
    with pytest.raises(ValidationError, match="change"):
        PlanChange.model_validate(Plan(revision=1, goal_revision=1, planner="x").model_dump())


def ledgers() -> st.SearchStrategy[Ledger]:
    books = st.dictionaries(NAMES, st.integers(1, 3), max_size=3)
    return st.builds(
        Ledger, moves=st.integers(0, 2), retry=books, tried=st.dictionaries(NAMES, st.just(("x",)), max_size=2)
    )


@given(ledgers(), ledgers())
def test_a_ledger_comes_back_from_its_change(old: Ledger, new: Ledger) -> None:
    match ledger_change(old, new):
        case LedgerChange() as change:
            assert changed_ledger(old, change) is new
            assert changed_ledger(old, LedgerChange.model_validate(change.model_dump())) == new
        case change:
            assert (change or old) == new


def test_a_change_of_a_ledger_has_the_new_entry_of_a_book_and_not_the_others() -> None:
    old = Ledger(retry={f"s{each}": 1 for each in range(100)})
    change = ledger_change(old, old.model_copy(update={"retry": {**old.retry, "s7": 2}}))
    assert isinstance(change, LedgerChange)
    assert change.fields == {"retry": {"s7": 2}}

"""Chaining: from what is wanted back to what is there, the cheapest way, or a proof that there is none."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.chaining import Unreachable, chain
from agent.core.contract import EffectClass, ToolContract
from agent.core.plan import Step
from agent.core.value import JsonValue


def makes(tool: str, produces: str, needs: str = "", **more: Any) -> ToolContract:
    return ToolContract(tool=tool, produces=tuple(produces.split()), needs=tuple(needs.split()), **more)


def plan(wants: str, *contracts: ToolContract, present: str = "", **more: Any) -> tuple[Step, ...]:
    given: dict[str, JsonValue] = more.pop("given", {})
    return chain(wants.split(), {each.tool: each for each in contracts}, present.split(), given, **more)


def tools(steps: tuple[Step, ...]) -> list[str]:
    return [each.tools[0] for each in steps]


SEED = (
    makes("fetch_config", "config_raw"),
    makes("parse_config", "settings", "config_raw"),
    makes("fetch_schema", "schema"),
    makes("provision_db", "db", "settings schema"),
    makes("generate_report", "report", "settings"),
)


def test_the_way_from_the_wants_back_comes_out_in_an_order_that_can_be_run() -> None:
    steps = plan("db report", *SEED)
    assert tools(steps) == ["fetch_config", "parse_config", "fetch_schema", "provision_db", "generate_report"]
    assert [each.needs for each in steps] == [(), ("config_raw",), (), ("settings", "schema"), ("settings",)]


def test_what_is_present_is_used_and_not_made_again() -> None:
    assert tools(plan("db", *SEED, present="settings")) == ["fetch_schema", "provision_db"]
    assert plan("db", *SEED, present="db") == ()


def test_without_reuse_the_whole_way_is_drawn_down_to_what_is_given() -> None:
    steps = plan("db", *SEED, present="settings schema", given={"config_raw": "x"}, reuse=False)
    assert tools(steps) == ["parse_config", "fetch_schema", "provision_db"]


def test_a_step_carries_what_its_contract_promises() -> None:
    contract = makes(
        "load",
        "rows",
        "source",
        args={"path": "{{source.path}}"},
        requires="artifacts.quota.left > 0",
        ensures="artifacts.rows.size() > 0",
        effect="read_only",
        idempotent=True,
        alternatives={"size": (100, 10)},
        intent="Load the rows",
    )
    (step,) = plan("rows", contract, present="source quota")
    assert step.call is not None
    assert (step.call.tool, step.call.args) == ("load", {"path": "{{source.path}}", "size": 100})
    assert (step.intent, step.effect, step.idempotent) == ("Load the rows", EffectClass.READ_ONLY, True)
    assert (step.preconditions, step.effects) == (contract.requires, contract.ensures)
    assert step.needs == ("source", "quota")


def test_of_two_ways_the_cheaper_is_taken_with_all_that_it_needs() -> None:
    cheap_alone = makes("direct", "x", "costly", stands_in_for="other")
    other, costly = makes("other", "x", cost=3), makes("costly", "costly", cost=5)
    assert tools(plan("x", cheap_alone, other, costly)) == ["other"]
    assert tools(plan("x", cheap_alone, other, costly, present="costly")) == ["direct"]
    assert tools(plan("x", cheap_alone, other, costly, excluded=frozenset({"other"}))) == ["costly", "direct"]


def test_of_two_equal_ways_the_first_is_taken() -> None:
    assert tools(plan("x", makes("b", "x"), makes("a", "x", stands_in_for="b"))) == ["b"]


def test_a_need_that_nothing_makes_is_named_with_the_way_that_led_to_it() -> None:
    with pytest.raises(Unreachable) as caught:
        plan("db", makes("provision_db", "db", "settings"), makes("parse_config", "settings", "config_raw"))
    (need,) = caught.value.needs
    assert (need.name, need.wanted_by) == ("config_raw", ("settings", "db"))
    assert str(caught.value) == "no tool produces 'config_raw' (needed by settings <- db)"


def test_every_missing_need_is_named_once() -> None:
    with pytest.raises(Unreachable) as caught:
        plan("a b z", makes("a", "a", "x y"), makes("b", "b", "x"))
    assert [each.name for each in caught.value.needs] == ["x", "y", "z"]


def test_a_stand_in_that_can_be_had_is_taken_instead_of_one_that_cannot() -> None:
    assert tools(plan("x", makes("best", "x", "lost", cost=0), makes("next", "x", stands_in_for="best"))) == ["next"]


def test_needs_in_a_circle_are_refused_and_the_circle_is_named() -> None:
    with pytest.raises(ValueError, match=r"needs are cyclic: a -> c -> b -> a"):
        plan("a", makes("a", "a", "b"), makes("b", "b", "c"), makes("c", "c", "a"))


def test_a_circle_that_can_be_entered_from_outside_is_none() -> None:
    circle = (makes("a", "a", "b"), makes("b", "b", "a"), makes("seed", "a", cost=9, stands_in_for="a"))
    assert tools(plan("b", *circle)) == ["seed", "b"]


def test_two_producers_of_one_artifact_are_refused_unless_one_stands_in_for_the_other() -> None:
    with pytest.raises(ValueError, match="artifact 'x' is produced by both 'one' and 'two'; declare stands_in_for"):
        plan("x", makes("one", "x"), makes("two", "x"))
    root = makes("one", "x")
    siblings = (makes("two", "x", stands_in_for="one"), makes("three", "x", stands_in_for="one"))
    assert tools(plan("x", root, *siblings)) == ["one"]


def test_a_tool_that_is_needed_anyway_displaces_a_stand_in_for_its_other_product() -> None:
    both, half = makes("both", "a b", cost=5), makes("half", "b", stands_in_for="both")
    assert tools(plan("b", both, half)) == ["half"]
    assert tools(plan("a b", both, half)) == ["both"]
    assert tools(plan("b a", both, half)) == ["both"]


def test_an_artifact_that_two_needed_stand_ins_would_both_make_is_refused() -> None:
    one, two = makes("one", "a b"), makes("two", "b c", stands_in_for="one")
    with pytest.raises(ValueError, match="'b' would be made by both 'one' and 'two'"):
        plan("a c", one, two)


def test_a_product_that_is_there_already_does_not_keep_its_maker_from_making_the_other() -> None:
    assert tools(plan("b", makes("both", "a b"), present="a")) == ["both"]


LOAD = makes(
    "load", "loaded_{week}", args={"source": "{{export}}"}, needs="export", each={"week": "weeks"}, intent="Load a week"
)
TOTAL = makes("total", "totals", "loaded_*")
EXPORT = makes("export", "export")


def test_a_family_becomes_one_step_for_every_element_and_is_needed_as_a_whole() -> None:
    steps = plan("totals", TOTAL, LOAD, EXPORT, given={"weeks": ["2024-W01", "2024-W02"]})
    assert tools(steps) == ["export", "load", "load", "total"]
    assert [each.produces for each in steps[1:3]] == [("loaded_2024_W01",), ("loaded_2024_W02",)]
    assert [each.call.args["week"] for each in steps[1:3] if each.call] == ["2024-W01", "2024-W02"]
    assert [each.intent for each in steps[1:3]] == ["Load a week (2024-W01)", "Load a week (2024-W02)"]
    assert steps[3].needs == ("loaded_2024_W01", "loaded_2024_W02")


def test_a_wanted_family_makes_all_members_that_are_not_there() -> None:
    steps = plan("loaded_*", LOAD, EXPORT, present="loaded_1", given={"weeks": [1, 2]})
    assert [each.produces for each in steps] == [("export",), ("loaded_2",)]


def test_a_family_over_two_lists_is_named_by_both() -> None:
    cell = makes("cell", "cell_{row}_{column}", each={"row": "rows", "column": "columns"})
    made = [each.produces[0] for each in plan("cell_*", cell, given={"rows": [1, 2], "columns": ["a", "b"]})]
    assert made == ["cell_1_a", "cell_1_b", "cell_2_a", "cell_2_b"]


def test_a_step_is_no_member_of_the_family_it_needs() -> None:
    steps = plan("loaded_all", makes("sum", "loaded_all", "loaded_*"), LOAD, EXPORT, given={"weeks": [1]})
    assert steps[-1].needs == ("loaded_1",)


def test_a_family_that_nobody_makes_is_reported_by_its_name() -> None:
    with pytest.raises(Unreachable, match=r"no tool produces 'loaded_\*' \(needed by totals\)"):
        plan("totals", TOTAL)


@pytest.mark.parametrize("wants", ["totals", "loaded_*", "loaded_7"])
def test_a_list_that_is_not_given_is_asked_for_when_the_goal_needs_it(wants: str) -> None:
    with pytest.raises(ValueError, match=r"tool 'load' runs for each element of 'weeks', which the goal must give"):
        plan(wants, TOTAL, LOAD, EXPORT)


def test_a_list_that_is_not_given_does_not_matter_to_other_goals() -> None:
    assert tools(plan("export", TOTAL, LOAD, EXPORT)) == ["export"]


def test_two_elements_that_would_share_a_name_are_refused() -> None:
    with pytest.raises(ValueError, match="tool 'load' would produce 'loaded_a_b' twice"):
        plan("totals", TOTAL, LOAD, EXPORT, given={"weeks": ["a-b", "a b"]})


def test_a_plan_may_be_thousands_of_steps_deep() -> None:
    line = [makes(f"t{n}", f"a{n}", f"a{n - 1}" if n else "") for n in range(3000)]
    assert len(plan("a2999", *line)) == 3000


def test_a_want_out_of_reach_behind_many_crossing_ways_is_found_at_once() -> None:
    layers = [makes(f"{side}{n}", f"{side}{n}", f"l{n - 1} r{n - 1}") for n in range(1, 40) for side in "lr"]
    with pytest.raises(Unreachable) as caught:
        plan("l39", *layers, present="r0")
    assert [each.name for each in caught.value.needs] == ["l0"]


names = st.sampled_from(["a", "b", "c", "d", "e", "f"])
drawn_contracts = st.lists(
    st.tuples(names, st.lists(names, max_size=3, unique=True), st.integers(0, 5)), max_size=9
).map(
    lambda rows: tuple(
        makes(f"t{index}", name, " ".join(needs), cost=cost, stands_in_for="root")
        for index, (name, needs, cost) in enumerate(rows)
    )
)


def naive_costs(contracts: tuple[ToolContract, ...], held: set[str]) -> dict[str, float]:
    """The least cost of every name, by trying all contracts until nothing gets cheaper."""
    costs = dict.fromkeys(held, 0.0)
    while True:
        before = dict(costs)
        for each in contracts:
            if all(need in costs for need in each.needs):
                cost = each.cost + sum(costs[need] for need in each.needs)
                costs[each.produces[0]] = min(cost, costs.get(each.produces[0], cost))
        if costs == before:
            return costs


def cost_of(name: str, steps: tuple[Step, ...], by_tool: dict[str, ToolContract], held: set[str]) -> float:
    if name in held:
        return 0.0
    maker = next(each for each in steps if name in each.produces)
    return by_tool[maker.tools[0]].cost + sum(cost_of(need, steps, by_tool, held) for need in maker.needs)


@given(drawn_contracts, st.sets(names, max_size=2), st.lists(names, min_size=1, max_size=3, unique=True))
def test_it_finds_a_plan_exactly_when_a_naive_search_does_and_none_is_cheaper(
    contracts: tuple[ToolContract, ...], held: set[str], wants: list[str]
) -> None:
    costs, by_tool = naive_costs(contracts, held), {each.tool: each for each in contracts}
    if not all(name in costs for name in wants):
        with pytest.raises(ValueError, match=r"no tool produces|needs are cyclic"):
            plan(" ".join(wants), *contracts, present=" ".join(sorted(held)))
        return
    steps = plan(" ".join(wants), *contracts, present=" ".join(sorted(held)))
    have = set(held)
    for step in steps:
        assert set(step.needs) <= have, "a step comes before what it needs"
        assert not set(step.produces) & have, "something is made twice"
        have |= set(step.produces)
    assert set(wants) <= have
    for name in wants:
        assert cost_of(name, steps, by_tool, held) == costs[name]


@given(drawn_contracts, st.lists(names, min_size=1, max_size=3, unique=True))
def test_a_proof_of_unreachability_names_what_no_tool_makes_and_a_true_way_to_it(
    contracts: tuple[ToolContract, ...], wants: list[str]
) -> None:
    made = {each.produces[0] for each in contracts}
    try:
        plan(" ".join(wants), *contracts)
    except Unreachable as unreachable:
        for need in unreachable.needs:
            assert need.name not in made
            way = (need.name, *need.wanted_by)
            assert way[-1] in wants
            for lower, upper in pairwise(way):
                assert any(upper in each.produces and lower in each.needs for each in contracts)
    except ValueError:
        pass

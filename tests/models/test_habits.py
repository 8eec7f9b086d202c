"""What models write again and again is read as it is meant."""

from typing import Any

import pytest

from agent.models.drafts import DraftedPlan, DraftedStep
from agent.models.habits import as_meant


def step(id_: str, produces: str, **more: Any) -> DraftedStep:
    return DraftedStep(id=id_, intent=id_, produces=(produces,), **more)


def meant(*steps: DraftedStep, fixed: str = "") -> tuple[DraftedStep, ...]:
    return as_meant(DraftedPlan(steps=steps), frozenset(fixed.split())).steps


def test_what_is_made_twice_has_its_name_from_the_last_step_on() -> None:
    drawn = (
        step("a", "scores", tool="read"),
        step("b", "json", instruction="convert", needs=("scores",)),
        step("c", "json", tool="write", args={"text": "{{json}} {{ json.rows }}"}, needs=("json",)),
        step("d", "mail", tool="send", args={"text": "see {{json}}"}, effects=("artifacts.json.size() > 0",)),
    )
    a, b, c, d = meant(*drawn)
    assert (a, d) == (drawn[0], drawn[3])
    assert (b.produces, b.needs) == (("json_1",), ("scores",))
    assert (c.produces, c.needs) == (("json",), ("json_1",))
    assert c.args == {"text": "{{json_1}} {{ json_1.rows }}"}


def test_three_versions_are_read_one_after_the_other() -> None:
    steps = meant(*(step(each, "x", tool=f"t{each}", args={"of": "{{x}}"}, needs=("x",)) for each in "abc"))
    assert [each.produces[0] for each in steps] == ["x_1", "x_2", "x"]
    assert [each.needs[0] for each in steps] == ["x", "x_1", "x_2"]
    assert [each.after for each in steps] == [(), ("a",), ("b",)]


def test_two_writes_that_make_one_thing_are_not_done_side_by_side() -> None:
    first, second = meant(step("a", "x", tool="move"), step("b", "x", tool="copy"))
    assert (first.after, second.after) == ((), ("a",))
    assert second.needs == ()


def test_a_step_that_is_there_twice_is_no_second_version() -> None:
    drawn = (step("a", "x", tool="t"), step("b", "x", tool="t"))
    assert meant(*drawn) == drawn


def test_what_a_contract_names_keeps_its_name() -> None:
    drawn = (step("a", "x", tool="t"), step("b", "x", tool="u", needs=("x",)))
    assert meant(*drawn, fixed="t u") == drawn


@pytest.mark.parametrize("filtered", ["{{rows | to_json}}", "{{ rows|tojson }}", "{{rows | json(indent=2)}}"])
def test_a_filter_that_spells_a_value_out_is_left_out(filtered: str) -> None:
    (only,) = meant(step("a", "x", tool="t", args={"text": [f"a {filtered}"]}))
    assert only.args == {"text": ["a {{rows}}"]}


def test_a_filter_that_makes_another_value_is_not() -> None:
    (only,) = meant(step("a", "x", tool="t", args={"text": "{{rows | length}}"}))
    assert only.args == {"text": "{{rows | length}}"}


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("{{rows[0]}}, {{ a.rows[12].name }}", "{{rows.0}}, {{ a.rows.12.name }}"),
        ("{{row['name']}}{{row[\"name\"]}}", "{{row.name}}{{row.name}}"),
        ("{{rows[i]}} {{rows[0 + 1]}} rows[0]", "{{rows[i]}} {{rows[0 + 1]}} rows[0]"),
    ],
)
def test_an_index_in_brackets_is_a_step_of_the_path(written: str, plain: str) -> None:
    (only,) = meant(step("a", "x", tool="t", args={"text": written}))
    assert only.args == {"text": plain}

"""The plan check: every fault of a draft is found before anything runs, and told in one exact sentence."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.arguments import fits, malformed, misfits
from agent.core.goal import Criterion
from agent.core.plan import Call, Step, StepId, edges
from agent.core.plan_check import Ground, faults
from agent.core.value import JsonValue

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "table": {"type": "string"},
        "limit": {"type": "integer"},
        "mode": {"enum": ["fast", "exact"]},
        "where": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}]},
        "days": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["table"],
    "$defs": {
        "Filter": {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]},
    },
}
TOOLS: dict[str, dict[str, JsonValue]] = {"read": SCHEMA, "Send-Mail": {"type": "object", "properties": {}}}


def step(name: str, needs: Sequence[str] = (), produces: Sequence[str] | None = None, **more: Any) -> Step:
    made = (f"of_{name}",) if produces is None else tuple(produces)
    call = more.pop("call", Call(tool="read", args={"table": "t"}))
    return Step(id=StepId(name), intent=name, call=call, needs=tuple(needs), produces=made, **more)


def call(tool: str = "read", **args: JsonValue) -> Call:
    return Call(tool=tool, args={"table": "t", **args})


def found(*steps: Step, **ground: Any) -> tuple[str, ...]:
    return faults(steps, Ground(schemas=TOOLS, **ground))


def test_a_sound_draft_has_no_faults() -> None:
    sound = (step("a"), step("b", ["of_a", "given"], call=call(limit="{{given.size}}")))
    assert found(*sound, present={"given"}, wants=("of_b",), window=2) == ()


def test_nothing_to_do_is_a_plan_when_what_is_wanted_is_there() -> None:
    assert found(wants=("x",), present={"x"}) == ()


UNSOUND = {
    "empty": ((), {}, "the plan has no steps"),
    "too many": (
        tuple(step(f"s{n}") for n in range(8)),
        {"window": 7},
        "the plan has 8 steps; give at most 7, each doing one thing",
    ),
    "no id": ((step(" "),), {}, "a step has no id; every step needs its own"),
    "one id twice": (
        (step("1"), step("1 ", produces=["x"])),
        {},
        "2 steps have the id '1'; every step needs its own",
    ),
    "after nobody": (
        (step("a", after=("z",)),),
        {},
        "step 'a' comes after 'z', which is no step; ids are: a",
    ),
    "after itself": ((step("a", after=("a",)),), {}, "the steps wait for each other in a circle: a -> a"),
    "a circle": (
        (step("a", ["of_b"]), step("b", ["of_c"]), step("c", ["of_a"])),
        {},
        "the steps wait for each other in a circle: a -> c -> b -> a",
    ),
    "needs what it makes": ((step("a", ["of_a"]),), {}, "step 'a' needs 'of_a', which it produces itself"),
    "needs what nobody makes": (
        (step("a", ["lost"]),),
        {"present": {"kept"}},
        "step 'a' needs 'lost', but no step produces it; available: kept, of_a",
    ),
    "refers to what nobody makes": (
        (step("a", call=call(limit="{{lost.n}}")),),
        {},
        "step 'a' refers to 'lost', but no step produces it; available: of_a",
    ),
    "checks what nobody makes": (
        (step("a", preconditions=("artifacts.lost > 1",)),),
        {},
        "step 'a' checks 'lost', but no step produces it; available: of_a",
    ),
    "unknown tool": (
        (step("a", call=call("write")),),
        {},
        "step 'a' uses the tool 'write', which does not exist; the tools are: Send-Mail, read",
    ),
    "near miss": (
        (step("a", call=Call(tool="send_mail")),),
        {},
        "step 'a' uses the tool 'send_mail', which does not exist (did you mean 'Send-Mail'?); "
        "the tools are: Send-Mail, read",
    ),
    "unknown tool of an instruction": (
        (step("a", call=None, instruction="look", tools=("READ",)),),
        {},
        "step 'a' uses the tool 'READ', which does not exist (did you mean 'read'?); the tools are: Send-Mail, read",
    ),
    "nothing to do": ((step("a", call=None),), {}, "step 'a' has neither a tool nor an instruction"),
    "wrong argument": (
        (step("a", call=call(limit="ten")),),
        {},
        "step 'a', tool 'read': argument 'limit' must be integer, not \"ten\"",
    ),
    "broken reference": (
        (step("a", call=call(limit="{{of_b[0]}}")), step("b")),
        {},
        "step 'a': {{of_b[0]}} is no reference; write {{name}} or {{name.field}}",
    ),
    "no product": ((step("a", produces=[]),), {}, "step 'a' produces nothing; name the artifact it makes"),
    "product that cannot be referred to": (
        (step("a", produces=["my file"]),),
        {},
        "step 'a' produces 'my file'; a name has only letters, digits and _",
    ),
    "two producers": (
        (step("a", produces=["x"]), step("b", produces=["x"])),
        {},
        "steps 'a' and 'b' make 'x'; an artifact has one producer",
    ),
    "want that nobody makes": ((step("a"),), {"wants": ("x",)}, "nothing produces the wanted artifact 'x'"),
    "family that nobody makes": (
        (step("a"),),
        {"wants": ("x_*",)},
        "nothing produces the wanted artifact 'x_*'",
    ),
    "criterion over what nobody makes": (
        (step("a"),),
        {"criteria": (Criterion(id="c1", predicate="artifacts.x > 1"),)},
        "criterion 'c1' checks 'x', but no step produces it",
    ),
}


@pytest.mark.parametrize(("steps", "ground", "sentence"), UNSOUND.values(), ids=UNSOUND)
def test_each_fault_is_named(steps: tuple[Step, ...], ground: dict[str, Any], sentence: str) -> None:
    assert sentence in found(*steps, **ground)


def test_a_predicate_that_does_not_compile_is_shown_with_its_position_and_hides_no_other_fault() -> None:
    broken = step("a", ["lost"]).model_copy(update={"effects": ("artifacts.x ==", "result > 1")})
    told = found(broken)
    assert any("step 'a': predicate does not compile at position" in each for each in told)
    assert any("'lost'" in each for each in told)


def test_a_predicate_that_hides_its_dependency_is_refused() -> None:
    hidden = step("a").model_copy(update={"effects": ("artifacts[args.name] > 1",)})
    assert any("artifacts must be read by name" in each for each in found(hidden))


def test_a_wanted_family_is_covered_by_any_member() -> None:
    assert found(step("a", produces=["loaded_1"]), wants=("loaded_*",)) == ()


def test_a_criterion_for_a_judge_needs_no_artifact() -> None:
    assert found(step("a"), criteria=(Criterion(id="c1", text="it reads well"),)) == ()


names = st.sampled_from(["a", "b", "c", "d", "e"])


@given(st.lists(st.tuples(names, st.lists(names, max_size=3), st.lists(names, max_size=2)), max_size=5))
def test_a_draft_without_faults_can_always_be_run_to_its_end(
    drawn: list[tuple[str, list[str], list[str]]],
) -> None:
    steps = tuple(
        step(name, [f"of_{each}" for each in needs], after=tuple(StepId(each) for each in after))
        for name, needs, after in drawn
    )
    if found(*steps):
        return
    graph, done = edges(steps), set[str]()
    assert len(graph) == len(steps)
    for _ in steps:
        done |= {each for each, waits in graph.items() if waits <= done}
    assert done == {str(each.id) for each in steps}


FITTING: dict[str, dict[str, JsonValue]] = {
    "whole float for integer": {"limit": 3.0},
    "reference for any type": {"limit": "{{a.b}}", "where": "{{a}}", "days": "{{ a }}"},
    "reference inside a list": {"days": [1, "{{a}}", 2.5]},
    "one of the choices": {"where": {"field": "x"}},
    "null where it is a choice": {"where": None},
    "allowed value": {"mode": "fast"},
}


@pytest.mark.parametrize("args", FITTING.values(), ids=FITTING)
def test_fitting_arguments_are_taken(args: dict[str, JsonValue]) -> None:
    assert misfits({"table": "t", **args}, SCHEMA) == ()


MISFITTING: dict[str, tuple[dict[str, JsonValue], str]] = {
    "missing": ({"limit": 1}, "argument 'table' is missing"),
    "unknown": (
        {"table": "t", "Table": "t"},
        "there is no argument 'Table'; the arguments are: table, limit, mode, where, days",
    ),
    "a text that only contains a reference": (
        {"table": "t", "limit": "about {{a}}"},
        "argument 'limit' must be integer, not \"about {{a}}\"",
    ),
    "true is no number": ({"table": "t", "limit": True}, "argument 'limit' must be integer, not true"),
    "not allowed": (
        {"table": "t", "mode": "slow"},
        'argument \'mode\' must be one of "fast", "exact", not "slow"',
    ),
    "no choice fits": ({"table": "t", "where": {}}, "argument 'where' must be object or null, not {}"),
    "wrong element": ({"table": "t", "days": ["x"]}, "argument 'days' must be array, not [\"x\"]"),
    "long value": ({"table": "t", "days": "x" * 500}, f"argument 'days' must be array, not \"{'x' * 59}..."),
}


@pytest.mark.parametrize(("args", "phrase"), MISFITTING.values(), ids=MISFITTING)
def test_misfitting_arguments_are_named(args: dict[str, JsonValue], phrase: str) -> None:
    assert misfits(args, SCHEMA) == (phrase,)


def test_a_tool_that_takes_anything_refuses_no_name() -> None:
    assert misfits({"x": 1}, {"type": "object", "additionalProperties": True}) == ()


def test_types_in_a_list_types_we_do_not_know_and_dangling_definitions_refuse_nothing() -> None:
    assert fits(1, {"type": ["string", "integer"]}, {})
    assert fits(1, {"type": "date"}, {})
    assert fits(True, {"type": ["string", "boolean"]}, {})
    assert fits(1, {"$ref": "#/$defs/gone"}, {})
    assert fits(1, {"$ref": "http://example.org/schema"}, {})
    assert fits(True, {"type": "date"}, {})
    assert not fits("x", {"allOf": [{"type": "string"}, {"type": "integer"}]}, {})
    assert fits("x", {"allOf": [{"type": "string"}], "const": "x"}, {})
    assert not fits("y", {"const": "x"}, {})
    assert not fits(None, {"type": "string"}, {})
    assert not fits("x", {"type": "null"}, {})


def test_only_texts_that_look_like_references_are_malformed() -> None:
    assert malformed({"a": ["{{x}}", "{{x.y}}", "{{ x }}", "{{#each}}", "{x}"]}) == ()
    assert malformed({"a": ["{{x[0]}}", "{{x y}}", "{{x|upper}}"]}) == ("{{x[0]}}", "{{x y}}", "{{x|upper}}")

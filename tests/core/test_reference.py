"""References to artifacts inside arguments are resolved whole, or refused before any call is made."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.plan import Call
from agent.core.reference import UnresolvedReference, as_text, referenced, resolve

VIEW: dict[str, Any] = {"a": {"b": [10, {"c": "x"}]}, "n": 3, "s": "text", "none": None}


@pytest.mark.parametrize(
    ("given_", "resolved"),
    [
        pytest.param("{{n}}", 3, id="whole keeps its type"),
        pytest.param(" {{ n }} ", 3, id="space around it"),
        pytest.param("{{a}}", VIEW["a"], id="a mapping"),
        pytest.param("{{none}}", None, id="nothing is a value"),
        pytest.param("{{a.b.0}}", 10, id="an element"),
        pytest.param("{{a.b.1.c}}", "x", id="deep inside"),
        pytest.param("a/{{n}}+{{s}}", "a/3+text", id="two in one text"),
        pytest.param("{{n}}{{n}}", "33", id="two make a text"),
        pytest.param("of {{a.b}}", 'of [10,{"c":"x"}]', id="a value inside a text"),
        pytest.param(["{{n}}", {"k": "{{s}}"}], [3, {"k": "text"}], id="list and mapping"),
        pytest.param({"{{n}}": 1}, {"{{n}}": 1}, id="a key is no argument"),
        pytest.param("{n} {{}} {{1x}}", "{n} {{}} {{1x}}", id="no reference at all"),
        pytest.param(7, 7, id="a number"),
    ],
)
def test_references_are_resolved_at_any_depth(given_: Any, resolved: Any) -> None:
    assert resolve(given_, VIEW) == resolved


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("x", "x", id="a text"),
        pytest.param(7, "7", id="a number"),
        pytest.param(True, "true", id="a truth"),
        pytest.param(["a", 1], '["a",1]', id="a list"),
        pytest.param({"b": 1, "a": 2}, '{"a":2,"b":1}', id="a mapping"),
        pytest.param({"path": "a.txt", "body": "one\n"}, "one\n", id="the field that is called as what is wanted"),
        pytest.param({"rows": [{"n": 5}], "value": 5}, "5", id="a single value"),
        pytest.param({"rows": [{"n": 5, "m": 6}], "value": 5}, '{"rows":[{"m":6,"n":5}],"value":5}', id="not alone"),
        pytest.param({"value": 5, "unit": "kg"}, '{"unit":"kg","value":5}', id="with more beside"),
    ],
)
def test_a_value_in_a_text_is_spelled_as_what_it_says(value: Any, text: str) -> None:
    assert as_text(value, "body") == text
    assert resolve("<{{x}}>", {"x": value}, "body") == f"<{text}>"


@pytest.mark.parametrize(
    ("path", "text"), [("names.txt", "Ada\nBen"), ("names.json", '["Ada","Ben"]'), ("NAMES.JSON", '["Ada","Ben"]')]
)
def test_a_list_of_texts_is_written_line_by_line_but_into_json(path: str, text: str) -> None:
    call = Call(tool="write", args={"path": path, "text": "{{rows.name}}\n"}, texts=("path", "text"))
    assert call.sent({"rows": [{"name": "Ada"}, {"name": "Ben"}]}) == {"path": path, "text": text}


def test_a_field_of_each_element_is_meant_as_a_whole_only_and_where_all_have_it() -> None:
    rows: Any = [{"n": 1}, {"n": 2}]
    assert resolve("{{rows.n}}", {"rows": rows}) == [1, 2]
    for value, view in (("n: {{rows.n}}", rows), ("{{rows.n}}", [*rows, {}]), ("{{rows.n}}", [])):
        with pytest.raises(UnresolvedReference, match="asks for 'n'"):
            resolve(value, {"rows": view})


def test_nothing_in_place_of_a_text_stays_nothing() -> None:
    assert as_text(None) is None
    assert resolve("<{{x}}>", {"x": None}) == "<null>"


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        pytest.param("{{ghost}}", "no valid artifact 'ghost'", id="unknown or invalid artifact"),
        pytest.param("x {{ghost}} y", "valid: a, n, none, s", id="inside a text, listing what is valid"),
        pytest.param("{{a.z}}", "asks for 'z', which 'a' does not have: there the fields are b", id="unknown field"),
        pytest.param("{{a.b.7}}", "asks for '7', .*: there is a list of 2", id="beyond the end"),
        pytest.param("{{a.b.x}}", "asks for 'x'", id="a name into a list"),
        pytest.param("{{n.x}}", "asks for 'x', .*: there is a single value", id="a field of a number"),
        pytest.param([{"k": ["{{ghost}}"]}], "ghost", id="nested"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(given_: Any, says: str) -> None:
    with pytest.raises(UnresolvedReference, match=says):
        resolve(given_, VIEW)


def test_without_artifacts_the_refusal_says_none() -> None:
    with pytest.raises(UnresolvedReference, match="valid: none"):
        resolve("{{x}}", {})


def test_what_is_referenced_is_found_at_any_depth() -> None:
    assert referenced({"x": ["{{a.b}} {{n}}", 3], "y": {"z": "{{s}}"}, "k": None}) == {"a", "n", "s"}


names = st.sampled_from(["a", "b_1", "C"])
texts = st.text("ab{}. 1", max_size=8)
templates = st.recursive(
    st.builds(lambda text, name: f"{text}{{{{{name}}}}}", texts, names) | texts | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(templates)
def test_everything_referenced_is_needed_and_enough(template: Any) -> None:
    needed = referenced(template)
    resolved = resolve(template, dict.fromkeys(needed, 1))
    for name in needed:
        with pytest.raises(UnresolvedReference):
            resolve(template, dict.fromkeys(needed - {name}, 1))
    if not needed:
        assert resolved == template

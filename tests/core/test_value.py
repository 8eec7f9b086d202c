"""Two equal values have one digest, however they are spelled."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.value import abridged, canonical, digest, size, words

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values))
def test_the_order_of_keys_never_matters(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(turned) == canonical(value)
    assert digest(turned) == digest(value)


@given(json_values, json_values)
def test_values_that_differ_have_different_digests(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (canonical(one) == canonical(other))


def test_a_truth_value_is_no_number() -> None:
    assert digest(True) != digest(1)


def test_half_a_character_has_a_digest_as_well() -> None:
    assert len(digest("\ud800")) == 32
    assert size("\ud800") == 5


@pytest.mark.parametrize(("given_", "wanted"), [("a b", ("a", "b")), ("", ()), (["a"], ["a"]), (None, None)])
def test_words_are_a_list_of_names(given_: object, wanted: object) -> None:
    assert words(given_) == wanted


def test_what_is_small_is_shown_whole() -> None:
    assert abridged({"a": [1, 2]}) == {"a": [1, 2]}


def test_what_is_large_is_shown_by_size_and_digest() -> None:
    assert abridged("x" * 1000) == f"<1002 bytes, digest {digest('x' * 1000)}>"
    assert abridged({"a": "x" * 1000, "b": 1}) == {"a": f"<1002 bytes, digest {digest('x' * 1000)}>", "b": 1}


def test_a_mapping_of_very_many_keys_is_shown_by_its_size() -> None:
    many: dict[str, Any] = {f"k{each}": each for each in range(60)}
    assert str(abridged(many)).startswith("<")

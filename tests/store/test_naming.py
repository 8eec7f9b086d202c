"""A type that moved or was renamed comes back from a checkpoint as itself; one that is not there is an error."""

from collections import Counter
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

import agent.app  # noqa: F401 - the types are known once they are loaded
from agent.core.goal import Criterion, Goal
from agent.core.limits import Ledger
from agent.core.phase import Phase
from agent.core.record import SCHEMA, Paused
from agent.store import naming
from agent.store.naming import UnknownFormat, UnknownType, our_types
from agent.store.packing import PACKED, Packing
from agent.store.serde import known_types

GOAL = Goal(wants=("a",), criteria=(Criterion(id="c1", text="é\0", predicate="true"),))
VALUES: list[Any] = [GOAL, Phase.PLANNER, [GOAL, Ledger(steps=3)], {"k": {"deep": (Phase.INTAKE, 1.5, b"\x93")}}]


def reader() -> Packing:
    return Packing(allowed_msgpack_modules=tuple(known_types()))


def moved(value: Any, old: str, new: str) -> tuple[str, bytes]:
    """The value as a release wrote it that had another name in place of one of today's, of the same length."""
    kind, stored = JsonPlusSerializer().dumps_typed(value)
    assert len(old) == len(new)
    assert old.encode() in stored
    return kind, stored.replace(old.encode(), new.encode())


@pytest.mark.parametrize("value", VALUES, ids=["value", "enum", "list", "deep"])
def test_a_type_that_lived_in_another_module_comes_back_as_itself(value: Any) -> None:
    for was, now in (("agent.kern.goal", "agent.core.goal"), ("agent.core.state", "agent.core.phase")):
        if now.encode() in JsonPlusSerializer().dumps_typed(value)[1]:
            found = reader().loads_typed(moved(value, now, was))
            assert found == JsonPlusSerializer(allowed_msgpack_modules=tuple(known_types())).loads_typed(
                JsonPlusSerializer().dumps_typed(value)
            )


def test_a_type_inside_a_snapshot_of_a_channel_comes_back_as_itself() -> None:
    found = reader().loads_typed(moved(_DeltaSnapshot([GOAL]), "agent.core.goal", "agent.kern.goal"))
    assert found == _DeltaSnapshot([GOAL])


def test_a_type_that_had_another_name_comes_back_as_the_one_it_is_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(naming.RENAMED, "Wish", "Goal")
    kind, stored = JsonPlusSerializer().dumps_typed(GOAL)
    assert reader().loads_typed((kind, stored.replace(b"\xa4Goal", b"\xa4Wish"))) == GOAL


def test_a_type_of_ours_that_nobody_knows_is_an_error_that_names_it() -> None:
    kind, stored = JsonPlusSerializer().dumps_typed([1, {"goal": GOAL}])
    with pytest.raises(UnknownType, match=r"agent\.core\.goal\.Mood.*upgrade"):
        reader().loads_typed((kind, stored.replace(b"\xa4Goal", b"\xa4Mood")))


@pytest.mark.parametrize("version", [SCHEMA + 1, 127, 1000])
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_trace_record_of_a_later_format_is_an_error_that_says_so(version: int, snapshot: bool) -> None:
    later = [Paused(at=0, reason="asked"), Paused(at=1, reason="asked").model_copy(update={"schema_version": version})]
    with pytest.raises(UnknownFormat, match=rf"of schema {version}, .* up to {SCHEMA}: .*; upgrade"):
        reader().loads_typed(Packing().dumps_typed(_DeltaSnapshot(later) if snapshot else later))


def test_text_that_looks_like_a_later_format_stays_text() -> None:
    text = ["®schema_version\x7f", b"\xaeschema_version\x7f", {"schema_version": 99}, Paused(at=0, reason="asked")]
    assert reader().loads_typed(JsonPlusSerializer().dumps_typed(text)) == text


def test_packed_values_are_renamed_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "_today", {})
    kind, stored = Packing().dumps_typed([GOAL] * 3)
    assert kind == PACKED
    assert reader().loads_typed((kind, stored)) == [GOAL] * 3


def test_text_that_looks_like_a_type_stays_text() -> None:
    text = ["agent.core.nothing", "Nothing", GOAL]
    found = reader().loads_typed(JsonPlusSerializer().dumps_typed(text))
    assert found == text


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False)
        | st.text()
        | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_value_beside_a_moved_type_is_not_altered(value: Any) -> None:
    assert reader().loads_typed(moved([value, GOAL], "agent.core.goal", "agent.kern.goal")) == [value, GOAL]


def test_no_two_of_our_types_share_a_name_and_no_old_name_is_taken() -> None:
    counted = Counter(name for module, name in our_types() if module.startswith("agent."))
    assert [name for name, count in counted.items() if count > 1] == []
    assert not set(naming.RENAMED) & set(counted)
    assert set(naming.RENAMED.values()) <= set(counted)


def test_ormsgpack_spells_a_type_as_module_and_name() -> None:
    assert b"agent.core.phase\xa5Phase" in JsonPlusSerializer().dumps_typed(Phase.INTAKE)[1]
    assert ormsgpack.packb("Phase") == b"\xa5Phase"

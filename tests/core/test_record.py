"""The trace: every record can be read back, and from every decision on it the decision can be recomputed."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.core.failure import Scope
from agent.core.ladder import Options, choose_rung
from agent.core.limits import Ledger, Limits
from agent.core.merge import delta
from agent.core.record import RECORD, SCHEMA, Paused, Planned, Recovered, TraceRecord
from tests.builders import classified, plan, step


def test_every_kind_of_record_has_a_tag_of_its_own() -> None:
    kinds = get_args(get_args(TraceRecord)[0])
    tags = [each.model_fields["event"].default for each in kinds]
    assert len(set(tags)) == len(kinds)
    assert all(get_args(kind.model_fields["event"].annotation) == (tag,) for kind, tag in zip(kinds, tags, strict=True))


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="nonsense"):
        RECORD.validate_python({"event": "nonsense", "at": 0})


def test_a_field_that_nobody_wrote_is_refused() -> None:
    with pytest.raises(ValidationError, match="extra"):
        RECORD.validate_python({"event": "escalated", "at": 0, "question": "?", "id": "q", "extra": 1})


def test_a_record_says_in_which_format_it_was_written() -> None:
    written = Paused(at=1.0, reason="asked").model_dump()
    assert written["schema_version"] == SCHEMA
    assert RECORD.validate_python(written) == Paused(at=1.0, reason="asked")


def test_a_record_of_the_first_format_is_read_and_says_no_version() -> None:
    failed, options, limits, ledger = classified("nothing"), Options(), Limits(), Ledger()
    new = {"schema_version", "number", "invalidated", "reused", "cost"}
    written = Recovered(
        at=1.0,
        classified=failed,
        options=options,
        limits=limits,
        ledger=ledger,
        choice=choose_rung(failed, options, limits, ledger),
    )
    first = {name: each for name, each in written.model_dump().items() if name not in new}
    assert RECORD.validate_python(first) == written


@pytest.mark.parametrize("event", ["paused", "of an event to come"])
def test_a_record_of_a_later_format_is_refused_in_a_sentence(event: str) -> None:
    later = {"event": event, "at": 1.0, "reason": "asked", "schema_version": SCHEMA + 1, "more": "unknown"}
    for read in (RECORD.validate_python, lambda each: RECORD.validate_json(json.dumps(each))):
        with pytest.raises(ValidationError, match=rf"newer Kintsugi \(schema {SCHEMA + 1}; .*: upgrade Kintsugi"):
            read(later)


@given(
    st.sampled_from(list(Scope)),
    st.builds(Options, patchable=st.booleans(), rewritable=st.booleans(), repeatable=st.booleans()),
    st.builds(Ledger, retry=st.dictionaries(st.just("x"), st.integers(0, 4)), replan=st.integers(0, 2)),
    st.booleans(),
)
def test_a_rung_is_recomputed_from_its_record_also_after_it_was_stored(
    scope: Scope, options: Options, ledger: Ledger, ordered: bool
) -> None:
    failed, limits = classified(scope.value), Limits()
    written = Recovered(
        at=1.0,
        classified=failed,
        options=options,
        limits=limits,
        ledger=ledger,
        ordered=ordered,
        choice=choose_rung(failed, options, limits, ledger, ordered),
    )
    for stored in (RECORD.validate_json(written.model_dump_json()), RECORD.validate_python(written.model_dump())):
        assert stored == written
        assert isinstance(stored, Recovered)
        again = choose_rung(stored.classified, stored.options, stored.limits, stored.ledger, stored.ordered)
        assert again == stored.choice


def test_a_delta_is_recomputed_from_the_two_plans() -> None:
    old, new = plan(step("a"), revision=1), plan(step("a", status="superseded"), step("b"), revision=2)
    change: dict[str, Any] = {"delta": delta(old, new), "reused": ()}
    written = Planned(at=0.0, trigger="initial", planner="test", revision=2, **change)  # type: ignore[arg-type]
    stored = RECORD.validate_json(written.model_dump_json())
    assert isinstance(stored, Planned)
    assert stored.delta == delta(old, new)

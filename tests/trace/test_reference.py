"""The reference of the trace records says what the code says, and leaves no field out."""

from pathlib import Path

import pytest

from agent.core.record import Record
from agent.trace.reference import RECORDS, documented, reference

PAGE = Path(__file__).parents[2] / "docs" / "trace.md"


def test_the_page_is_the_one_that_the_code_writes() -> None:
    assert PAGE.read_text() == reference(), "the types have changed: write the page anew with `make docs`"


@pytest.mark.parametrize("kind", [Record, *RECORDS], ids=lambda each: each.__name__)
def test_every_field_of_a_record_is_described(kind: type[Record]) -> None:
    said = documented(kind)
    assert set(said) == set(kind.model_fields)
    assert [name for name, each in said.items() if not each and name != "event"] == []

"""The reference pages say what the code says, and leave nothing out."""

import pytest
from pydantic import BaseModel

from agent.core.limits import Limits
from agent.core.record import Record
from agent.reference import api
from agent.reference.__main__ import DOCS, PAGES
from agent.reference.fields import documented
from agent.reference.trace import RECORDS
from agent.settings import RoleModel, RunContext, Settings


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_the_one_that_the_code_writes(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text() == PAGES[name](), "the code has changed: write it anew with `make docs`"


@pytest.mark.parametrize(
    "kind", [Record, *RECORDS, Settings, RoleModel, RunContext, Limits], ids=lambda each: each.__name__
)
def test_every_field_is_described(kind: type[BaseModel]) -> None:
    said = documented(kind)
    assert set(said) == set(kind.model_fields)
    assert [name for name, (_, text) in said.items() if not text and name not in ("event", "limits")] == []


def test_whatever_can_be_imported_says_what_it_is() -> None:
    assert [each for each in api.page().split("\n### ") if each.rstrip().endswith("`\n")] == []

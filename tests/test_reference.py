"""The reference pages say what the code says, and leave nothing out."""

import inspect
from importlib import import_module

import pytest
from pydantic import BaseModel

import agent
from agent.core.limits import Limits
from agent.core.record import Record
from agent.reference import api
from agent.reference.__main__ import DOCS, PAGES
from agent.reference.fields import documented
from agent.reference.trace import RECORDS
from agent.settings import RoleModel, RoleModels


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_the_one_that_the_code_writes(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text() == PAGES[name](), "the code has changed: write it anew with `make docs`"


PUBLIC = [each for name in agent.__all__ if isinstance(each := getattr(agent, name), type)]
VALUES = [each for each in PUBLIC if issubclass(each, BaseModel)]


@pytest.mark.parametrize("kind", [Record, *RECORDS, RoleModel, *VALUES], ids=lambda each: each.__name__)
def test_every_field_is_described(kind: type[BaseModel]) -> None:
    said = documented(kind)
    assert set(said) == set(kind.model_fields)
    nested = {name for name, each in kind.model_fields.items() if each.annotation in (Limits, RoleModels)}
    assert [name for name, (_, text) in said.items() if not text and name not in {"event", *nested}] == []


@pytest.mark.parametrize("module", api.MODULES)
def test_whatever_can_be_imported_says_what_it_is(module: str) -> None:
    public = {name: getattr(import_module(module), name) for name in import_module(module).__all__}
    told = [name for name, each in public.items() if inspect.isclass(each) or inspect.isfunction(each)]
    assert [name for name in told if not inspect.getdoc(public[name])] == []
    assert [name for name in public if f"\n### `{name}`\n\n" not in api.page()] == []

"""What is said of the fields of a type, as its source says it, and how a page shows it."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_settings import BaseSettings

from agent.core.value import Value

_BASES = (Value, BaseModel, BaseSettings, object)


def documented(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Type and docstring of each field of a type, its bases' first; the text is empty where the name says it all."""
    return {name: each for base in reversed(kind.__mro__) for name, each in _declared(base).items()}


def table(fields: dict[str, tuple[str, str]]) -> str:
    """The fields as a Markdown table."""
    return rows(
        ("field", "type", "what it is"), ((f"`{name}`", f"`{type_}`", said) for name, (type_, said) in fields.items())
    )


def rows(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = tuple(heads)
    told = [f"| {' | '.join(map(_cell, each))} |" for each in (heads, *lines)]
    return "\n".join([told[0], f"|{'---|' * len(heads)}", *told[1:], ""])


def paragraph(kind: Any) -> str:
    """The docstring."""
    return inspect.cleandoc(kind.__doc__ or "")


def closed(kind: type[StrEnum]) -> str:
    """What a closed set is, with its values."""
    return f"{paragraph(kind)} {', '.join(f'`{each.value}`' for each in kind)}.\n"


def below(kinds: Iterable[type[BaseModel]]) -> list[type[Any]]:
    """The types that these are made of, in the order in which they are met."""
    found: dict[type[Any], None] = {}
    due = list(kinds)
    while due:
        for field in due.pop(0).model_fields.values():
            for each in _named(field.annotation):
                if each not in found:
                    found[each] = None
                    due += [each] if issubclass(each, Value) else []
    return list(found)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _declared(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """The fields that a class declares itself."""
    if kind in _BASES or not issubclass(kind, BaseModel):
        return {}
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node, after in pairwise([*body.body, ast.Pass()]):
        match node, after:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))) if name in kind.model_fields:
                found[name] = (ast.unparse(node.annotation), text)
            case ast.AnnAssign(target=ast.Name(name)), _ if name in kind.model_fields:
                found[name] = (ast.unparse(node.annotation), "")
    return found


def _named(annotation: object) -> Iterator[type[Any]]:
    if isinstance(annotation, type) and issubclass(annotation, Value | StrEnum):
        yield annotation
    for each in get_args(annotation):
        yield from _named(each)

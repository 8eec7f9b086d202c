"""What can be imported, and what does it do? Every public name, with its signature and what its docstring says."""

import inspect
from enum import StrEnum
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from agent.core.limits import Limits
from agent.reference.fields import closed, documented, paragraph, table
from agent.settings import Settings
from graphs.loop import LoopGraph

MODULES = ("agent", "agent.mutation", "agent.tools.builtin", "agent.tools.mcp")
"""Where the public names are: those in `__all__`."""

HEAD = """\
# API

Written by `make docs` from the docstrings; do not edit. What is not here may change without notice.
"""

ELSEWHERE = (Limits, Settings)
"""Their fields have a page of their own."""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for module in map(import_module, MODULES):
        parts.append(f"## `{module.__name__}`\n\n{paragraph(module).splitlines()[0]}\n")
        parts += [_told(name, getattr(module, name)) for name in module.__all__]
        # It has whatever a compiled graph of LangGraph has; here is what it has besides, or otherwise.
        parts += [_told("LoopGraph", LoopGraph)] if module.__name__ == "agent" else []
    return "\n".join(parts)


def _told(name: str, value: Any) -> str:
    return f"### `{name}`\n\n{_described(value)}"


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        return "\n".join(f"- `{each.name}`: {each.says}" for each in value) + "\n"
    if inspect.isfunction(value):
        return f"```text\n{_signature(value)}\n```\n\n{_text(value)}\n"
    if not inspect.isclass(value):
        return f"`{value}`\n".replace("collections.abc.", "").replace("typing.", "").replace("contextlib.", "")
    if value in ELSEWHERE:
        return f"{_text(value)} Its fields are among the [settings](settings.md).\n"
    if issubclass(value, StrEnum):
        return closed(value)
    fields = f"\n{table(documented(value))}" if issubclass(value, BaseModel) else ""
    return f"{_text(value)}\n{fields}{_methods(value)}"


def _methods(kind: type[Any]) -> str:
    """The public methods and properties that a class of ours defines itself."""
    told = []
    for name, each in vars(kind).items():
        function = each.fget if isinstance(each, property) else getattr(each, "__func__", each)
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            shown = name if isinstance(each, property) else f"{name}{_signature(function).removeprefix(name)}"
            told.append(f"- `{shown}`: {' '.join(paragraph(function).split())}\n")
    return f"\n{''.join(told)}" if told else ""


def _signature(function: Any) -> str:
    """Names and plain defaults: what the types are, the text says."""
    given = [each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls")]
    return f"{function.__name__}({', '.join(map(_parameter, given))})"


def _parameter(each: inspect.Parameter) -> str:
    if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
        return str(each.replace(annotation=each.empty))
    if each.default is each.empty:
        return each.name
    if isinstance(each.default, StrEnum):
        return f"{each.name}={each.default.value!r}"
    plain = each.default in (None, ()) or isinstance(each.default, str | int | float)
    return f"{each.name}={each.default!r}" if plain else f"{each.name}=..."


def _text(value: Any) -> str:
    """The docstring, with its sections as lists."""
    told: list[str] = []
    for line in paragraph(value).splitlines():
        if line in ("Args:", "Raises:", "Returns:"):
            told.append(f"{line}\n")
        elif line.startswith(" " * 8):
            told.append(f"  {line.strip()}")
        elif line.startswith(" " * 4):
            name, _, said = line.strip().partition(": ")
            told.append(f"- `{name}`: {said}")
        else:
            told.append(line)
    return "\n".join(told)

"""What can be set, and how? Every setting with its variable, type, default and meaning."""

from collections.abc import Iterator

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from agent.reference.fields import documented, rows
from agent.settings import RoleModel, RoleModels, Settings

HEAD = f"""\
# Settings

Written by `make docs` from `agent/settings.py` and `agent/core/limits.py`; do not edit.

A setting is an argument (`Settings(model="openai:gpt-5")`), else a variable of the environment, else a line of `.env`
(`.env.example` has them all), else its default. In Python its name is the variable's in small letters without
`KINTSUGI_`; two underscores lead into a group: `Settings(limits=Limits(money=5))` is `KINTSUGI_LIMITS__MONEY=5`.
Values that make no sense, unknown names in Python and variables that are nearly a setting are refused in a sentence.
For one call some can be given otherwise: `graph.invoke(..., context={{"limits": {{"money": 5}}}})`, with the fields of
`RunContext` ([API](api.md)).

`ROLE` is one of {", ".join(f"`{each.upper()}`" for each in RoleModels.model_fields)}.
"""


def page() -> str:
    """The whole page."""
    return f"{HEAD}\n{rows(('variable', 'type', 'default', 'what it is'), _settings(Settings, 'KINTSUGI_'))}"


def _settings(kind: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    if kind is RoleModels:
        return (yield from _settings(RoleModel, f"{prefix}ROLE__"))
    said = documented(kind)
    for name, field in kind.model_fields.items():
        type_, text = said[name]
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _settings(inner, f"{prefix}{name.upper()}__")
        else:
            yield f"`{prefix}{name.upper()}`", f"`{type_}`", _default(field), text


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, SecretStr) or value in ({}, ()):
        return ""
    return f"`{value}`"

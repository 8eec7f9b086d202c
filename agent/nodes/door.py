"""The door of the state: what a caller states and what a person edits is taken in, or refused in one sentence.

LangGraph drops a key that it does not know without a word, and a channel without a reducer keeps whatever it is
given: a run would go on as if nothing had been said, or break long after.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from langchain_core.messages import convert_to_messages
from langgraph.types import Overwrite
from pydantic import TypeAdapter, ValidationError

from agent.core.change import LedgerChange, PlanChange, WorldChange
from agent.core.mistake import first_mistake
from agent.core.value import Value
from agent.nodes.state import RunInput, RunState

STATED = tuple(RunInput.__annotations__)
"""What a caller states."""
EDITED = tuple(RunState.__annotations__)
"""What a person may edit: everything."""

_CHANGE = {"world": WorldChange, "plan": PlanChange, "ledger": LedgerChange}
"""What a node writes to these is a change; Studio hands it back when a person edits what a node has written."""


def admitted(values: Mapping[str, object], names: tuple[str, ...], what: str) -> dict[str, object]:
    """The values as the state holds them. None says nothing, where it cannot be the value.

    Args:
        values: by channel.
        names: the channels that may be written.
        what: what is written, for the refusal.

    Raises:
        ValueError: there is no such channel, or a value does not fit it.
    """
    for each in values:
        if each not in names:
            raise ValueError(f"{what} has no {each!r}; it has: {', '.join(names)}")
    return {name: _taken(name, each) for name, each in values.items() if each is not None or _may_be_none(name)}


def _taken(name: str, value: object) -> object:
    if isinstance(value, Overwrite | Value):  # a wrong one is refused by the reducer
        return value
    try:
        if name == "messages":
            convert_to_messages(value if isinstance(value, list) else [value])  # type: ignore[list-item]
            return value
        return _type(name, isinstance(value, Mapping) and "change" in value).validate_python(value)
    except ValidationError as error:
        raise ValueError(first_mistake(error, name, getattr(_hint(name), "model_fields", ()))) from error
    except (ValueError, NotImplementedError) as error:
        raise ValueError(f"{name}: {str(error).splitlines()[0]}") from error


@cache
def _type(name: str, change: bool) -> TypeAdapter[Any]:
    return TypeAdapter(_CHANGE[name] if change and name in _CHANGE else _hint(name))


@cache
def _may_be_none(name: str) -> bool:
    return type(None) in get_args(_hint(name))


def _hint(name: str) -> Any:
    """The type of a channel's value, without what LangGraph reads."""
    hint = get_type_hints(RunState, include_extras=True)[name]
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint

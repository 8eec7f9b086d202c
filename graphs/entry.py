"""Where does what is said come into the loop? An input, an edit of the state, and where the run goes on from there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._config import ensure_config
from langgraph.types import Command, StateUpdate

from agent.core.phase import Phase
from agent.nodes.door import EDITED, STATED, admitted

_OBSERVED = {"world", "plan"}

_READ = "__pregel_read"
"""What LangGraph hands down to a graph that runs inside of another."""


def fitting(edit: StateUpdate) -> StateUpdate:
    """The edit with values as the state holds them.

    Raises:
        ValueError: the state has no such channel, or a value does not fit.
    """
    values = edit.values
    return edit._replace(values=admitted(values, EDITED, "the state")) if isinstance(values, Mapping) else edit


def observes(together: Sequence[StateUpdate]) -> bool:
    """Whether a person says that world or plan are otherwise, and not which node has found so."""
    return any(each.as_node is None and not _OBSERVED.isdisjoint(each.values or ()) for each in together)


def entered(together: Sequence[StateUpdate], ended: bool) -> list[list[StateUpdate]]:
    """Where an edit comes in: what a caller may state comes in where callers state it, whatever the run was doing."""
    if len(together) != 1 or together[0].as_node is not None or not isinstance(together[0].values, Mapping):
        return [list(together)]
    edit, values = together[0], dict(together[0].values)
    stated = {name: each for name, each in values.items() if name in STATED}
    observed = {name: each for name, each in values.items() if name not in STATED}
    if stated and not observed:
        return [[edit._replace(as_node="__start__")]]
    if ended and observes(together):  # as a node that wrote it, and then as a caller who has nothing to add
        written = edit._replace(values={**observed, "phase": Phase.DISPATCHER}, as_node=Phase.VERIFIER.value)
        return [[written], [StateUpdate(stated or {"facts": {}}, "__start__")]]
    return [list(together)]


def taken_in(given: Any, config: RunnableConfig | None) -> Any:
    """What a caller gives, as the state holds it. A graph that this one is a part of may have more in its state.

    Raises:
        ValueError: it states something that is not there, or a value does not fit; nothing is changed.
    """
    if isinstance(given, Command) and isinstance(given.update, Mapping):
        return replace(given, update=admitted(given.update, EDITED, "the state"))
    if not isinstance(given, Mapping) or _READ in ensure_config(config).get("configurable", {}):
        return given
    return admitted(given, STATED, "the input")

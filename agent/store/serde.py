"""Which types may a checkpoint bring back? Ours and LangChain's messages, by name; nothing else, and no warning."""

import copy
from collections.abc import Iterator
from typing import Any

from langchain_core import messages
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent.store.naming import TypeName, our_types
from agent.store.packing import Packing


def trusting(checkpointer: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """The same checkpointer, reading our types as what they are.

    LangGraph warns of every type it was not told of, unless its strict mode is on, and then it is told by the
    graph's own schema. A serialiser that a caller made (encrypted, say, or with a list of their own) is left alone.
    """
    serde = checkpointer.serde
    # one that allows everything stays itself when a name is added to what it allows
    if not isinstance(serde, JsonPlusSerializer) or type(serde) not in (JsonPlusSerializer, Packing):
        return checkpointer
    if serde.with_msgpack_allowlist([("no", "Type")]) is not serde:
        return checkpointer
    clone = copy.copy(checkpointer)
    clone.serde = type(serde)(allowed_msgpack_modules=tuple(known_types()))
    return clone


def known_types() -> Iterator[TypeName]:
    """Module and name of every type that may lie in a checkpoint."""
    yield from our_types()
    for name in messages.__all__:
        found = getattr(messages, name)
        if isinstance(found, type) and issubclass(found, messages.BaseMessage):
            yield found.__module__, found.__name__

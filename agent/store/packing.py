"""How checkpoints are kept small: packed against an example of one, for each is hardly different from the last.

A long run writes tens of thousands of small values. Alone they hardly compress; most of each are names.
"""

import zlib
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.store.example import EXAMPLE
from agent.store.naming import Naming

PACKED = "msgpack+1"
"""What LangGraph stores beside a packed value: its own spelling, packed against example 1."""

SMALLEST = 24
"""Bytes; less is not worth it."""

_WINDOW, _MEMORY, _LEVEL = -13, 6, 6
"""Deflate without a header; a small window is quick to set up, and holds the example twice."""

_DICTIONARY = JsonPlusSerializer().dumps_typed(EXAMPLE)[1]
_PRIMED = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)


class Packing(Naming):
    """LangGraph's own serialiser, packing what it wrote. It reads both what is packed and what is not."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Spell and pack a value; as it is, where packing makes it no smaller."""
        kind, plain = super().dumps_typed(obj)
        packed = _packed(plain) if kind == "msgpack" and len(plain) >= SMALLEST else plain
        return (PACKED, packed) if len(packed) < len(plain) else (kind, plain)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value back."""
        kind, stored = data
        return super().loads_typed(("msgpack", _unpacked(stored)) if kind == PACKED else data)


def packing(checkpointer: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """The same checkpointer, which packs from now on what it stores outside of memory.

    It is changed and not copied: a caller who reads checkpoints from it directly has to understand them. A
    serialiser of a class of their own (encrypting, say) is left alone.
    """
    if type(checkpointer.serde) is JsonPlusSerializer and not isinstance(checkpointer, InMemorySaver):
        packed = Packing()
        vars(packed).update(vars(checkpointer.serde))
        checkpointer.serde = packed
    if isinstance(checkpointer, SqliteSaver | AsyncSqliteSaver):
        vars(checkpointer)["get_next_version"] = _next_version
    return checkpointer


def _next_version(current: str | int | None, _channel: None) -> str:
    """LangGraph's own, less the random part: that one is for savers whose forks share the values of a version."""
    return f"{int(str(current or 0).split('.')[0]) + 1:032}.{0:016}"


def _packed(plain: bytes) -> bytes:
    fresh = _PRIMED.copy()
    return fresh.compress(plain) + fresh.flush()


def _unpacked(stored: bytes) -> bytes:
    return zlib.decompressobj(_WINDOW, zdict=_DICTIONARY).decompress(stored)

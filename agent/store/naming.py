"""What is a type called today that a checkpoint names? It may have moved to another module, or been renamed since.

LangGraph writes a type as module and name, and gives the bare data, or nothing, for one that is not there any more.
Of our types the name alone counts, wherever they live; one that has another name today is in `RENAMED`.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import agent.core
from agent.core.record import SCHEMA, Record
from agent.core.value import Value

RENAMED: dict[str, str] = {}
"""A name that a released version has written -> the name of that type today."""

_OURS = "agent."
_NAMED = re.compile(rb"(agent\.[a-z0-9_.]+)(?:[\xa1-\xbf]|\xd9.)([A-Za-z_]\w*)", re.DOTALL)
"""How module and name lie in MessagePack: two strings, the second behind its length."""

_OF_A_TYPE = range(6)
"""Extension codes of LangGraph whose content begins with a type's module and name."""

TypeName = tuple[str, str]


_VERSIONED = re.compile(rb"\xaeschema_version(.)", re.DOTALL)
"""How the format of a trace record lies there: its name, and a small number as itself."""


class Newer(RuntimeError):
    """A checkpoint was written by a later release."""

    def __init__(self, holds: str) -> None:
        super().__init__(
            f"the checkpoint holds {holds}: it was written by a newer Kintsugi; upgrade, or read it with the release "
            "that wrote it"
        )


class UnknownType(Newer):
    """It holds a type that this release does not have."""

    def __init__(self, module: str, name: str) -> None:
        super().__init__(f"{module}.{name}, which this release does not know")


class UnknownFormat(Newer):
    """It holds a trace record in a format that this release does not read."""

    def __init__(self, version: object) -> None:
        super().__init__(f"trace records of schema {version}, and this release reads up to {SCHEMA}")


class Naming(JsonPlusSerializer):
    """LangGraph's own serialiser, which finds our types under the names they have today."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value back.

        Raises:
            UnknownType: it holds one of our types that is not there any more, or not yet.
            UnknownFormat: it holds trace records of a later format.
        """
        kind, stored = data
        if kind == "msgpack" and _outdated(stored):
            return super().loads_typed((kind, _renamed(stored)))
        return super().loads_typed(data)


def our_types() -> Iterator[TypeName]:
    """Module and name of every type of ours that may lie in a checkpoint."""
    _load()
    yield from ((v.__module__, v.__name__) for v in _subclasses(Value))
    yield from ((e.__module__, e.__name__) for e in StrEnum.__subclasses__() if e.__module__.startswith(_OURS))


@cache
def _load() -> None:
    """Import all that defines types of the state: who only deletes or lists would know few of them otherwise."""
    for name in (*(f"agent.core.{each.name}" for each in iter_modules(agent.core.__path__)), "agent.ports"):
        import_module(name)


_today: dict[str, TypeName] = {}
"""Our types by name; filled when one is asked for that is not in it."""


def _found(name: str) -> TypeName | None:
    name = RENAMED.get(name, name)
    if name not in _today:
        _today.update({each[1]: each for each in our_types() if each[0].startswith(_OURS)})
    return _today.get(name)


def _outdated(stored: bytes) -> bool:
    """Whether a name or a format in it may not be today's. Text may look like one: then it is only looked at again."""
    return any(
        _today.get(name.decode()) != (module.decode(), name.decode()) for module, name in set(_NAMED.findall(stored))
    ) or any(version[0] > SCHEMA for version in _VERSIONED.findall(stored))


def _renamed(stored: bytes) -> bytes:
    newer: list[Newer] = []

    def extension(code: int, content: bytes) -> ormsgpack.Ext:
        value = ormsgpack.unpackb(content, ext_hook=extension, option=ormsgpack.OPT_NON_STR_KEYS)
        if code in _OF_A_TYPE and str(value[0]).startswith(_OURS):
            found = _found(value[1])
            value[:2] = found or value[:2]
            newer.extend(_newer(found, value))  # what a hook throws is lost
        return ormsgpack.Ext(code, ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS))

    value = ormsgpack.unpackb(stored, ext_hook=extension, option=ormsgpack.OPT_NON_STR_KEYS)
    if newer:
        raise newer[0]
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def _newer(found: TypeName | None, value: list[Any]) -> Iterator[Newer]:
    if found is None:
        yield UnknownType(value[0], value[1])
    elif isinstance(value[2], dict) and found[1] in {each.__name__ for each in _subclasses(Record)}:
        version = value[2].get("schema_version", 1)
        if not isinstance(version, int) or version > SCHEMA:
            yield UnknownFormat(version)


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for derived in base.__subclasses__():
        yield derived
        yield from _subclasses(derived)

"""What of a value is sent? Handles, counts and the beginnings of texts, never a body, and nothing that is secret."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import singledispatch
from itertools import islice
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from agent.boundary import masked
from agent.core.goal import Goal
from agent.core.limits import Ledger
from agent.core.outcome import Outcome
from agent.core.plan import Plan
from agent.core.record import Record
from agent.core.world import Artifact, World
from agent.ports import Attempt
from agent.trace.story import told

TEXT = 500
"""Characters of one text."""

_SECRET = re.compile(r"(?i)(api[-_ ]?key|token|passw(or)?d|secret|authorization|cookie|credential|private[-_ ]?key)$")
"""Names whose texts are hidden whatever they look like."""


def trimmed(value: object) -> Any:
    """The value as plain JSON of bounded size."""
    return _Trim().of(value)


def trimmed_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Likewise the inputs or outputs of a span."""
    found: dict[str, Any] = trimmed(values)
    return found


def last_trimmed(values: dict[str, Any]) -> dict[str, Any]:
    """What leaves the process, whoever made the span: bounded more widely, so that what is trimmed stays as it is."""
    found: dict[str, Any] = _Trim(left=60_000, text=2_500, items=100, depth=16).of(values)
    return found


def short(text: str, most: int = TEXT) -> str:
    """The beginning of a text, without credentials; of a longer one also its length and digest."""
    if len(text) <= most + 60:  # a short one's own length and digest would be longer
        return masked(text)
    sha = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    # masked before it is cut, with what follows: half a credential looks like none
    return f"{masked(text[: 2 * most])[:most]}… {len(text)} characters, sha256 {sha}"


@dataclass
class _Trim:
    left: int = 4_000
    """Characters of all texts together, about."""
    text: int = TEXT
    """Characters of one of them."""
    items: int = 12
    """Members of a list; a mapping may have twice as many."""
    depth: int = 6

    def of(self, value: object, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**63 else "an integer of more than 64 bits"
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}"
        if depth > self.depth or self.left <= 0:
            return "…"
        plain = handle(value)
        if isinstance(plain, Mapping):
            return self._mapping(plain, depth)
        return self._members(plain, depth) if isinstance(plain, list | tuple | set | frozenset) else self.of(plain)

    def _text(self, text: str) -> str:
        said = short(text, max(20, min(self.text, self.left)))
        self.left -= len(said)
        return said

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, each in islice(value.items(), 2 * self.items):
            name = self._text(str(key))
            found[name] = "***" if isinstance(each, str) and _SECRET.search(name) else self.of(each, depth + 1)
        if len(value) > len(found):
            found["…"] = f"{len(value) - len(found)} more"
        return found

    def _members(self, value: Any, depth: int) -> list[Any]:
        members: Iterable[Any] = islice(value, self.items)
        found = [self.of(each, depth + 1) for each in members]
        return [*found, f"… {len(value) - len(found)} more"] if len(value) > len(found) else found


@singledispatch
def handle(value: object) -> object:
    """What stands for a value: the few facts about it that a reader of a trace needs."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return value
    if is_dataclass(value):
        return {each.name: getattr(value, each.name, None) for each in fields(value)}
    if isinstance(value, BaseModel):
        return {name: getattr(value, name, None) for name in type(value).model_fields}
    return f"<{type(value).__name__}>"


@handle.register
def _(value: Goal) -> object:
    return {"text": value.text, "wants": value.wants, "criteria": len(value.criteria), "revision": value.revision}


@handle.register
def _(value: World) -> object:
    return {"artifacts": len(value.artifacts), "marked": sorted(value.marked), "version": value.version}


@handle.register
def _(value: Artifact) -> object:
    return {"version": value.version, "digest": value.digest, "bytes": value.size, "from": value.producer}


@handle.register
def _(value: Plan) -> object:
    return {"revision": value.revision, "steps": len(value.steps), "planner": value.planner}


@handle.register
def _(value: Ledger) -> object:
    return {name: getattr(value, name) for name in ("run", "steps", "verified", "tool_calls", "tokens", "money")}


@handle.register
def _(value: Outcome) -> object:
    made = {each.name: f"version {each.version}, {each.digest}, {each.size} bytes" for each in value.artifacts.values()}
    return {"status": value.status.value, "reason": value.reason, "missing": value.missing, "artifacts": made}


@handle.register
def _(value: Record) -> object:
    keyword, said = told(value)
    return f"{keyword}: {said}"


@handle.register
def _(value: Attempt) -> object:
    result = value.result
    gave = {"stored": result.stored} if result.stored else {"value": result.value}
    error = {"error": result.error.message} if result.error else {}
    return {"how": result.how, "inputs": value.inputs, "seconds": round(value.seconds, 3), **gave, **error}


@handle.register
def _(value: BaseMessage) -> object:
    calls = getattr(value, "tool_calls", None)
    return {"type": value.type, "content": value.content, **({"tool_calls": calls} if calls else {})}

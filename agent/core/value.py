"""What a value is: JSON, its canonical spelling and its digest. Two equal values have one digest."""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NewType, Self

from pydantic import BaseModel, ConfigDict, JsonValue

Digest = NewType("Digest", str)
"""Hex digest of a value's canonical spelling; 32 characters (128 bits of SHA-256)."""

ArtifactName = str
"""Name of an artifact; an identifier that no step owns, so rewriting a step never breaks a reference."""

__all__ = [
    "ArtifactName",
    "Digest",
    "JsonValue",
    "Value",
    "abridged",
    "canonical",
    "digest",
    "leaves",
    "size",
    "weighed",
    "words",
]


class Value(BaseModel):
    """Base of every core value: frozen, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kept_with: ClassVar[frozenset[str]] = frozenset()
    """Fields from which everything is computed that is computed once (`cached_property`); none: from all of them."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """The value as plain JSON. Checkpoints are made of this, and packing a closed set by its class is slow."""
        return super().model_dump(**{"mode": "json", **options})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields. What was computed from the old ones and kept (`cached_property`) is forgotten."""
        given = update or {}
        names = type(self).__pydantic_fields__
        forgets = not self.kept_with or not self.kept_with.isdisjoint(given)
        held = self.__dict__
        forgets = forgets and len(held) > len(names)  # nothing but its fields: nothing to forget
        known = {name: each for name, each in held.items() if name in names} if forgets else held
        # what pydantic's own does, less its search for private and extra fields, of which a value has none
        copied = type(self).__new__(type(self))
        object.__setattr__(copied, "__dict__", {**known, **given})
        object.__setattr__(copied, "__pydantic_fields_set__", self.__pydantic_fields_set__ | given.keys())
        object.__setattr__(copied, "__pydantic_extra__", None)
        object.__setattr__(copied, "__pydantic_private__", None)
        return copy.deepcopy(copied) if deep else copied

    def knowing(self, **computed: object) -> Self:
        """The same value, told what it would have to compute: whoever changed one part of it knows the rest.

        It is no part of the value: not compared, not stored.
        """
        self.__dict__.update(computed)
        return self


def leaves(value: JsonValue) -> Iterator[JsonValue]:
    """All parts of a value that have no parts, but for nulls."""
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    elif value is not None:
        yield value


def canonical(value: JsonValue) -> str:
    """Spell a JSON value so that key order and spacing never matter."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: JsonValue) -> Digest:
    """Identify a JSON value by its content."""
    return _digest(_encode(value))


def weighed(value: JsonValue) -> tuple[Digest, int]:
    """Digest and size at once: a large value is spelled only once for both."""
    spelled = _encode(value)
    return _digest(spelled), len(spelled)


def size(value: JsonValue) -> int:
    """Bytes of the canonical spelling."""
    return len(_encode(value))


def words(value: object) -> object:
    """Accept `"a b"` where a list of names is meant; anything else passes through unchanged."""
    return tuple(value.split()) if isinstance(value, str) else value


def _digest(spelled: bytes) -> Digest:
    return Digest(hashlib.sha256(spelled).hexdigest()[:32])


def _encode(value: JsonValue) -> bytes:
    # surrogatepass: a lone surrogate is a legal Python string and must not lose a finished step
    return canonical(value).encode("utf-8", "surrogatepass")


def abridged(value: JsonValue, limit: int = 400) -> JsonValue:
    """A value for records and prompts: parts over `limit` bytes become their digest and size."""
    if size(value) <= limit:
        return value
    if isinstance(value, dict) and len(value) <= 50:
        return {key: abridged(each, limit // 2) for key, each in value.items()}
    return f"<{size(value)} bytes, digest {digest(value)}>"

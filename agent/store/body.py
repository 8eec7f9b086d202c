"""How a JSON value lies on disk: its canonical spelling as bytes, which reads back as an equal value."""

import json

from agent.core.value import JsonValue, canonical


def to_body(value: JsonValue) -> bytes:
    """Spell a value as bytes."""
    # surrogatepass: SQLite and UTF-8 refuse a lone surrogate, but a tool may well return one
    return canonical(value).encode("utf-8", "surrogatepass")


def from_body(body: bytes) -> JsonValue:
    """Read a value back."""
    value: JsonValue = json.loads(body.decode("utf-8", "surrogatepass"))
    return value

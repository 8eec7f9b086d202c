"""Do arguments fit a tool's JSON schema? Names, required ones and basic types; references fit anywhere.

This is no full JSON Schema validator. It finds what a planner gets wrong; the tool has the last word.
"""

import re
from collections.abc import Iterator, Mapping

from agent.core.reference import referenced
from agent.core.value import JsonValue, canonical

Schema = Mapping[str, JsonValue]

_BRACES = re.compile(r"\{\{\s*\w[^{}]*\}\}")
_KNOWN_TYPES = ("boolean", "integer", "number", "string", "array", "object", "null")
_SHOWN = 60
"""Characters of a wrong value that an error quotes."""


def misfits(args: Mapping[str, JsonValue], schema: Schema) -> tuple[str, ...]:
    """What is wrong with the arguments, one phrase each; empty when they fit."""
    properties = {name: _mapping(each) for name, each in _mapping(schema.get("properties")).items()}
    required = schema.get("required")
    missing = [name for name in required if name not in args] if isinstance(required, list) else []
    unknown = [] if schema.get("additionalProperties") else [name for name in args if name not in properties]
    known = ", ".join(properties) or "none"
    return (
        *(f"argument {name!r} is missing" for name in missing),
        *(f"there is no argument {name!r}; the arguments are: {known}" for name in unknown),
        *(
            f"argument {name!r} must be {_described(properties[name], schema)}, not {_quoted(value)}"
            for name, value in args.items()
            if name in properties and not fits(value, properties[name], schema)
        ),
    )


def malformed(value: JsonValue) -> tuple[str, ...]:
    """Texts that look like references and are none, so that nobody would replace them: `{{rows[0]}}`."""
    return tuple(each for each in _BRACES.findall(canonical(value)) if not referenced(each))


def described_by(name: str, schema: Schema) -> dict[str, JsonValue]:
    """What a schema says of one property, definitions followed; empty when it says nothing."""
    told = _mapping(_mapping(schema.get("properties")).get(name))
    return {**_followed(told, schema), **{key: each for key, each in told.items() if key == "default"}}


def closed(value: JsonValue, schema: Schema, root: Schema) -> bool:
    """Whether a value is one of the few that a schema lists: of an enumeration, a constant, true or false."""
    schema = _followed(schema, root)
    choices = [each for key in ("anyOf", "oneOf", "allOf") for each in _list(schema.get(key))]
    if any(closed(value, _mapping(each), root) for each in choices):
        return True
    listed = "enum" in schema or "const" in schema
    return _is_allowed(value, schema) if listed else isinstance(value, bool) and schema.get("type") == "boolean"


def fits(value: JsonValue, schema: Schema, root: Schema) -> bool:
    """Whether a value fits a schema. `root` holds the definitions that `$ref` points to."""
    if isinstance(value, str) and _is_reference(value):
        return True
    schema = _followed(schema, root)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return any(fits(value, _mapping(each), root) for each in choices)
    every = schema.get("allOf")
    if isinstance(every, list) and not all(fits(value, _mapping(each), root) for each in every):
        return False
    return _is_allowed(value, schema) and _is_typed(value, schema) and all(_parts(value, schema, root))


def _is_reference(text: str) -> bool:
    """Whether the whole text is one reference; its type is known only when it is resolved."""
    return bool(_BRACES.fullmatch(text.strip())) and bool(referenced(text))


def _followed(schema: Schema, root: Schema) -> Schema:
    target = schema.get("$ref")
    if not isinstance(target, str) or not target.startswith("#/"):
        return schema
    found: JsonValue = dict(root)
    for part in target[2:].split("/"):
        found = _mapping(found).get(part)
    return _mapping(found)


def _is_allowed(value: JsonValue, schema: Schema) -> bool:
    allowed = schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        return False
    return "const" not in schema or value == schema["const"]


def _is_typed(value: JsonValue, schema: Schema) -> bool:
    wanted = schema.get("type")
    names = wanted if isinstance(wanted, list) else [wanted]
    return wanted is None or any(_is_a(value, name) for name in names)


def _is_a(value: JsonValue, name: JsonValue) -> bool:
    if isinstance(value, bool) and name in _KNOWN_TYPES:
        return name == "boolean"
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    match name:
        case "integer":
            return whole
        case "number":
            return isinstance(value, int | float)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
    return name not in _KNOWN_TYPES  # a type we do not know refuses nothing


def _parts(value: JsonValue, schema: Schema, root: Schema) -> Iterator[bool]:
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        yield from (fits(each, _mapping(schema["items"]), root) for each in value)
    if isinstance(value, dict):
        properties, required = _mapping(schema.get("properties")), schema.get("required")
        yield not isinstance(required, list) or all(name in value for name in required)
        yield from (fits(value[name], _mapping(properties[name]), root) for name in properties if name in value)


def _described(schema: Schema, root: Schema) -> str:
    schema = _followed(schema, root)
    allowed, choices = schema.get("enum"), schema.get("anyOf") or schema.get("oneOf")
    if isinstance(allowed, list):
        return "one of " + ", ".join(canonical(each) for each in allowed)
    if isinstance(choices, list):
        return " or ".join(_described(_mapping(each), root) for each in choices)
    kind = schema.get("type")
    return " or ".join(str(each) for each in kind) if isinstance(kind, list) else str(kind or "as its schema says")


def _quoted(value: JsonValue) -> str:
    text = canonical(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _list(value: object) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}

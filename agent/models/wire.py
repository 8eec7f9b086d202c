"""Which JSON schema does the server enforce? One variant of a step per tool, with that tool's own arguments.

Typed arguments are what lets a small model draw valid plans: it cannot name a tool that does not exist, nor
an argument the tool does not have. The plan check stands behind this, for servers that enforce nothing.
"""

from collections.abc import Iterable, Mapping, Sequence, Set

from langchain_core.utils.json_schema import dereference_refs

from agent.core.contract import Contracts, ToolContract
from agent.core.failure import Scope
from agent.core.ruling import FAILS, HOLDS, UNSURE
from agent.core.value import ArtifactName, JsonValue
from agent.models.conversion import bound, makeable, promised

Schema = dict[str, JsonValue]

_REFERENCE: Schema = {"type": "string", "pattern": r"^\{\{[A-Za-z0-9_.]+\}\}$"}
_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
_TEXT: Schema = {"type": "string"}


def plan_schema(
    schemas: Mapping[str, Schema],
    contracts: Contracts,
    written: frozenset[str],
    meaning: bool,
    window: int,
    present: Iterable[ArtifactName] = (),
) -> Schema:
    """Schema of a plan over these tools; with `meaning`, also of what the goal's text asks for."""
    there = makeable(contracts, present)
    tools = [_call(schemas[name], contracts[name], written, there) for name in sorted(schemas)]
    variants: list[JsonValue] = [*tools, _instruction(sorted(schemas))] if tools else [_instruction([])]
    fields: Schema = {
        "steps": {
            "type": "array",
            "minItems": 0 if not meaning else 1,
            "maxItems": window,
            "items": {"anyOf": variants},
        }
    }
    if meaning:
        fields["wants"] = _many(_NAME, least=1)
        fields["criteria"] = _many(_object({"text": _TEXT, "predicate": _TEXT}))
    return {**_object(fields), "title": "plan", "description": "Steps that reach the goal."}


def patch_schema(tool_schema: Schema) -> Schema:
    """Schema of other arguments for one tool."""
    args: Schema = {"anyOf": [_arguments(tool_schema), {"type": "null"}]}
    fields = _object({"reason": _TEXT, "args": args})
    return {**fields, "title": "patch", "description": "Other arguments for the call, or null."}


def scope_schema() -> Schema:
    """Schema of the closed set of scopes."""
    scopes: Schema = {"type": "string", "enum": [each.value for each in Scope]}
    fields = _object({"reason": _TEXT, "scope": scopes})
    return {**fields, "title": "scope", "description": "What the error proves false."}


def ruling_schema() -> Schema:
    """Schema of a judge's verdict."""
    verdicts: Schema = {"type": "string", "enum": [HOLDS, FAILS, UNSURE]}
    fields = _object({"evidence": _TEXT, "verdict": verdicts})
    return {**fields, "title": "ruling", "description": "Whether the sentence holds, and what shows it."}


def action_schema(offer: Sequence[Schema]) -> Schema:
    """Schema of one call of one of these functions, each with its own arguments.

    The choice lies in a frame: servers want an object at the root.
    """
    choices: list[JsonValue] = [_action(each["function"]) for each in offer]
    return {**_object({"action": {"anyOf": choices}}), "title": "action", "description": "The next call."}


def _action(function: JsonValue) -> JsonValue:
    assert isinstance(function, dict)
    name, schema = function["name"], function["parameters"]
    assert isinstance(schema, dict)
    return _object({"tool": {"type": "string", "enum": [name]}, "args": _arguments(schema)})


def _call(schema: Schema, contract: ToolContract, written: frozenset[str], there: frozenset[ArtifactName]) -> JsonValue:
    name = contract.tool
    fields: Schema = {
        "id": _TEXT,
        "intent": _TEXT,
        "tool": {"type": "string", "enum": [name]},
    }
    free = _unbound(_arguments(schema), bound(contract, written, there) - contract.alternatives.keys())
    if free["properties"] or name not in written:
        fields["args"] = free
    if not promised(contract, written):
        fields["produces"] = _many(_NAME, least=1, most=1)
    if name in written:
        # what a contract knows is not asked for, nor an order, which follows from what it needs: the fewer fields a
        # model fills, the fewer it gets wrong
        return _object(fields)
    return _object({**fields, "needs": _many(_NAME)}, optional={"after": _many(_TEXT), "effects": _many(_TEXT)})


def _instruction(names: list[str]) -> JsonValue:
    tool: Schema = {"type": "string", "enum": list[JsonValue](names)} if names else _TEXT
    return _object(
        {
            "id": _TEXT,
            "intent": _TEXT,
            "instruction": _TEXT,
            "tools": _many(tool),
            "needs": _many(_NAME),
            "produces": _many(_NAME, least=1),
        },
        optional={"effects": _many(_TEXT), "after": _many(_TEXT)},
    )


def _arguments(schema: Schema) -> Schema:
    plain = dereference_refs(dict(schema))
    properties, required = plain.get("properties", {}), plain.get("required", [])
    fields = {name: _referable(_lean(each)) for name, each in properties.items()}
    needed = {name: each for name, each in fields.items() if name in required}
    return _object(needed, optional={name: each for name, each in fields.items() if name not in needed})


def _unbound(arguments: Schema, given: Set[str]) -> Schema:
    """The arguments that are left for the model to choose."""
    properties, required = arguments["properties"], arguments["required"]
    assert isinstance(properties, dict) and isinstance(required, list)
    free = {name: each for name, each in properties.items() if name not in given}
    needed = {name: each for name, each in free.items() if name in required}
    return _object(needed, optional={name: each for name, each in free.items() if name not in needed})


def _referable(schema: Schema) -> Schema:
    """The schema, or a reference to an artifact of that type; any text may hold references as it is."""
    free = not schema or (schema.get("type") == "string" and "enum" not in schema)
    return schema if free else {"anyOf": [schema, _REFERENCE]}


def _lean(schema: Mapping[str, JsonValue]) -> Schema:
    """Without what only people read; every token of a schema is paid for."""
    return {key: each for key, each in schema.items() if key not in ("title", "default")}


def _object(required: Mapping[str, JsonValue], optional: Mapping[str, JsonValue] | None = None) -> Schema:
    properties: Schema = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _many(item: JsonValue, least: int = 0, most: int | None = None) -> Schema:
    bounds: Schema = {"minItems": least} if least else {}
    return {"type": "array", "items": item, **bounds, **({"maxItems": most} if most else {})}

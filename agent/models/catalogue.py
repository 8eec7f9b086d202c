"""What can the tools do, in the fewest words a planner needs? One line for each."""

from collections.abc import Mapping

from agent.core.contract import Contracts, ToolContract
from agent.core.value import JsonValue
from agent.models.conversion import bound, promised

Schema = dict[str, JsonValue]


def catalogue(schemas: Mapping[str, Schema], contracts: Contracts, written: frozenset[str]) -> str:
    """One line per tool: its call, what it makes, what it is for, and whether it changes the world."""
    return "\n".join(_line(schemas[name], contracts[name], written) for name in sorted(schemas)) or "none"


def _line(schema: Schema, contract: ToolContract, written: frozenset[str]) -> str:
    given = bound(contract, written)
    properties, required = schema.get("properties"), schema.get("required")
    assert isinstance(properties, dict)
    marks = {name: "" if isinstance(required, list) and name in required else "?" for name in properties}
    call = ", ".join(f"{name}{mark}: {_type(properties[name])}" for name, mark in marks.items() if name not in given)
    makes = ", ".join(contract.produces) if promised(contract, written) else "one artifact that you name"
    needs = f" Needs {', '.join(contract.needs)}." if contract.tool in written and given and contract.needs else ""
    return f"- {contract.tool}({call}) makes {makes}. {contract.intent.rstrip('.')}.{needs} [{contract.effect}]"


def _type(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return "any"
    choices, values = schema.get("anyOf"), schema.get("enum")
    if isinstance(values, list):
        return " | ".join(repr(each) for each in values)
    if isinstance(choices, list):
        return " | ".join(_type(each) for each in choices)
    return str(schema.get("type", "any"))

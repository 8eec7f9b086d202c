"""What can the tools do, in the fewest words a planner needs? One line for each."""

from collections.abc import Iterable, Mapping

from agent.core.contract import Contracts, ToolContract
from agent.core.value import ArtifactName, JsonValue
from agent.models.conversion import bound, makeable, promised

Schema = dict[str, JsonValue]


def catalogue(
    schemas: Mapping[str, Schema],
    contracts: Contracts,
    written: frozenset[str],
    present: Iterable[ArtifactName] = (),
) -> str:
    """One line per tool: its call, what it makes, what it is for, and whether it changes the world."""
    there = makeable(contracts, present)
    return "\n".join(_line(schemas[name], contracts[name], written, there) for name in sorted(schemas)) or "none"


def _line(schema: Schema, contract: ToolContract, written: frozenset[str], there: frozenset[ArtifactName]) -> str:
    given = bound(contract, written, there)
    properties, required = schema.get("properties"), schema.get("required")
    assert isinstance(properties, dict)
    marks = {name: "" if isinstance(required, list) and name in required else "?" for name in properties}
    call = ", ".join(f"{name}{mark}: {_type(properties[name])}" for name, mark in marks.items() if name not in given)
    makes = ", ".join(contract.produces) if promised(contract, written) else "one artifact that you name"
    needed = [each for each in contract.needs if each not in properties or each in given] if given else []
    needs = f" Needs {', '.join(needed)}." if needed else ""
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

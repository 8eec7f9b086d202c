"""How a tool's promise is written down: the `contract` decorator, and how it is read back.

@contract(needs="settings schema", produces="db", effect="mutating",
requires="artifacts.schema.tables.exists(t, t == 'users')",
ensures="artifacts.db.tables.size() == artifacts.schema.tables.size()",
observe=read_tables)
@tool
def provision_db(settings: dict, schema: dict) -> dict:
"Create the reporting database."
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool

from agent.core.contract import EffectClass, ToolContract
from agent.core.reference import referenced
from agent.core.value import JsonValue

Probe = Callable[..., object]
"""Looks at an artifact again: takes some of the tool's arguments by name, returns the artifact's value,
None when it is not there, and may be async. For a tool that changes the world its value *is* the artifact."""

_METADATA_KEY = "kintsugi"


class Contract(NamedTuple):
    """A contract with its probe: what rides on a tool."""

    promise: ToolContract
    observe: Probe | None = None


def contract(
    *,
    needs: str | Sequence[str] | None = None,
    produces: str | Sequence[str] | None = None,
    args: Mapping[str, JsonValue] | None = None,
    each: Mapping[str, str] | None = None,
    requires: str | Sequence[str] = (),
    ensures: str | Sequence[str] = (),
    effect: str = "mutating",
    idempotent: bool | None = None,
    seconds: float | None = None,
    cost: float = 1.0,
    price: float = 0.0,
    observe: Probe | None = None,
    alternatives: Mapping[str, Sequence[JsonValue]] | None = None,
    stands_in_for: str | None = None,
    idempotency_key: str = "",
    free: str | Sequence[str] | None = None,
) -> Callable[[Any], BaseTool]:
    """Attach a contract to a tool (a LangChain tool, or a function, which becomes one).

    Args:
        needs: artifacts that must hold before, `"a b"` or a list; a trailing `*` means a family (`"loaded_*"`).
            Default: the tool's parameters that are bound by nothing else and have no default.
        produces: artifacts it makes; default: the tool's name. With several, the tool returns a mapping of them.
            `{parameter}` is filled from `each`.
        args: parameter -> literal or reference (`"{{settings.database}}"`). A parameter named like a need is
            bound to it without being listed.
        each: parameter -> name of a list the goal gives: one step for every element.
        requires: CEL predicates that must hold before.
        ensures: CEL predicates that must hold after; `result` is what the tool returned.
        effect: `read_only` or `mutating`; what nobody declared harmless is treated as mutating.
        idempotent: repeating it with equal arguments changes nothing more; default: true if read_only.
        seconds: how long one call may take; default: `Settings.step_timeout`. A synchronous tool cannot be stopped: it
            goes on in its thread, is waited for before the call is made again, and ends with the process.
        cost: relative cost; the cheapest way is planned first.
        price: money for each call that is sent, in the currency of the price table; it counts under `Limits.money`.
        observe: probe that looks at the artifact again.
        alternatives: parameter -> values in order of preference.
        stands_in_for: name of the tool it can replace.
        idempotency_key: parameter that takes a key, the same text (32 hexadecimal digits) at every try of one effect,
            for a server that deduplicates by it. No plan and no model gives it. Say `idempotent=True` with it when
            the server can be trusted to, so that a call whose outcome is lost may simply be sent again.
        free: parameters to which a model may give whatever it read, such as the text of a file. All others come from
            the goal, the plan, a person, or a field that the plan names. Default: none for a tool that writes, all
            for one that only reads; `""` for one whose reading can carry something out, such as an address.

    Raises:
        ValueError: on an unknown effect, an unbound or unknown parameter (in `free` as well), or a predicate
            that does not compile.
    """

    def attach(target: Any) -> BaseTool:
        wrapped: BaseTool = target if isinstance(target, BaseTool) else as_tool(target)
        fixed, spread = dict(args or {}), dict(each or {})
        options = {name: tuple(values) for name, values in (alternatives or {}).items()}
        required, optional = _parameters(wrapped, idempotency_key)
        bound = {*fixed, *spread, *options}
        listed = _listed(needs) if needs is not None else tuple(name for name in required if name not in bound)
        fixed |= {name: f"{{{{{name}}}}}" for name in (*required, *optional) if name in listed and name not in bound}
        loose = None if free is None else _listed(free)
        _refuse_unbound(wrapped.name, required, optional, {*fixed, *bound}, loose or ())
        extra = {name for value in fixed.values() for name in referenced(value)} - set(listed)
        promise = ToolContract(
            tool=wrapped.name,
            intent=re.split(r"(?<=[.!?])\s", wrapped.description.strip())[0].rstrip("."),
            needs=(*listed, *sorted(extra)),
            produces=_listed(produces) if produces is not None else (_identifier(wrapped.name),),
            args=fixed,
            each=spread,
            requires=_expressions(requires),
            ensures=_expressions(ensures),
            effect=_effect(wrapped.name, effect),
            idempotent=effect == EffectClass.READ_ONLY if idempotent is None else idempotent,
            seconds=seconds,
            cost=cost,
            price=price,
            alternatives=options,
            stands_in_for=stands_in_for,
            idempotency_key=idempotency_key,
            free=loose,
            texts=_texts(wrapped),
            observable=observe is not None,
        )
        wrapped.metadata = {**(wrapped.metadata or {}), _METADATA_KEY: Contract(promise, observe)}
        return wrapped

    return attach


def contract_of(tool: BaseTool) -> Contract:
    """The tool's contract; one without counts as mutating, not idempotent, and making nothing by name."""
    found = (tool.metadata or {}).get(_METADATA_KEY)
    if isinstance(found, Contract):
        return found
    required, _ = _parameters(tool)
    return Contract(
        ToolContract(
            tool=tool.name,
            intent=tool.description.strip().split("\n")[0],
            needs=tuple(required),
            produces=(_identifier(tool.name),),
            args={name: f"{{{{{name}}}}}" for name in required},
            texts=_texts(tool),
        )
    )


def has_contract(tool: BaseTool) -> bool:
    """Whether somebody wrote a contract for the tool."""
    return isinstance((tool.metadata or {}).get(_METADATA_KEY), Contract)


def accepted(function: Callable[..., object] | BaseTool, args: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Those of the arguments that a probe takes."""
    if isinstance(function, BaseTool):
        required, optional = _parameters(function)
        return {name: args[name] for name in (*required, *optional) if name in args}
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return dict(args)
    return {each.name: args[each.name] for each in parameters if each.name in args}


def _parameters(tool: BaseTool, key: str = "") -> tuple[list[str], list[str]]:
    """Required and optional parameters of a tool, without injected ones and the one for an idempotency key.

    Raises:
        ValueError: there is no such parameter for a key.
    """
    schema = json_schema(tool)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    assert isinstance(properties, dict) and isinstance(required, list)
    if key and key not in properties:
        raise ValueError(f"tool {tool.name!r} has no parameter {key!r} for an idempotency key")
    names = [name for name in properties if name != key]
    return [name for name in names if name in required], [name for name in names if name not in required]


def _texts(tool: BaseTool) -> tuple[str, ...]:
    """Parameters that take nothing but text."""
    properties = json_schema(tool).get("properties")
    told = properties.items() if isinstance(properties, dict) else ()
    return tuple(name for name, each in told if isinstance(each, dict) and each.get("type") == "string")


def json_schema(tool: BaseTool) -> dict[str, JsonValue]:
    """JSON schema of a tool's arguments, without injected ones and the one for an idempotency key."""
    schema: Any = tool.tool_call_schema
    found: dict[str, JsonValue] = schema if isinstance(schema, dict) else schema.model_json_schema()
    known = (tool.metadata or {}).get(_METADATA_KEY)
    key = known.promise.idempotency_key if isinstance(known, Contract) else ""
    return _without(found, key) if key else found


def _without(schema: dict[str, JsonValue], name: str) -> dict[str, JsonValue]:
    properties, required = schema.get("properties"), schema.get("required")
    assert isinstance(properties, dict)
    listed = required if isinstance(required, list) else []
    return {
        **schema,
        "properties": {each: value for each, value in properties.items() if each != name},
        "required": [each for each in listed if each != name],
    }


def _refuse_unbound(
    tool: str, required: Iterable[str], optional: Iterable[str], bound: set[str], free: Iterable[str]
) -> None:
    unbound = [name for name in required if name not in bound]
    if unbound:
        raise ValueError(
            f"tool {tool!r}: parameter {unbound[0]!r} is bound by nothing; name it in needs, args, each or alternatives"
        )
    unknown = sorted({*bound, *free} - {*required, *optional})
    if unknown:
        raise ValueError(f"tool {tool!r} has no parameter {unknown[0]!r}; it has {', '.join((*required, *optional))}")


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(names.split()) if isinstance(names, str) else tuple(names)


def _expressions(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _effect(tool: str, effect: str) -> EffectClass:
    try:
        return EffectClass(effect)
    except ValueError:
        raise ValueError(f"tool {tool!r}: effect is {effect!r}, but must be read_only or mutating") from None


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)

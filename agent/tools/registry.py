"""The tools of a runtime: looked up by name, their contracts checked once when the graph is built."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool

from agent.core.contract import ToolContract
from agent.core.identifier import identifier
from agent.core.value import JsonValue
from agent.tools.contracts import Contract, Probe, contract_of, has_contract, json_schema


class UnknownTool(LookupError):
    """A plan or a patch names a tool that is not registered; the message lists those that are."""


class Registry:
    """Tools by name, with their contracts and probes."""

    def __init__(self, tools: Sequence[Any]) -> None:
        """Register the tools.

        Raises:
            ValueError: on two tools of one name, a name that cannot be kept, a stand-in for a tool that does not
                exist, or a parameter whose name LangChain keeps for itself.
        """
        self._tools: dict[str, BaseTool] = {}
        for each in tools:
            wrapped: BaseTool = each if isinstance(each, BaseTool) else as_tool(each)
            identifier(wrapped.name, "the name of a tool")
            if wrapped.name in self._tools:
                raise ValueError(f"two tools are named {wrapped.name!r}; names must be unique")
            _refuse_reserved(wrapped)
            self._tools[wrapped.name] = wrapped
        self._contracts: dict[str, Contract] = {name: contract_of(each) for name, each in self._tools.items()}
        for name, each in self._contracts.items():
            target = each.promise.stands_in_for
            if target is not None and target not in self._tools:
                raise ValueError(f"tool {name!r} stands in for {target!r}, which is not registered")
        self.contracts: dict[str, ToolContract] = {name: each.promise for name, each in self._contracts.items()}
        """All contracts by tool name."""

    @property
    def plannable(self) -> dict[str, ToolContract]:
        """What the contract planner may chain over: written contracts, and tools wanted under their own name."""
        written = {name for name in self._contracts if has_contract(self._tools[name])}
        made = {product for name in written for product in self._contracts[name].promise.produces}
        return {
            name: each.promise
            for name, each in self._contracts.items()
            if name in written or not made & set(each.promise.produces)
        }

    def tool(self, name: str) -> BaseTool:
        """The tool of that name.

        Raises:
            UnknownTool: listing the registered ones.
        """
        if name not in self._tools:
            raise UnknownTool(f"no tool {name!r}; registered: {', '.join(sorted(self._tools)) or 'none'}")
        return self._tools[name]

    def probe(self, name: str) -> Probe | None:
        """What looks at the tool's artifact again, if anything does."""
        return self._contracts[name].observe if name in self._contracts else None

    def schema(self, name: str) -> dict[str, JsonValue]:
        """JSON schema of a tool's arguments, injected ones left out."""
        return json_schema(self.tool(name))

    def key_of(self, name: str) -> str:
        """The tool's parameter for an idempotency key; empty when it has none."""
        contract = self.contracts.get(name)
        return contract.idempotency_key if contract else ""

    def schemas(self) -> dict[str, dict[str, JsonValue]]:
        """The same of all tools."""
        return {name: self.schema(name) for name in self.names()}

    def names(self) -> tuple[str, ...]:
        """Names of all tools, sorted."""
        return tuple(sorted(self._tools))


def _refuse_reserved(tool: BaseTool) -> None:
    """LangChain swallows an argument of this name: every call would fail, whatever the plan."""
    properties = json_schema(tool).get("properties")
    if isinstance(tool, StructuredTool) and isinstance(properties, dict) and "config" in properties:
        raise ValueError(f"tool {tool.name!r}: LangChain keeps the parameter name 'config' for itself; use another")

"""The tools of MCP servers behind contracts. What a server says of its tools is a claim; whoever names it trusts it."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool
from mcp.types import Tool, ToolAnnotations
from pydantic import PrivateAttr

from agent.core.value import JsonValue
from agent.settings import Settings
from agent.tools.contracts import contract
from agent.tools.mcp.config import McpConfigError, read_servers
from agent.tools.mcp.result import value_of
from agent.tools.mcp.session import Connection, NotStarted, at_once, close_at_exit, on_loop


def mcp_tools(
    path: Path | str, *, seconds: float = 300.0, start_seconds: float = 30.0, files: Path | None = None
) -> list[BaseTool]:
    """Start the servers of an `mcp.json` and give their tools, each with a contract.

    `readOnlyHint` makes a tool read only, unless it is also said to be destructive; `idempotentHint` makes it
    idempotent; `destructiveHint` makes it the last choice of a planner. A tool without hints counts as mutating and
    not idempotent. A server that lies about them makes the runtime repeat what it should not: name only servers
    that you trust with that.

    Args:
        path: the file; `${NAME}` and `${NAME:-default}` in it are filled from the environment.
        seconds: one call may take.
        start_seconds: a server may take to start.
        files: folder for images and other data in answers; default: `files` in the home folder.

    Raises:
        ValueError: the file makes no sense, or a server does not start.
    """
    servers = read_servers(Path(path))
    connections = [Connection(each, seconds, start_seconds) for each in servers]
    for each in connections:
        close_at_exit(each)
    try:
        listed = at_once(_all_listed(connections))
    except NotStarted as error:
        raise McpConfigError(f"{path}: {error}") from error
    where = files or Settings().home / "files"
    made = [
        _made(connection, each, where)
        for connection, tools in zip(connections, listed, strict=True)
        for each in tools.values()
    ]
    return list(told_apart(made))


async def _all_listed(connections: Sequence[Connection]) -> list[dict[str, Tool]]:
    results = await asyncio.gather(*(each.tools() for each in connections), return_exceptions=True)
    for each in results:
        if isinstance(each, BaseException):
            await asyncio.gather(*(connection.close() for connection in connections))
            raise each
    return [each for each in results if not isinstance(each, BaseException)]


class McpTool(BaseTool):
    """One tool of one server."""

    server: str
    _connection: Connection = PrivateAttr()
    _tool: Tool = PrivateAttr()
    _files: Path = PrivateAttr()

    def calling(self, connection: Connection, tool: Tool, files: Path) -> "McpTool":
        """Say what is called; a copy of the tool calls the same."""
        self._connection, self._tool, self._files = connection, tool, files
        return self

    def _run(self, **args: Any) -> JsonValue:
        return at_once(self._answer(args))

    async def _arun(self, **args: Any) -> JsonValue:
        return await on_loop(self._answer(args))

    async def _answer(self, args: dict[str, Any]) -> JsonValue:
        result = await self._connection.call(self._tool.name, args, self._tool.inputSchema)
        # servers have to wrap what is no object; the schema of the answer then knows this name alone
        wrapped = set((self._tool.outputSchema or {}).get("properties", {})) == {"result"}
        found = await asyncio.to_thread(value_of, result, wrapped, self._files)
        return self._connection.server.hidden_in(found)

    def prefixed(self) -> BaseTool:
        """The tool under the name of its server and its own."""
        return _promised(self.model_copy(update={"name": _plain(f"{self.server}_{self.name}")}), self._tool.annotations)


def told_apart(tools: Sequence[Any]) -> list[Any]:
    """The tools, those of servers prefixed by their server where another tool has the same name."""
    named = Counter(getattr(each, "name", None) for each in tools)
    return [each.prefixed() if isinstance(each, McpTool) and named[each.name] > 1 else each for each in tools]


def _made(connection: Connection, tool: Tool, files: Path) -> BaseTool:
    made = McpTool(
        name=_plain(tool.name),
        description=tool.description or tool.title or tool.name,
        args_schema=tool.inputSchema,
        server=connection.server.name,
    )
    return _promised(made.calling(connection, tool, files), tool.annotations)


def _promised(tool: BaseTool, hints: ToolAnnotations | None) -> BaseTool:
    hints = hints or ToolAnnotations()
    read_only = hints.readOnlyHint is True and hints.destructiveHint is not True
    return contract(
        effect="read_only" if read_only else "mutating",
        idempotent=read_only or hints.idempotentHint is True,
        cost=2.0 if hints.destructiveHint else 1.0,
    )(tool)


def _plain(name: str) -> str:
    """A name that every provider of models takes."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)

"""Tools of MCP servers, as an `mcp.json` names them. Needs the extra `mcp`."""

from agent.tools.mcp.tools import mcp_tools

__all__ = ["mcp_tools"]

"""Tools that come with the runtime, each behind a contract: files, SQLite, HTTP, and commands.

None is there by itself: whoever wants some names a folder, a database, or the programs that may be run.
"""

from agent.tools.builtin.command import command_tools
from agent.tools.builtin.http import http_tools
from agent.tools.builtin.sqlite import sqlite_tools
from agent.tools.builtin.workspace import workspace_tools

__all__ = ["command_tools", "http_tools", "sqlite_tools", "workspace_tools"]

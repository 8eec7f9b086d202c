"""What does an `mcp.json` say? Servers by name, their placeholders filled in; and which values are secrets."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.value import JsonValue

_PLACEHOLDER = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_SHORTEST = 6
"""Characters of a value that is hidden; a shorter one is part of too many words."""
_HTTP = {"": "streamable_http", "http": "streamable_http", "streamable-http": "streamable_http", "sse": "sse"}


class McpConfigError(ValueError):
    """The file does not name servers; the message says where, and shows no value that could be a secret."""


class Server(NamedTuple):
    """One server, ready to be connected to."""

    name: str
    connection: dict[str, Any]
    """As langchain-mcp-adapters takes it."""
    secrets: tuple[str, ...]
    """Values of its environment and headers."""

    def hidden(self, text: str) -> str:
        """The text without the server's secrets."""
        for each in self.secrets:
            text = text.replace(each, "***")
        return text

    def hidden_in(self, value: JsonValue) -> JsonValue:
        """The same for all texts of a value."""
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, list):
            return [self.hidden_in(each) for each in value]
        return {self.hidden(k): self.hidden_in(v) for k, v in value.items()} if isinstance(value, dict) else value


class _Entry(BaseModel):
    """What a server's entry may hold; clients add fields of their own, which are left alone."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    type: str = ""
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    mcpServers: dict[str, _Entry]  # the standard's spelling


def read_servers(path: Path, environment: Mapping[str, str] | None = None) -> list[Server]:
    """The servers of a file; those that are disabled are left out.

    Args:
        path: `{"mcpServers": {name: {"command", "args", "env"} or {"url", "headers"}}}`.
        environment: what `${NAME}` and `${NAME:-default}` stand for; default: this process's.

    Raises:
        McpConfigError: it cannot be read, an entry is neither kind, or a variable is not set.
    """
    try:
        found = _File.model_validate(json.loads(path.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise McpConfigError(f"{path}, {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise McpConfigError(f"{path}: cannot be read as JSON: {error}") from None
    values = os.environ if environment is None else environment
    return [_server(path, name, each, values) for name, each in found.mcpServers.items() if not each.disabled]


def _server(path: Path, name: str, entry: _Entry, values: Mapping[str, str]) -> Server:
    where = f"{path}, server {name!r}"
    if bool(entry.command) == bool(entry.url):
        raise McpConfigError(f"{where}: give either `command`, for a program, or `url`, for a service")

    def filled(text: str) -> str:
        def value(match: re.Match[str]) -> str:
            known = values.get(match[1]) or match[2]
            if known is None:
                raise McpConfigError(f"{where}: the variable {match[1]} is not set")
            return known

        return _PLACEHOLDER.sub(value, text)

    kept = {each: filled(value) for each, value in (entry.env or entry.headers).items()}
    secrets = {each for each in kept.values() if len(each) >= _SHORTEST}
    for text in (entry.url, *entry.args):
        secrets |= {
            values[each[1]] for each in _PLACEHOLDER.finditer(text) if len(values.get(each[1], "")) >= _SHORTEST
        }
    connection: dict[str, Any] = {
        "transport": "stdio",
        "command": filled(entry.command),
        "args": [filled(each) for each in entry.args],
        "env": kept,
        "cwd": entry.cwd,
    }
    if entry.url:
        if entry.type.lower() not in _HTTP:
            raise McpConfigError(f"{where}: type is {entry.type!r}, but must be http or sse")
        connection = {"transport": _HTTP[entry.type.lower()], "url": filled(entry.url), "headers": kept}
    return Server(name, connection, tuple(sorted(secrets, key=len, reverse=True)))

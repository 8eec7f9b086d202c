"""Where do tools come from when they are named in text? From sources: words such as `workspace:.`.

A reference is one word or several, as a shell would split them, so that a run can keep it and load it again:

workspace:DIR        the files of a folder          workspace:DIR,read_only
sqlite:FILE          a SQLite database              sqlite:FILE,read_only    sqlite:FILE,schema
http:                GET from public addresses      http:127.0.0.1:8080,10.0.0.0/8 (these private ones too)
command:PROGRAM,...  run these programs, here
mcp:FILE             the MCP servers of an mcp.json
steps:FILE           steps over all of these, from a TOML file
module:attribute     a list of tools, or a function that makes one
"""

import importlib
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent.tools.steps import load_steps

_FILES = ("workspace", "sqlite", "mcp", "steps")
"""Sources that name a file or a folder, which is looked for from where the word was written."""


class ToolsNotFound(ValueError):
    """The reference does not lead to tools; the message says which part is wrong."""


def load_tools(reference: str, folder: Path | None = None) -> Sequence[Any]:
    """The tools of a reference.

    Args:
        reference: words as above; for `module:attribute` the working directory is searched as well.
        folder: where its files are looked for; default: the working directory.

    Raises:
        ToolsNotFound: it is malformed, or a file, a module, an attribute or a list is not there.
    """
    here = folder or Path.cwd()
    found = [tool for word in _words(reference) for tool in _of(word, here)]
    if any(hasattr(each, "prefixed") for each in found):
        from agent.tools.mcp.tools import told_apart

        return told_apart(found)
    return found


def settled(reference: str) -> str:
    """The reference with its files named from the top, so that it leads to the same ones from anywhere.

    Raises:
        ToolsNotFound: it cannot be split into words.
    """
    return shlex.join(_settled(word, Path.cwd()) for word in _words(reference))


def _words(reference: str) -> list[str]:
    try:
        words = shlex.split(reference)
    except ValueError as error:
        raise ToolsNotFound(f"{reference!r} cannot be read: {error}") from None
    if not words:
        raise ToolsNotFound(f"{reference!r} names no tools; write module:attribute, or a source such as workspace:.")
    return words


def _settled(word: str, here: Path) -> str:
    kind, _, rest = word.partition(":")
    where, comma, options = rest.partition(",")
    return f"{kind}:{(here / where).resolve()}{comma}{options}" if kind in _FILES and where else word


def _of(word: str, here: Path) -> Sequence[Any]:
    kind, _, rest = word.partition(":")
    source = _SOURCES.get(kind)
    if source is None:
        return _listed(word)
    try:
        return source(rest, here)
    except ToolsNotFound:
        raise
    except ValueError as error:
        raise ToolsNotFound(f"{word}: {error}") from error


def _workspace(rest: str, here: Path) -> Sequence[Any]:
    from agent.tools.builtin.workspace import workspace_tools

    where, options = _options(rest, "read_only")
    return workspace_tools(here / where, read_only="read_only" in options)


def _sqlite(rest: str, here: Path) -> Sequence[Any]:
    from agent.tools.builtin.sqlite import sqlite_tools

    where, options = _options(rest, "read_only", "schema")
    return sqlite_tools(here / where, read_only="read_only" in options, schema_changes="schema" in options)


def _http(rest: str, _: Path) -> Sequence[Any]:
    from agent.tools.builtin.http import http_tools

    return http_tools(allow=[each for each in rest.split(",") if each])


def _command(rest: str, here: Path) -> Sequence[Any]:
    from agent.tools.builtin.command import command_tools

    programs = [each for each in rest.split(",") if each]
    if not programs:
        raise ValueError("names no program; write command:PROGRAM,PROGRAM")
    return command_tools(programs, folder=here)


def _mcp(rest: str, here: Path) -> Sequence[Any]:
    try:
        from agent.tools.mcp import mcp_tools
    except ModuleNotFoundError as error:
        raise ValueError(f"needs the extra `mcp`: pip install 'kintsugi[mcp]' ({error})") from error
    return mcp_tools(here / rest)


def _steps(rest: str, here: Path) -> Sequence[Any]:
    return load_steps(here / rest, load_tools)


_SOURCES: dict[str, Callable[[str, Path], Sequence[Any]]] = {
    "workspace": _workspace,
    "sqlite": _sqlite,
    "http": _http,
    "command": _command,
    "mcp": _mcp,
    "steps": _steps,
}


def _options(rest: str, *known: str) -> tuple[str, list[str]]:
    """What stands before the commas, and the options behind them."""
    where, *given = rest.split(",")
    unknown = [each for each in given if each not in known]
    if not where or unknown:
        raise ValueError(f"{unknown[0]!r} is unknown; there is: {', '.join(known)}" if unknown else "names no file")
    return where, given


def _listed(reference: str) -> Sequence[Any]:
    """A list in a module."""
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ToolsNotFound(f"{reference!r} must be written module:attribute, as in jobs.tools:TOOLS")
    module = _module(module_name)
    if not hasattr(module, attribute):
        public = ", ".join(name for name in vars(module) if not name.startswith("_"))
        raise ToolsNotFound(f"module {module_name!r} has no attribute {attribute!r}; it has: {public}")
    found = getattr(module, attribute)
    tools = found() if callable(found) and not hasattr(found, "invoke") else found
    if not isinstance(tools, list | tuple) or not tools:
        raise ToolsNotFound(f"{reference!r} is not a list of tools but {type(tools).__name__}")
    return tools


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise ToolsNotFound(f"there is no module {error.name!r} here or among the installed packages") from None
        raise

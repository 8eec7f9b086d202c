"""Where tools come from when they are named in text: `module:attribute`."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class ToolsNotFound(ValueError):
    """`module:attribute` does not lead to a list of tools; the message says which part is wrong."""


def load_tools(reference: str) -> Sequence[Any]:
    """Import a list of tools, or call a function without arguments that makes one.

    Args:
        reference: `package.module:ATTRIBUTE`; the working directory is searched as well.

    Raises:
        ToolsNotFound: the reference is malformed, or the module, the attribute or the list is not there.
    """
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

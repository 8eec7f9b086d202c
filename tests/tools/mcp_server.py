"""A real MCP server: `python mcp_server.py stdio`, or `python mcp_server.py http PORT_FILE` on a free port."""

import base64
import os
import socket
import sys
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import FastMCP, Image
from mcp.types import ToolAnnotations

server = FastMCP("shop", log_level="ERROR")
sold: list[str] = []


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def price(item: str) -> dict[str, Any]:
    """Tell the price of an item."""
    if item == "ghost":
        raise ValueError(f"no such table: {item}")
    return {"item": item, "price": 3}


@server.tool(annotations=ToolAnnotations(readOnlyHint=True), structured_output=False)
def catalogue() -> str:
    """Tell what there is."""
    return "pens, ink"


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def count() -> int:
    """Tell how many were sold."""
    return len(sold)


@server.tool()
def sell(item: str) -> str:
    """Sell an item."""
    sold.append(item)
    return f"sold {item}"


@server.tool(annotations=ToolAnnotations(idempotentHint=True, destructiveHint=True))
def empty_shelf() -> str:
    """Throw everything away."""
    return "empty"


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, destructiveHint=True))
def two_faced() -> str:
    """Say that it reads and that it destroys."""
    return "?"


@server.tool(annotations=ToolAnnotations(readOnlyHint=True), structured_output=False)
def picture() -> list[Any]:
    """Show a picture."""
    return ["a dot", Image(data=base64.b64decode("iVBORw=="), format="png")]


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def leak() -> dict[str, str]:
    """Tell what should not be told."""
    return {"env": os.environ.get("SHOP_TOKEN", "")}


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def leak_in_error() -> str:
    """Fail, telling what should not be told."""
    raise ValueError(f"rejected {os.environ.get('SHOP_TOKEN', '')}")


@server.tool(name="odd.name/here", annotations=ToolAnnotations(readOnlyHint=True))
def odd(config: str) -> str:
    """Take a parameter whose name LangChain uses."""
    return config


class Guarded:
    """Lets in only whoever knows the word."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or [])
        if scope["type"] == "http" and headers.get(b"authorization") != b"Bearer open-sesame":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)


def serve_http(port_file: Path) -> None:
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    draft = port_file.with_suffix(".new")
    draft.write_text(str(listening.getsockname()[1]))
    draft.rename(port_file)
    app = Guarded(server.streamable_http_app())
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        serve_http(Path(sys.argv[2]))

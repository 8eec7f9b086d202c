"""How is a server kept open between calls, and opened again when it has died? One task for each, on one loop.

The sessions of the MCP library belong to the task that opened them, and runs come and go on loops of their own, so
all servers live on one loop in one thread for as long as the process does.
"""

import asyncio
import atexit
import logging
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any, TextIO, TypeVar

from langchain_mcp_adapters.sessions import create_session
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, ServerNotification, Tool

from agent.tools.builtin.refusal import Outdated
from agent.tools.mcp.config import Server
from agent.tools.mcp.result import leaf, told

T = TypeVar("T")

_CLOSED = (-32000, 32600)
"""Codes of the MCP library for a connection or a session that has ended."""
_PAGES = 100
"""Pages of a list of tools; a server that gives more gives them without end."""

# what the library logs about a bad server is in the error as well, and would otherwise go to the terminal
logging.getLogger("mcp").addHandler(logging.NullHandler())


class ServerGone(ConnectionError):
    """The server ended, or broke off, in the middle of a call: nobody knows what it has done."""


class BadAnswer(AssertionError):
    """The call was made, and its answer is not what the server promised."""


class NotStarted(ConnectionRefusedError):
    """The server does not start or does not answer, so the call was not made."""


class Connection:
    """A server, opened when it is needed, and again after it has died."""

    def __init__(self, server: Server, seconds: float, start_seconds: float) -> None:
        """Args: which server; seconds one call may take; seconds it may take to start."""
        self.server = server
        self._seconds, self._start = seconds, start_seconds
        self._serving: asyncio.Task[None] | None = None
        self._session: ClientSession | None = None
        self._tools: dict[str, Tool] | None = None
        """As last listed; None when they may have changed."""
        self._calls = 0
        self._lock = asyncio.Lock()
        self._log: Any = None

    async def tools(self) -> dict[str, Tool]:
        """The server's tools by name, listed anew when they may have changed.

        Raises:
            NotStarted: it does not start, or does not answer.
        """
        session = await self._opened()
        if self._tools is None:
            try:
                self._tools = await self._within(_listed(session), self._start)
            except Exception as error:
                await self.close()
                raise self._not_started(error) from error
        return self._tools

    async def call(self, tool: str, args: dict[str, Any], schema: dict[str, Any]) -> CallToolResult:
        """Call a tool.

        Args:
            tool: its name on the server.
            args: the arguments.
            schema: of the arguments, as the call was planned with.

        Raises:
            NotStarted: the server cannot be reached; nothing was done.
            Outdated: it no longer has the tool, or the tool takes other arguments now.
            ServerGone: it ended in the middle of the call.
            TimeoutError: it does not answer.
            McpError: what it says itself.
        """
        tools = await self.tools()
        if tool not in tools:
            known = ", ".join(sorted(tools)) or "none"
            raise Outdated(f"the MCP server {self.server.name!r} no longer has the tool {tool!r}; it has: {known}")
        if tools[tool].inputSchema != schema:
            raise Outdated(
                f"the tool {tool!r} of the MCP server {self.server.name!r} takes other arguments than before"
            )
        result = await self._called(tool, args)
        if result.isError:
            self._tools = None  # perhaps the tool is gone; the next call looks
        return result

    async def _called(self, tool: str, args: dict[str, Any]) -> CallToolResult:
        session = await self._opened()
        self._calls += 1
        try:
            return await self._within(session.call_tool(tool, args), self._seconds)
        except TimeoutError:
            if self._calls == 1:  # a server that hangs is started anew; one that others wait for is left alone
                await self.close()
            raise TimeoutError(f"MCP server {self.server.name!r} gave no answer in {self._seconds:g} s") from None
        except McpError as error:
            if error.error.code not in _CLOSED:
                raise
            raise await self._gone(error) from error
        except RuntimeError as error:  # so the library calls an answer that does not fit its own schema
            raise BadAnswer(self.server.hidden(str(error))) from error
        except Exception as error:
            raise await self._gone(error) from error
        finally:
            self._calls -= 1

    async def close(self) -> None:
        """End the server; the next call opens it again."""
        serving, self._serving, self._session, self._tools = self._serving, None, None, None
        if serving is not None:
            serving.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asyncio.wait_for(serving, 10)
        if self._log is not None:
            self._log.close()

    async def _opened(self) -> ClientSession:
        async with self._lock:
            if self._serving is not None and self._serving.done():
                await self.close()
            if self._session is None:
                self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - `close` does
                ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
                self._serving = asyncio.create_task(self._serve(ready, self._log))
                try:
                    self._session = await self._within(ready, self._start)
                except BaseException as error:
                    said = self._printed()
                    await self.close()
                    if not isinstance(error, Exception):
                        raise
                    raise self._not_started(error, said) from error
            return self._session

    async def _serve(self, ready: asyncio.Future[ClientSession], log: TextIO) -> None:
        async with _session(self.server, log, self._heard) as session:
            await session.initialize()
            ready.set_result(session)
            await asyncio.Event().wait()  # until it is cancelled, or the connection breaks

    async def _heard(self, message: object) -> None:
        """A server may say at any moment that its tools have changed."""
        if isinstance(message, ServerNotification) and message.root.method == "notifications/tools/list_changed":
            self._tools = None

    async def _within(self, work: Awaitable[T], seconds: float) -> T:
        """Await something of the session, no longer than the session lasts."""
        serving = self._serving
        assert serving is not None
        doing = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait({doing, serving}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise serving.exception() or ConnectionError("the connection was closed")
            return doing.result()
        finally:
            doing.cancel()

    async def _gone(self, error: Exception) -> ServerGone:
        said = self._printed()
        await self.close()
        why = self.server.hidden(f"{str(leaf(error)) or type(leaf(error)).__name__}{said}")
        return ServerGone(f"the MCP server {self.server.name!r} broke off in the middle of the call: {why}")

    def _not_started(self, error: Exception, said: str = "") -> Exception:
        cause = leaf(error)
        why = (
            f"no answer in {self._start:g} s" if isinstance(cause, TimeoutError) else str(cause) or type(cause).__name__
        )
        return NotStarted(self.server.hidden(f"the MCP server {self.server.name!r} does not start: {why}{said}"))

    def _printed(self) -> str:
        """The end of what the program wrote to its error output."""
        with suppress(OSError, ValueError):
            self._log.seek(0)
            return told(self._log.read(1_000_000).splitlines())
        return ""


@asynccontextmanager
async def _session(server: Server, log: TextIO, heard: Any) -> AsyncIterator[ClientSession]:
    connection = server.connection
    if connection["transport"] != "stdio":
        options: Any = {**connection, "session_kwargs": {"message_handler": heard}}
        async with create_session(options) as session:
            yield session
        return
    command = {name: connection[name] for name in ("command", "args", "env", "cwd")}
    async with (
        stdio_client(StdioServerParameters(**command), errlog=log) as (read, write),
        ClientSession(read, write, message_handler=heard) as session,
    ):
        yield session


async def _listed(session: ClientSession) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await session.list_tools(cursor)
        found |= {each.name: each for each in page.tools}
        cursor = page.nextCursor
        if cursor is None:
            return found
    raise ValueError(f"its list of tools has more than {_PAGES} pages")


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """The loop all servers live on, running in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kintsugi-mcp", daemon=True).start()
    return loop


async def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Do something with a connection, from whatever loop a run is on."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The same, for code that has no loop."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def close_at_exit(connection: Connection) -> None:
    """End the server with the process."""

    def close() -> None:
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(connection.close(), _loop()).result(10)

    atexit.register(close)

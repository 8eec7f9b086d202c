"""Calling a tool or a probe, sync or async, without blocking the event loop and without ever throwing."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from langchain_core.tools import BaseTool, StructuredTool

from agent.boundary import as_json, error_in, guarded
from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue
from agent.ports import Observation
from agent.tools.contracts import accepted
from agent.tools.registry import Registry, UnknownTool


class Caller:
    """Runs tools and probes. Synchronous ones get threads of their own: the loop's default pool is small."""

    def __init__(self, registry: Registry, seconds: float, parallel: int) -> None:
        """Args: the tools; seconds one call may take; how many synchronous calls may run at once."""
        self._registry = registry
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="kintsugi-tool")

    async def call(self, name: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        """Call a tool; what it throws, and an error it returns as a value, come back as facts."""
        try:
            tool = self._registry.tool(name)
        except UnknownTool as error:
            return ErrorFacts(kind="exception", type="UnknownTool", bases=("LookupError",), message=str(error))
        work = tool.ainvoke(args) if _is_async(tool) else self._in_thread(partial(tool.invoke, args))
        returned = await guarded(self._as_json(work), self._seconds)
        return returned if isinstance(returned, ErrorFacts) else error_in(returned) or returned

    async def look(self, tool: str, args: dict[str, JsonValue]) -> Observation | None:
        """Let the tool's probe look at its artifact; None when it has none."""
        probe = self._registry.probe(tool)
        if probe is None:
            return None
        seen = await guarded(self._as_json(self._probe(probe, accepted(probe, args))), self._seconds)
        if isinstance(seen, ErrorFacts):
            return Observation(error=seen.model_copy(update={"kind": "probe"}))
        return Observation(value=seen)

    async def _probe(self, probe: Callable[..., object], args: dict[str, JsonValue]) -> object:
        if isinstance(probe, BaseTool):
            return await self.call(probe.name, args)
        if inspect.iscoroutinefunction(probe):
            return await probe(**args)
        found = await self._in_thread(partial(probe, **args))
        return await found if inspect.isawaitable(found) else found

    async def _in_thread(self, work: Callable[[], object]) -> object:
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)

    async def _as_json(self, work: object) -> JsonValue:
        assert inspect.isawaitable(work)
        return as_json(await work)


def _is_async(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun

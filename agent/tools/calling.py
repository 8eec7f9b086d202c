"""Calling a tool or a probe, sync or async, without blocking the event loop and without ever throwing."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ValidationError

from agent.boundary import error_in, facts_of, guarded
from agent.core.failure import ErrorFacts
from agent.core.value import Digest, JsonValue, digest
from agent.plain import as_json, as_python, note
from agent.ports import Observation
from agent.secrecy import hidden, marked
from agent.tools.contracts import accepted
from agent.tools.inquiring import Asks, asking, noted
from agent.tools.registry import Registry, UnknownTool

T = TypeVar("T")

_SENT: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("sent", default=None)


@contextmanager
def sent() -> Iterator[list[str]]:
    """Collect the tools that are called while the context lasts, one name for each call; probes do not count."""
    calls: list[str] = []
    token = _SENT.set(calls)
    try:
        yield calls
    finally:
        _SENT.reset(token)


_ASKS = "a probe cannot ask a person: it only looks"


_HIDDEN = (
    "an argument holds the mark of a secret that is not kept anywhere; let the tool read the secret itself, from the "
    "environment or a file, and leave out what was marked"
)


class Caller:
    """Runs tools and probes. Synchronous ones get threads of their own, which no one can stop, nor has to wait for."""

    def __init__(self, registry: Registry, seconds: float) -> None:
        """Args: the tools; seconds one call may take, where its contract does not say."""
        self._registry = registry
        self._seconds = seconds
        self._overdue: dict[tuple[str, Digest], Future[JsonValue] | asyncio.Future[JsonValue | ErrorFacts]] = {}
        """Calls that nobody waits for any more, although they may still be at work."""

    async def call(self, name: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        """Call a tool; what it throws, and an error it returns as a value, come back as facts."""
        try:
            tool = self._registry.tool(name)
        except UnknownTool as error:
            return _refused(facts_of(error))
        if marked(args):
            return ErrorFacts(kind="refused", type="SecretHidden", message=_HIDDEN)
        calls = _SENT.get()
        if calls is not None:
            calls.append(name)
        try:
            return await self._answer(tool, args)
        except Asks as asks:
            return noted(name, args, asks)

    async def _answer(self, tool: BaseTool, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        def late(running: asyncio.Task[Any]) -> None:
            self._overdue[tool.name, digest(args)] = running

        returned = await guarded(self._called(tool, args), self._time_for(tool.name), late)
        if isinstance(returned, Asks):
            raise returned
        if isinstance(returned, ErrorFacts):
            return _refused(returned) if _misfit(tool, args, returned) else returned
        return error_in(returned) or returned

    async def overdue(self, name: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        """What came of an equal call that had run out of time: its late answer or error, None when there was none.

        One that is still at work is waited for, as long as for a new one; then it is `lost`, and may act any moment.
        """
        running = self._overdue.get((name, digest(args)))
        if running is None or running.cancelled() or _ended_with_its_loop(running):
            return None
        came = await guarded(asyncio.shield(asyncio.wrap_future(running)), self._time_for(name))
        if not running.done():
            return ErrorFacts(kind="lost", message=f"{name} was given up as too slow, and is still at work")
        del self._overdue[name, digest(args)]
        return came if isinstance(came, ErrorFacts) else error_in(came) or came

    async def look(self, tool: str, args: dict[str, JsonValue]) -> Observation | None:
        """Let the tool's probe look at its artifact; None when it has none."""
        probe = self._registry.probe(tool)
        if probe is None:
            return None
        seen = await guarded(self._probed(probe, args, f"the probe of {tool}"), self._time_for(tool))
        if isinstance(seen, ErrorFacts):
            return Observation(error=seen.model_copy(update={"kind": "probe"}))
        return Observation(value=seen)

    def time_for(self, *tools: str) -> float:
        """Seconds an attempt over these tools may take in all: as long as any step, or as its slowest call."""
        return max(self._seconds, *(self._time_for(each) for each in tools), 0.0)

    async def _called(self, tool: BaseTool, args: dict[str, JsonValue]) -> JsonValue | Asks:
        """What the tool gives, or what it asks."""
        try:
            with asking(tool.name, args):
                return await self._run(tool, args)
        except Asks as asks:
            return asks

    async def _run(self, tool: BaseTool, args: dict[str, JsonValue]) -> JsonValue:
        given = {name: as_python(each) for name, each in args.items()}
        if _is_async(tool):
            return _kept(await _contained(tool).ainvoke(given), tool.name)
        # a lazy or a large result is read where the tool ran, not on the event loop
        running = _in_thread(lambda: _kept(tool.invoke(given), tool.name))
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            self._overdue[tool.name, digest(args)] = running  # out of time; a thread cannot be stopped
            raise

    async def _probed(
        self, probe: Callable[..., object], args: dict[str, JsonValue], of: str
    ) -> JsonValue | ErrorFacts:
        taken = accepted(probe, args)
        if isinstance(probe, BaseTool):
            try:
                return await self._answer(probe, taken)
            except Asks:
                return ErrorFacts(kind="probe", message=_ASKS)
        given = {name: as_python(each) for name, each in taken.items()}
        if inspect.iscoroutinefunction(probe):
            return _kept(await probe(**given), of)
        found = await asyncio.wrap_future(_in_thread(partial(probe, **given)))
        return _kept(await found if inspect.isawaitable(found) else found, of)

    def _time_for(self, name: str) -> float:
        contract = self._registry.contracts.get(name)
        return (contract.seconds if contract else None) or self._seconds


def _kept(value: object, of: str) -> JsonValue:
    """A returned value as it may be kept: without secrets, and not without a word about it."""
    plain = as_json(value, of)
    clean = hidden(plain)
    if clean != plain:
        note(f"{of}: what is or looks like a secret was hidden, and is not kept")
    return clean


def _in_thread(work: Callable[[], T]) -> Future[T]:
    """Do work in a thread that does not keep the process from its end."""
    done: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:  # whoever waits for it gets it
            done.set_exception(error)
        else:
            done.set_result(result)

    done.set_running_or_notify_cancel()
    threading.Thread(target=run, name="kintsugi-tool", daemon=True).start()
    return done


def _ended_with_its_loop(running: object) -> bool:
    return isinstance(running, asyncio.Future) and running.get_loop().is_closed()


class ToolExited(RuntimeError):
    """A tool called `sys.exit`; inside a task that would end the event loop and the run with it."""


def _contained(tool: BaseTool) -> BaseTool:
    """The tool with its exit turned into an ordinary error; LangChain runs its coroutine as a task of its own."""
    work = tool.coroutine if isinstance(tool, StructuredTool) else None
    if work is None:
        return tool

    @wraps(work)
    async def contained(*args: Any, **kwargs: Any) -> Any:
        try:
            return await work(*args, **kwargs)
        except SystemExit as error:
            raise ToolExited(f"the tool called sys.exit({error.code!r})") from error

    return tool.model_copy(update={"coroutine": contained})


def _misfit(tool: BaseTool, args: dict[str, JsonValue], error: ErrorFacts) -> bool:
    """Whether LangChain refused the arguments before the tool ran; the tool's own work can fail to validate too."""
    schema = tool.tool_call_schema if error.type == "ValidationError" else None
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return False
    try:
        schema.model_validate(args)
    except ValidationError:
        return True
    return False


def _refused(error: ErrorFacts) -> ErrorFacts:
    return error.model_copy(update={"kind": "refused"})


def _is_async(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun

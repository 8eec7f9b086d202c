"""What really happened outside? Every call of a tool, seen from between the runtime and the tool itself.

The witness is also where a mutation gets in: at one boundary of one step it lets a force loose.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool

from agent.core.contract import EffectClass
from agent.core.value import Digest, JsonValue, digest
from agent.mutation.forces import Force
from agent.mutation.trajectory import Point, Target, When
from agent.plain import as_json
from agent.tools.contracts import Contract, accepted, contract_of, has_contract

_METADATA_KEY = "kintsugi"


@dataclass(frozen=True)
class RealCall:
    """One call that reached a tool, or was refused in front of it."""

    tool: str
    args: dict[str, JsonValue]
    at: float
    """Seconds since the epoch, when it began."""
    worked: bool
    """The tool did its work, whether or not the answer arrived."""
    value: JsonValue = None
    writes_once: bool = False
    """It mutates, and is not harmless to repeat."""

    @property
    def identity(self) -> tuple[str, Digest]:
        """Equal for the same call."""
        return self.tool, digest(self.args)


class Witness:
    """Counts calls, and lets a force loose when a point is reached."""

    def __init__(self, point: Point | None = None, target: Target | None = None, force: Force | None = None) -> None:
        """Args: where; on whose calls it acts; what then acts. None of them: it only looks on."""
        self._point, self._target, self._force = point, target, force or Force()
        self._lock = threading.Lock()
        self._at_work, self._ended = 0, threading.Condition()
        self.calls: list[RealCall] = []
        self.seen: list[tuple[str, dict[str, JsonValue], JsonValue]] = []
        """What probes saw: tool, arguments, value."""
        self.fired_at: float | None = None
        self.when_fired: Callable[[], None] = lambda: None

    def tools(self, tools: Sequence[Any]) -> list[BaseTool]:
        """The same tools under the same names, watched."""
        return [self._watched(each if isinstance(each, BaseTool) else as_tool(each)) for each in tools]

    def _watched(self, tool: BaseTool) -> BaseTool:
        found = contract_of(tool)
        once = found.promise.effect is EffectClass.MUTATING and not found.promise.idempotent
        work = _work(tool)
        watched = self._async(tool.name, work, once) if inspect.iscoroutinefunction(work) else None
        options: dict[str, Any] = {
            "func": None if watched else self._sync(tool.name, work, once),
            "coroutine": watched,
            "metadata": self._metadata(tool, found),
        }
        if isinstance(tool, StructuredTool):
            return tool.model_copy(update=options)
        fields = {name: getattr(tool, name) for name in ("name", "description", "args_schema")}
        return StructuredTool(**fields, **options)

    def _metadata(self, tool: BaseTool, found: Contract) -> dict[str, Any] | None:
        if not has_contract(tool):
            return tool.metadata
        probe = self._probe(tool.name, found.observe) if found.observe is not None else None
        return {**(tool.metadata or {}), _METADATA_KEY: Contract(found.promise, probe)}

    def _sync(self, name: str, work: Callable[..., Any], once: bool) -> Callable[..., Any]:
        def watched(**args: Any) -> Any:
            given = _plain(args)
            with self._working():
                force = self._enter(name, given, once)
                time.sleep(force.delay)
                made = self._made(name, given) if force.pretends else None
                return self._leave(name, given, work(**args) if made is None else made.value, once, force)

        return watched

    def _async(self, name: str, work: Callable[..., Any], once: bool) -> Callable[..., Any]:
        async def watched(**args: Any) -> Any:
            given = _plain(args)
            with self._working():
                force = self._enter(name, given, once)
                await asyncio.sleep(force.delay)
                made = self._made(name, given) if force.pretends else None
                return self._leave(name, given, await work(**args) if made is None else made.value, once, force)

        return watched

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._ended:
            self._at_work += 1
        try:
            yield
        finally:
            with self._ended:
                self._at_work -= 1
                self._ended.notify_all()

    def wait(self, seconds: float) -> None:
        """Until no call is at work any more: one that was given up as too slow may act after the run has ended."""
        with self._ended:
            self._ended.wait_for(lambda: not self._at_work, seconds)

    def _enter(self, tool: str, args: dict[str, JsonValue], once: bool) -> Force:
        self._reach(tool, args, "before")
        force = self._acting(tool, args)
        try:
            force.call()
        except Exception:
            self._note(RealCall(tool, args, time.time(), worked=False, writes_once=once))
            raise
        return force

    def _leave(self, tool: str, args: dict[str, JsonValue], value: Any, once: bool, force: Force) -> JsonValue:
        plain = as_json(value)
        self._note(RealCall(tool, args, time.time(), True, plain, once))
        returned = force.result(plain)
        self._reach(tool, args, "after")
        return returned

    def _probe(self, name: str, probe: Callable[..., Any] | BaseTool) -> Callable[..., Any]:
        async def look(**args: Any) -> JsonValue:
            given = accepted(_work(probe) if isinstance(probe, BaseTool) else probe, args)
            found = await _carried_out(probe, given)
            value = self._acting(name, args).look(as_json(found))
            with self._lock:
                self.seen.append((name, args, value))
            return value

        return look

    def _reach(self, tool: str, args: dict[str, JsonValue], when: When) -> None:
        point = self._point
        if point is None or point.when != when or not point.target.met_by(tool, args):
            return
        with self._lock:
            first = self.fired_at is None
            self.fired_at = self.fired_at or time.time()
        if first:
            self.when_fired()

    def _acting(self, tool: str, args: dict[str, JsonValue]) -> Force:
        hit = self.fired_at is not None and self._target is not None and self._target.met_by(tool, args)
        return self._force if hit else Force()

    def _made(self, tool: str, args: dict[str, JsonValue]) -> RealCall | None:
        """The call that has done this work already, if one has."""
        return next((each for each in self.calls if each.worked and (each.tool, each.args) == (tool, args)), None)

    def _note(self, call: RealCall) -> None:
        with self._lock:
            self.calls.append(call)


def _plain(args: dict[str, Any]) -> dict[str, JsonValue]:
    return {name: as_json(value) for name, value in args.items()}


def _work(tool: BaseTool) -> Callable[..., Any]:
    """What does the tool's work; of a tool with a class of its own, its whole invocation."""
    found = (tool.coroutine or tool.func) if isinstance(tool, StructuredTool) else None
    return found or (lambda **args: tool.invoke(args))


async def _carried_out(probe: Callable[..., Any] | BaseTool, args: dict[str, JsonValue]) -> Any:
    """Look, in a thread where the probe would block: the loop belongs to the whole run."""
    if isinstance(probe, BaseTool):
        return await probe.ainvoke(args)
    if inspect.iscoroutinefunction(probe):
        return await probe(**args)
    found = await asyncio.to_thread(probe, **args)
    return await found if inspect.isawaitable(found) else found

"""The loop as a LangGraph graph: nodes and edges are read from the phase table, routing from explicit state.

One asynchronous definition of every node serves `ainvoke` as it is, and `invoke` through an event loop in a
thread of its own that lives as long as the call.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.graph import Graph
from langgraph._internal._config import ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.graph import END, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.runtime import RunControl
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateSnapshot

from agent.core.goal import Goal
from agent.core.identifier import identifier
from agent.core.lease import Halt
from agent.core.phase import LEGAL, START, Phase
from agent.nodes.channels import without_deltas
from agent.nodes.round import PhaseNode
from agent.nodes.scope import KEY, Portal, RunScope
from agent.nodes.state import RunInput, RunState, written
from agent.secrecy import said
from agent.settings import RunContext
from agent.store.fence import fenced
from agent.store.hold import KEY as HOLD
from agent.store.hold import Hold
from agent.store.packing import packing
from agent.store.serde import trusting
from agent.store.sqlite import telling
from graphs.entry import entered, fitting, observes, taken_in
from graphs.gate import Gate
from graphs.tracing import Effects, scored, traced

PORTAL = "__run_portal"
"""Where the event loop of a synchronous call rides in `config["configurable"]`."""

_NOT_CONSTRUCTED = ("_serde_allowlist", "change_goal", "effects", "gate", "grace", "inner", "under")
"""Ours, and which types a strict deserialiser may revive: without it a server reads our values back as mappings."""

RECURSION_LIMIT = 1_000_000
"""LangGraph's own limit ends a run by an exception; ours are `Limits`, which end it through the finisher."""


class LoopGraph(CompiledStateGraph[RunState, RunContext, RunInput, RunState]):
    """The compiled loop. Each call has a scope for the steps in flight, closed when the call ends.

    `change_goal(thread, goal)` leaves a changed goal for a run that is going on. Everything else that a compiled graph
    of LangGraph has is there as well.
    """

    change_goal: Callable[[str, Goal], None]
    """Leave a changed goal for a run that is going on: `graph.change_goal(thread_id, goal)`."""
    effects: Effects | None = None
    """What the effect journal knows of a thread, for the scores of its runs."""
    gate: Gate
    """Lets one call at a time work on a thread."""
    grace: float = 30.0
    """Seconds that a write in flight may take to finish when a call is cancelled."""
    inner: Pregel[Any, Any, Any, Any] | None = None
    """What runs inside the executor when a model carries out a step; drawn, and never resumed on its own."""
    under: "Callable[[RunContext], LoopGraph] | None" = None
    """This graph as a call under some context runs it."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Run synchronously; `invoke` comes through here as well.

        Raises:
            ValueError: an answer was given although nothing is asked, or nothing any more.
            Busy: another call works on the thread, and `Settings.busy` says not to wait for it.
            Superseded: this process was stopped for so long that another has taken the thread over.
        """
        loop, given = self._under(kwargs.pop("context", None)), taken_in(_said(input), config)
        with Portal() as portal, portal.within(self._call(config)) as scope:
            if _is_answer(given) and isinstance(self.checkpointer, BaseCheckpointSaver) and config:
                _refuse_unasked(self.get_state(config))
            with _pausing(scope):
                kept = self._kept(config, scope, kwargs)
                yield from super(LoopGraph, loop).stream(given, _scoped(config, scope, portal), **kept)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Run asynchronously; `ainvoke` comes through here as well."""
        context, given = kwargs.pop("context", None), taken_in(_said(input), config)
        # in a thread: a model's client reads its certificates from disk
        loop = self if context is None else await asyncio.to_thread(self._under, context)
        async with self._call(config) as scope:
            if _is_answer(given) and isinstance(self.checkpointer, BaseCheckpointSaver) and config:
                _refuse_unasked(await self.aget_state(config))
            with _pausing(scope):
                kept = self._kept(config, scope, kwargs)
                # closed by name: dropped, it would end some time after the run that it is a part of
                parts: Any = super(LoopGraph, loop).astream(given, _scoped(config, scope, None), **kept)
                async with aclosing(parts):
                    async for part in parts:
                        yield part

    def get_state(self, config: RunnableConfig, **kwargs: Any) -> StateSnapshot:
        """The thread as it was last written.

        Raises:
            BadIdentifier: no thread can have that id; likewise wherever a thread is named.
        """
        _refuse_unnamed(config)
        with telling(self.gate.leases.where):
            return super().get_state(config, **kwargs)

    async def aget_state(self, config: RunnableConfig, **kwargs: Any) -> StateSnapshot:
        """The same, asynchronously."""
        _refuse_unnamed(config)
        with telling(self.gate.leases.where):
            return await super().aget_state(config, **kwargs)

    def get_state_history(self, config: RunnableConfig, **kwargs: Any) -> Iterator[StateSnapshot]:
        """How the thread came to be as it is, the last first."""
        _refuse_unnamed(config)
        return super().get_state_history(config, **kwargs)

    def aget_state_history(self, config: RunnableConfig, **kwargs: Any) -> AsyncIterator[StateSnapshot]:
        """The same, asynchronously."""
        _refuse_unnamed(config)
        return super().aget_state_history(config, **kwargs)

    def _under(self, context: object) -> "LoopGraph":
        """This graph, as a call under the context runs it.

        Raises:
            ValueError: the context has a field that is not there, or a value that does not fit.
        """
        asked = RunContext.of(context)
        if self.under is None or asked == RunContext():
            return self
        return self.copy({"nodes": self.under(asked).nodes})

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The graph to draw; with `xray` the inner loop of the executor as well, when a model is there to run it."""
        return super(LoopGraph, self._opened() if xray else self).get_graph(config, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The same, asynchronously."""
        return await super(LoopGraph, self._opened() if xray else self).aget_graph(config, xray=xray)

    def _opened(self) -> "LoopGraph":
        if self.inner is None:
            return self
        executor = copy(self.nodes[Phase.EXECUTOR.value])
        executor.subgraphs = [self.inner]
        return self.copy({"nodes": {**self.nodes, Phase.EXECUTOR.value: executor}})

    def bulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        """Edit the state; all edits come through here. It holds the thread, as a run does.

        Another goal, facts or a message count as stated, and so does another world or plan when the run has ended:
        `invoke(None)` goes on from there.

        Raises:
            ValueError: the state has no such channel, or a value does not fit; nothing is changed.
        """
        edits = [[fitting(each._replace(values=said(each.values))) for each in together] for together in supersteps]
        with Portal() as portal, portal.within(self._held(config)) as hold:
            ended = any(map(observes, edits)) and not self.get_state(config).next
            steps = [each for together in edits for each in entered(together, ended)]
            return super().bulk_update_state(_holding(config, hold), steps)

    async def abulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        """The same, asynchronously."""
        edits = [[fitting(each._replace(values=said(each.values))) for each in together] for together in supersteps]
        async with self._held(config) as hold:
            ended = any(map(observes, edits)) and not (await self.aget_state(config)).next
            steps = [each for together in edits for each in entered(together, ended)]
            return await super().abulk_update_state(_holding(config, hold), steps)

    @asynccontextmanager
    async def _call(self, config: RunnableConfig | None) -> AsyncIterator[RunScope]:
        """One call: it holds its thread, and what it has in flight is brought to an end before it lets go."""
        async with self._held(config) as hold:
            scope = RunScope(hold)
            try:
                yield scope
            finally:
                await scope.close(self.grace)
                await scored(scope, hold.thread if hold else None, self.effects)

    @asynccontextmanager
    async def _held(self, config: RunnableConfig | None) -> AsyncIterator[Hold | None]:
        seen = ensure_config(self.config, config)  # with what LangGraph itself will add: who calls, what is bound
        _refuse_unnamed(seen)
        if not self._has_saver(seen):
            yield None
            return
        # what a tool does with SQLite is a step's affair; what comes through here is said of our own file
        with telling(self.gate.leases.where):
            async with self.gate.hold(seen) as hold:
                yield hold

    def _has_saver(self, config: RunnableConfig) -> bool:
        inherited = config.get("configurable", {}).get("__pregel_checkpointer")
        return self.checkpointer not in (None, False) or inherited is not None

    def drain(self, thread: str, now: bool = False) -> bool:
        """Ask whoever runs a thread, here or in another process, to finish what mutates and then to stop.

        The call returns with the outcome `cancelled` and what was achieved; it is a pause: `invoke(None)` goes on.

        Args:
            thread: its id.
            now: stop at once; a write in flight has `grace` seconds.

        Returns:
            Whether anybody runs it.
        """
        return self.gate.leases.ask(thread, Halt.NOW if now else Halt.DRAIN)

    def _kept(self, config: RunnableConfig | None, scope: RunScope, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Finished work is in the checkpoint before anything else happens, unless the caller decides otherwise."""
        scope.control = kwargs.get("control") or RunControl()
        stops = (kwargs.get("interrupt_before"), kwargs.get("interrupt_after"))
        scope.stepwise = any((*stops, self.interrupt_before_nodes, self.interrupt_after_nodes))
        kwargs = {**kwargs, "control": scope.control}
        durable = self._has_saver(config or {})
        return {**kwargs, "durability": kwargs.get("durability") or "sync"} if durable else kwargs

    def copy(self, update: dict[str, Any] | None = None) -> "LoopGraph":
        """A copy under another configuration, as servers make one for each run."""
        return _loop({**self.__dict__, **(update or {})})


def draw(
    nodes: Mapping[Phase, PhaseNode],
    gate: Gate,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    inner: Pregel[Any, Any, Any, Any] | None = None,
    deltas: bool = True,
) -> LoopGraph:
    """Compile the loop from the phase table and one node for each phase."""
    state, given = (RunState, RunInput) if deltas else (without_deltas(RunState), without_deltas(RunInput))
    builder = StateGraph(state, context_schema=RunContext, input_schema=given, output_schema=state)
    for phase, node in nodes.items():
        builder.add_node(phase.value, _Node(node, phase))
        targets: dict[Hashable, str] = {to.value: END if to is Phase.END else to.value for to in LEGAL[phase]}
        builder.add_conditional_edges(phase.value, _Route(), targets)
    builder.set_entry_point(START.value)
    saver = fenced(trusting(packing(checkpointer)), gate.leases.where) if checkpointer is not None else None
    loop = _loop(builder.compile(checkpointer=saver, store=store, name="kintsugi").__dict__)
    loop.gate, loop.inner = gate, inner
    return loop


def _loop(attributes: Mapping[str, Any]) -> LoopGraph:
    """A loop with the attributes of another graph, also those that LangGraph's constructor would drop silently."""
    kept = {name: attributes[name] for name in _NOT_CONSTRUCTED if name in attributes}
    given = {name: each for name, each in attributes.items() if name not in {*_NOT_CONSTRUCTED, "__orig_class__"}}
    loop = LoopGraph(**given)
    loop.__dict__.update(kept)
    return loop


def _refuse_unnamed(config: RunnableConfig) -> None:
    """Stop at a thread or checkpoint that nothing can be kept of, before anything is.

    Raises:
        BadIdentifier: it is one.
    """
    for key in ("thread_id", "checkpoint_id"):
        given = config.get("configurable", {}).get(key)
        if given is not None:
            identifier(given, f"the {key}")


def _said(given: Any) -> Any:
    """What is stated or answered, as it may be kept: without secrets."""
    if isinstance(given, Command):
        return replace(given, resume=said(given.resume), update=said(given.update))
    return said(given)


def _is_answer(given: object) -> bool:
    """Whether an answer is given.

    Raises:
        ValueError: a command that says nothing; LangGraph would fail somewhere inside.
    """
    if isinstance(given, Command) and given.resume is None and given.update is None and not given.goto:
        raise ValueError("Command(resume=None) answers nothing: give an answer, or call with None to go on")
    return isinstance(given, Command) and given.resume is not None


def _refuse_unasked(found: StateSnapshot) -> None:
    if not found.interrupts:
        thread = found.config.get("configurable", {}).get("thread_id")
        raise ValueError(f"thread {thread!r} asks nothing, or nothing any more; an answer counts once")


class _Node(Runnable[RunState, dict[str, object]]):
    """A phase node as LangGraph runs it, without a run of its own in the trace: LangGraph's around it is enough."""

    def __init__(self, node: PhaseNode, phase: Phase) -> None:
        self.name = phase.value
        self._node = node

    def invoke(self, input: RunState, config: RunnableConfig | None = None, **_: Any) -> dict[str, object]:
        assert config is not None
        portal: Portal = config["configurable"][PORTAL]
        return _told(written(input, portal.call(self._node(input, config))), config)

    async def ainvoke(self, input: RunState, config: RunnableConfig | None = None, **_: Any) -> dict[str, object]:
        assert config is not None
        return _told(written(input, await self._node(input, config)), config)


def _told(update: dict[str, object], config: RunnableConfig) -> dict[str, object]:
    """The update, after its records were handed to whoever streams them: `stream_mode="custom"`."""
    tell = config["configurable"]["__pregel_runtime"].stream_writer
    records = update.get("trace")
    for each in records if isinstance(records, Sequence) else ():
        tell(each)
    return update


class _Route(Runnable[RunState, str]):
    """Where the state says the run goes next; no node of its own in the trace either.

    It reads the whole state: an edit that makes no sense is refused here, before anything is stored of it.
    """

    name = "route"

    def invoke(self, input: RunState, *_: Any, **__: Any) -> str:
        return str(input["phase"])

    async def ainvoke(self, input: RunState, *_: Any, **__: Any) -> str:
        return str(input["phase"])


def _scoped(config: RunnableConfig | None, scope: RunScope, portal: Portal | None) -> RunnableConfig:
    """The caller's config with the scope in it; LangGraph's own recursion limit is put out of the way."""
    given: RunnableConfig = {**(config or {})}
    given.setdefault("recursion_limit", RECURSION_LIMIT)
    given["configurable"] = {**given.get("configurable", {}), KEY: scope, PORTAL: portal, HOLD: scope.hold}
    return traced(given, scope)


@contextmanager
def _pausing(scope: RunScope) -> Iterator[None]:
    """Return normally when the run was asked to stop, and has: the state says so. A caller's own drain is theirs."""
    try:
        yield
    except GraphDrained:
        if not scope.paused:
            raise


def _holding(config: RunnableConfig, hold: Hold | None) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), HOLD: hold}}

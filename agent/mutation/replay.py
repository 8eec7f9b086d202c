"""What happens when the run is repeated from scratch, with one constraint mutated? One replay, and all it left."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from agent.app import build_graph
from agent.core.limits import Ledger, Limits
from agent.core.outcome import Outcome, OutcomeStatus
from agent.core.plan import Plan
from agent.core.record import TraceRecord
from agent.core.value import JsonValue
from agent.core.world import World
from agent.mutation.forces import Force
from agent.mutation.ground import Ground, Open
from agent.mutation.kinds import Mutation
from agent.mutation.trajectory import Trajectory
from agent.mutation.witness import RealCall, Witness
from agent.settings import Settings
from agent.tools.registry import Registry
from graphs.loop import LoopGraph

Build = Callable[[Sequence[BaseTool], InMemorySaver, Settings], LoopGraph]
"""Builds the graph over watched tools: with the checkpointer and settings of the replay."""

PATIENCE = 120.0
"""Seconds a replay may take before its own limit ends it."""
_LAST_WORDS = 30.0
"""Seconds that calls may take which outlast it."""

_THREAD = "mutated"

_MAKING = threading.Lock()
"""Tools are made one at a time: LangChain turns warnings off and on for it, for the whole process."""


@dataclass(frozen=True)
class Replayed:
    """One replay: what the runtime says, and what was seen from outside."""

    mutation: Mutation
    outcome: Outcome | None
    plan: Plan
    world: World
    ledger: Ledger
    limits: Limits
    trace: Sequence[TraceRecord]
    calls: Sequence[RealCall]
    last_look: dict[str, JsonValue]
    """Step key -> what its probe saw last."""
    fired_at: float | None
    differences: tuple[str, ...]
    """What the world lacks of an undisturbed end; looked at where the mutation leaves the end as it was."""
    seconds: float

    @property
    def satisfied(self) -> bool:
        """Whether the goal was met."""
        return self.outcome is not None and self.outcome.status is OutcomeStatus.SATISFIED


def unhurried(settings: Settings) -> Settings:
    """Settings for replays: the whole ladder, no waiting before a retry, nobody to ask, and an end in any case."""
    limits = settings.limits.model_copy(update={"backoff": 0.0, "seconds": min(settings.limits.seconds, PATIENCE)})
    return settings.model_copy(update={"limits": limits, "escalation": "finish", "jitter": 0.0, "strategy": "full"})


def built(tools: Sequence[BaseTool], saver: InMemorySaver, settings: Settings) -> LoopGraph:
    """The graph as `build_graph` makes it, without a model."""
    return build_graph(tools, checkpointer=saver, settings=settings)


@dataclass(frozen=True)
class Bench:
    """Where runs are repeated: over fresh ground, with a graph built for each."""

    open: Open
    build: Build
    settings: Settings

    def record(self) -> Trajectory:
        """Run undisturbed, and note the trajectory.

        Raises:
            ValueError: when that run does not reach its goal; a replay of it would prove nothing.
        """
        witness = Witness()
        with self._opened(witness, self.settings) as (ground, graph):
            state = _invoked(graph, ground)
            contracts = Registry(ground.tools).contracts
        end = state["outcome"]
        if end is None or end.status is not OutcomeStatus.SATISFIED:
            raise ValueError(f"the undisturbed run has to be satisfied, and is {end.status if end else 'waiting'}")
        bare = Trajectory(ground.goal, state["plan"], contracts, {})
        return replace(bare, returned=_returned(bare, witness.calls))

    def replay(self, trajectory: Trajectory, mutation: Mutation) -> Replayed:
        """Run from scratch, with one mutated constraint."""
        kind, target, begun = mutation.kind, mutation.target, time.monotonic()
        force = kind.force(mutation.seed, trajectory.contracts[target.tool]) if kind.force and target else Force()
        witness = Witness(mutation.point, target, force)
        hurried = {"step_timeout": kind.timeout} if kind.timeout else {}
        with self._opened(witness, self.settings.model_copy(update=hurried)) as (ground, graph):
            if kind.rewritten is not None:
                witness.when_fired = partial(graph.change_goal, _THREAD, kind.rewritten(ground.goal))
            state = _invoked(graph, ground)
            witness.wait(_LAST_WORDS)
            differences = tuple(ground.check()) if kind.same_end else ()
        return Replayed(
            mutation=mutation,
            **{name: state[name] for name in ("outcome", "plan", "world", "ledger", "trace")},
            limits=self.settings.limits,
            calls=witness.calls,
            last_look=_looks(trajectory, witness),
            fired_at=witness.fired_at,
            differences=differences,
            seconds=time.monotonic() - begun,
        )

    @contextmanager
    def _opened(self, witness: Witness, settings: Settings) -> Iterator[tuple[Ground, LoopGraph]]:
        """Fresh ground, and a graph over its watched tools."""
        with ExitStack() as stack:
            with _MAKING:
                ground = stack.enter_context(self.open())
                graph = self.build(witness.tools(ground.tools), InMemorySaver(), settings)
            yield ground, graph


def _invoked(graph: LoopGraph, ground: Ground) -> dict[str, Any]:
    state: dict[str, Any] = graph.invoke({"goal": ground.goal}, {"configurable": {"thread_id": _THREAD}})
    return state


def _returned(trajectory: Trajectory, calls: Sequence[RealCall]) -> dict[str, JsonValue]:
    return {
        step.key: each.value
        for step in trajectory.steps()
        for each in calls
        if each.worked and trajectory.target(step).met_by(each.tool, each.args)
    }


def _looks(trajectory: Trajectory, witness: Witness) -> dict[str, JsonValue]:
    return {
        step.key: value
        for step in trajectory.steps()
        for tool, args, value in witness.seen
        if trajectory.target(step).met_by(tool, args)
    }

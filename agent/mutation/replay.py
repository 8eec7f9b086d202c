"""What happens when the run is repeated from scratch, with one constraint mutated? One replay, and all it left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from agent.app import build_graph
from agent.core.contract import Contracts
from agent.core.limits import Ledger, Limits
from agent.core.outcome import Outcome, OutcomeStatus
from agent.core.plan import Plan
from agent.core.record import TraceRecord
from agent.core.world import World
from agent.mutation.forces import Force
from agent.mutation.ground import Open
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


@dataclass(frozen=True)
class Replayed:
    """One replay: what the runtime says, and what was seen from outside."""

    mutation: Mutation | None
    outcome: Outcome | None
    plan: Plan
    world: World
    ledger: Ledger
    limits: Limits
    trace: Sequence[TraceRecord]
    calls: Sequence[RealCall]
    last_look: dict[str, Any]
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
    """Settings for replays: no waiting before a retry, nobody to ask, and an end in any case."""
    limits = settings.limits.model_copy(update={"backoff": 0.0, "seconds": min(settings.limits.seconds, PATIENCE)})
    return settings.model_copy(update={"limits": limits, "escalation": "finish", "jitter": 0.0})


def built(tools: Sequence[BaseTool], saver: InMemorySaver, settings: Settings) -> LoopGraph:
    """The graph as `build_graph` makes it, without a model."""
    return build_graph(tools, checkpointer=saver, settings=settings)


def recorded(open_ground: Open, build: Build, settings: Settings) -> tuple[Trajectory, Replayed]:
    """Run undisturbed, and note the trajectory.

    Raises:
        ValueError: when that run does not reach its goal; a replay of it would prove nothing.
    """
    witness, contracts = Witness(), dict[str, Any]()
    replayed, goal = _run(open_ground, build, settings, witness, None, contracts)
    if not replayed.satisfied:
        end = replayed.outcome
        raise ValueError(f"the undisturbed run has to be satisfied, and is {end.status if end else 'waiting'}")
    bare = Trajectory(goal, replayed.plan, contracts, {})
    returned = {
        step.key: each.value
        for step in bare.steps()
        for each in witness.calls
        if each.worked and bare.target(step).met_by(each.tool, each.args)
    }
    return Trajectory(goal, replayed.plan, contracts, returned), replayed


def replay(open_ground: Open, build: Build, settings: Settings, trajectory: Trajectory, mutation: Mutation) -> Replayed:
    """Run from scratch, with one mutated constraint."""
    kind, target = mutation.kind, mutation.target
    force = kind.force(mutation.seed, trajectory.contracts[target.tool]) if kind.force and target else Force()
    witness = Witness(mutation.point, target, force)
    found, _ = _run(open_ground, build, settings, witness, mutation, {}, trajectory)
    return found


def _run(
    open_ground: Open,
    build: Build,
    settings: Settings,
    witness: Witness,
    mutation: Mutation | None,
    contracts: Contracts | dict[str, Any],
    trajectory: Trajectory | None = None,
) -> tuple[Replayed, Any]:
    begun = time.monotonic()
    with open_ground() as ground:
        tools = witness.tools(ground.tools)
        if isinstance(contracts, dict):
            contracts.update(Registry(tools).contracts)
        graph = build(tools, InMemorySaver(), settings)
        if mutation is not None and mutation.kind.rewritten is not None:
            changed = mutation.kind.rewritten(ground.goal)
            witness.when_fired = lambda: graph.change_goal("mutated", changed)
        state = graph.invoke({"goal": ground.goal}, {"configurable": {"thread_id": "mutated"}})
        same_end = mutation is None or (mutation.kind.same_end and state["outcome"] is not None)
        differences = tuple(ground.check()) if same_end else ()
    return _left(state, mutation, witness, settings, differences, trajectory, time.monotonic() - begun), ground.goal


def _left(
    state: dict[str, Any],
    mutation: Mutation | None,
    witness: Witness,
    settings: Settings,
    differences: tuple[str, ...],
    trajectory: Trajectory | None,
    seconds: float,
) -> Replayed:
    steps = trajectory.steps() if trajectory else ()
    looks = {
        step.key: value
        for step in steps
        for tool, args, value in witness.seen
        if trajectory and trajectory.target(step).met_by(tool, args)
    }
    return Replayed(
        mutation=mutation,
        outcome=state["outcome"],
        plan=state["plan"],
        world=state["world"],
        ledger=state["ledger"],
        limits=settings.limits,
        trace=state["trace"],
        calls=witness.calls,
        last_look=looks,
        fired_at=witness.fired_at,
        differences=differences,
        seconds=seconds,
    )

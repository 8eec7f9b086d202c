"""Composition: tools, models, stores and settings become ports, ports become nodes, nodes become the graph."""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from pydantic import BaseModel, SecretStr

from agent.boundary import secret
from agent.core.consent import Consent, unknown_tools
from agent.core.goal import Goal
from agent.core.phase import Phase
from agent.models.planners import choose_planner
from agent.models.roles import Models, named, passed
from agent.nodes.bodies import Bodies
from agent.nodes.classifier import Classifier
from agent.nodes.dispatcher import Dispatcher
from agent.nodes.escalator import Escalator
from agent.nodes.executor import Executor
from agent.nodes.finisher import Finisher
from agent.nodes.intake import Intake, Sight
from agent.nodes.planner import PlannerNode
from agent.nodes.repairer import Repairer
from agent.nodes.round import PhaseNode, Round
from agent.nodes.verifier import Verifier
from agent.ports import Clock, Judge, Patcher, Planner, ScopeModel, Turns
from agent.secrecy import keep
from agent.settings import RunContext, Settings
from agent.store.artifacts import ArtifactStore, DatabaseArtifacts, StoreArtifacts
from agent.store.checkpoints import Elsewhere, lie_in
from agent.store.database import Database, memory_database, open_database, place_of
from agent.store.inbox import GoalInbox
from agent.store.journal import DatabaseJournal
from agent.store.leases import Leases
from agent.store.postgres import Postgres
from agent.store.turns import DatabaseTurns
from agent.tools.calling import Caller
from agent.tools.registry import Registry
from agent.tools.runner import ToolRunner
from graphs.gate import Gate
from graphs.loop import LoopGraph, draw

if TYPE_CHECKING:
    from graphs.react import ReactLoop


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def jitter(self) -> float:
        """A random share from 0 to 1."""
        return random.random()

    async def sleep(self, seconds: float) -> None:
        """Wait; no time at all costs nothing."""
        if seconds > 0:
            await asyncio.sleep(seconds)


def build_graph(
    tools: Sequence[Any],
    *,
    model: BaseChatModel | None = None,
    models: Mapping[str, BaseChatModel] | None = None,
    settings: Settings | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> LoopGraph:
    """Build the runtime over some tools: `graph.invoke({"goal": Goal(wants=["report"])}, config)`.

    The effect journal and large artifacts live and die with the checkpoints: in the file of a `SqliteSaver`, the
    database of a `PostgresSaver`, in memory beside an `InMemorySaver` or without a checkpointer; beside one of
    another kind, where the settings say.

    Args:
        tools: LangChain tools or functions; those with a `contract` can be planned without a model.
        model: chat model for free-text goals, patches, unknown errors and ReAct steps; default, where `models` is
            not given either: as the settings name it. It is made to retry nothing by itself.
        models: another one for some roles: `planner`, `replanner`, `executor`, `classifier`, `repairer`, `judge`.
        settings: limits, timeouts, escalation; default: from the environment.
        checkpointer: LangGraph saver; needed to resume, to ask a person, and to keep work between calls.
        store: LangGraph store for large artifacts; default: with the checkpoints.

    Raises:
        ValueError: two tools of one name, a stand-in for an unknown tool, an unknown role, a key that is missing, or
            settings that make no sense.
        DatabaseRefused: the checkpoints' database is damaged, newer than this release, or not accessible.
    """
    chosen = settings or Settings()
    database = _database_beside(checkpointer, chosen)
    roles = named(chosen) if model is None and models is None else passed(model, models)
    return assemble(tools, database, chosen, models=roles, checkpointer=checkpointer, store=store)


def assemble(
    tools: Sequence[Any],
    database: Database,
    settings: Settings,
    *,
    model: BaseChatModel | None = None,
    models: Models | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    clock: Clock | None = None,
    planner: Planner | None = None,
    goal: Goal | None = None,
) -> LoopGraph:
    """Build the runtime over an open database; for the command line, servers and tests.

    Beside what `build_graph` takes: the time, a planner of your own, and the goal of a thread on which none is stated.
    """
    _keep_secrets(settings)
    registry, clock, roles = Registry(tools), clock or SystemClock(), models or passed(model)
    beside = checkpointer is not None and not isinstance(lie_in(checkpointer), Elsewhere)
    artifacts: ArtifactStore = StoreArtifacts(store) if store is not None else DatabaseArtifacts(database, beside)
    inbox, gate = GoalInbox(database), Gate(Leases(database, settings.lease_seconds), settings.busy)
    caller, journal = Caller(registry, settings.step_timeout), DatabaseJournal(database, settings.inline_bytes)
    turns = DatabaseTurns(database, artifacts, settings.inline_bytes, beside)
    shared = _Shared(
        registry=registry,
        caller=caller,
        runner=ToolRunner(registry, caller, journal, None, turns=turns),
        turns=turns,
        bodies=Bodies(artifacts, settings.inline_bytes),
        inbox=inbox,
        clock=clock,
        planner=planner,
        goal=goal or Goal(),
    )

    @lru_cache(maxsize=_VARIANTS)
    def under(context: RunContext) -> LoopGraph:
        chosen = settings.under(context)
        nodes, inner = _nodes(shared, chosen, named(chosen) if context.model else roles)
        return draw(nodes, gate, checkpointer, store, inner, settings.deltas)

    graph = under(RunContext())
    graph.change_goal, graph.effects, graph.under = inbox.put, journal.entries, under
    return graph


_VARIANTS = 32
"""Graphs that are kept for contexts; one more is made again when it is asked for."""


@dataclass(frozen=True)
class _Shared:
    """What is the same under whichever context a run goes on."""

    registry: Registry
    caller: Caller
    runner: ToolRunner
    turns: Turns
    bodies: Bodies
    inbox: GoalInbox
    clock: Clock
    planner: Planner | None
    goal: Goal


def _nodes(
    shared: _Shared, settings: Settings, roles: Models
) -> tuple[dict[Phase, PhaseNode], Pregel[Any, Any, Any, Any] | None]:
    """The phase nodes under some settings, and the graph that runs inside the executor when there is a model."""
    registry, bodies, clock, inbox = shared.registry, shared.bodies, shared.clock, shared.inbox
    react, patcher, scope_model, judge = _model_ports(roles, registry, settings)
    consent = _consent(registry, settings)
    runner = shared.runner.under(react, consent)
    asks, readers = settings.escalation == "ask", roles.any or shared.planner is not None
    planner = shared.planner or choose_planner(registry, roles.planner, roles.replanner, settings.persona)
    contracts, limits = registry.contracts, settings.limits
    dispatcher, verifier = (
        Dispatcher(limits, consent, bodies, inbox, clock, judge is not None),
        Verifier(shared.caller, bodies, clock, judge, settings.prices),
    )
    executor = Executor(runner, bodies, clock, settings.jitter, settings.prices, shared.turns)
    nodes: dict[Phase, PhaseNode] = {
        Phase.INTAKE: Intake(
            clock,
            Sight(contracts, registry.plannable, react is not None, judge is not None, settings.demanded),
            shared.goal,
        ),
        Phase.PLANNER: PlannerNode(planner, contracts, bodies, clock, limits, settings.prices),
        Phase.DISPATCHER: dispatcher,
        Phase.EXECUTOR: Round(executor, verifier, dispatcher),
        Phase.VERIFIER: verifier,
        Phase.CLASSIFIER: Classifier(
            contracts, limits, bodies, clock, scope_model, patcher is not None, settings.prices
        ),
        Phase.REPAIRER: Repairer(planner, patcher, registry, bodies, clock, limits, settings.prices),
        Phase.ESCALATOR: Escalator(asks, readers, consent, limits, registry.schemas(), bodies, inbox, clock),
        Phase.FINISHER: Finisher(bodies, clock, shared.turns),
    }
    return nodes, react.graph if react is not None else None


def _keep_secrets(settings: Settings) -> None:
    """From now on the secrets of the settings are hidden wherever they come up."""
    keep(*_secrets(settings))


def _secrets(value: object) -> Iterator[str | None]:
    if isinstance(value, SecretStr):
        yield secret(value)
    elif isinstance(value, BaseModel | Mapping):
        for each in value.values() if isinstance(value, Mapping) else dict(value).values():
            yield from _secrets(each)


def _consent(registry: Registry, settings: Settings) -> Consent:
    """Which calls wait for a person's word.

    Raises:
        ValueError: the policy names a tool that is not there.
    """
    unknown = unknown_tools(settings.approve_tools, registry.contracts)
    if unknown and registry.names():  # a home is read without any tools
        known = ", ".join(registry.names()) or "none"
        raise ValueError(f"approve_tools names {unknown[0]!r}, which is no tool; the tools are: {known}")
    tools = frozenset(settings.approve_tools)
    return Consent(approve=settings.approve, tools=tools, contracts=registry.contracts, untraced=settings.untraced)


def _model_ports(
    models: Models, registry: Registry, settings: Settings
) -> "tuple[ReactLoop | None, Patcher | None, ScopeModel | None, Judge | None]":
    """What models add. Loaded only when there is one: contract goals need none of it."""
    if not models.any:
        return None, None, None, None
    from agent.models.acting import Way
    from agent.models.judge import ModelJudge
    from agent.models.patcher import ModelPatcher
    from agent.models.scope import ModelScope
    from graphs.react import build_react

    way = None if settings.actions == "auto" else Way(settings.actions)
    return (
        build_react(models.executor, registry, settings.limits, way) if models.executor else None,
        ModelPatcher(models.repairer) if models.repairer else None,
        ModelScope(models.classifier) if models.classifier else None,
        ModelJudge(models.judge) if models.judge else None,
    )


_MEMORY: WeakKeyDictionary[BaseCheckpointSaver[Any], Database] = WeakKeyDictionary()
"""One database in memory for each saver in memory, so that a second graph over it finds the same journal."""


def _database_beside(checkpointer: BaseCheckpointSaver[Any] | None, settings: Settings) -> Database:
    """What has to live and die with the checkpoints lies where they do, or where the settings say."""
    if checkpointer is None:
        return memory_database()
    match lie_in(checkpointer):
        case Elsewhere.MEMORY:
            return _MEMORY.setdefault(checkpointer, memory_database())
        case Elsewhere.UNKNOWN:
            return open_database(place_of(settings))
        case Postgres() as place:
            return open_database(replace(place, patience=settings.database_timeout))
        case place:
            return open_database(place)

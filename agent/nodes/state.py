"""The state of a run: which layer each channel belongs to, who writes it, and the door through which values come.

Every channel that a person may edit (Studio, `update_state`) validates and coerces in its reducer.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Annotated, Any, NotRequired, TypeVar

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic, and so Studio's forms, refuse the one of Python 3.11

from agent.core.change import (
    LedgerChange,
    PlanChange,
    WorldChange,
    changed_ledger,
    changed_plan,
    changed_world,
    ledger_change,
    plan_change,
    world_change,
)
from agent.core.control import Recovery
from agent.core.failure import Failure
from agent.core.goal import Goal, revised
from agent.core.grant import granted
from agent.core.limits import Ledger, Limits
from agent.core.move import Move, PlanOrder
from agent.core.outcome import Outcome
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.record import RECORD, TraceRecord
from agent.core.triage import Triage
from agent.core.value import JsonValue, Value
from agent.core.world import World, edited
from agent.nodes.channels import Added, Changes
from agent.ports import Attempt

V = TypeVar("V", bound=Value)


def take_goal(old: Goal, new: object) -> Goal:
    """A goal that differs is a new revision: intent changes come in here, from whichever side."""
    stated = Goal.model_validate(new)
    if stated.revision > old.revision or old == Goal():
        return stated
    return revised(old, stated)


def take_world(old: World, writes: Sequence[object]) -> World:
    """The runtime's changes, or a person's edit: that is a whole world."""
    return reduce(_world_after, writes, old)


def take_plan(old: Plan, writes: Sequence[object]) -> Plan:
    """The runtime's changes, or a person's edit: that is a whole plan."""
    return reduce(_plan_after, writes, old)


def take_goals(old: Goal, writes: Sequence[object]) -> Goal:
    """One statement after the other."""
    return reduce(take_goal, writes, old)


def take_facts(_old: dict[str, JsonValue], writes: Sequence[object]) -> dict[str, JsonValue]:
    """The facts stated last."""
    return _FACTS.validate_python(writes[-1] or {})


def take_ledger(old: Ledger, writes: Sequence[object]) -> Ledger:
    """What is spent; editing it, as a whole, is how a person grants more."""
    return reduce(_ledger_after, writes, old)


def take_grants(old: dict[str, float], new: object) -> dict[str, float]:
    """Limits that a person raises, on top of those they have raised; what is no limit is refused."""
    grants = {**old, **_GRANTS.validate_python(new or {})}
    granted(Limits(), grants)
    return grants


def take_words(old: dict[str, dict[str, JsonValue]], new: object) -> dict[str, dict[str, JsonValue]]:
    """A person's word for a call; it is never taken back."""
    return {**old, **_WORDS.validate_python(new or {})}


def append_records(old: Sequence[TraceRecord], new: Sequence[Any]) -> list[TraceRecord]:
    """Records are only ever added."""
    return [*old, *(RECORD.validate_python(each) for batch in new for each in batch)]


SNAPSHOTS = 500
"""Updates between two whole values. A resume reads back to the last; a long run would drown in them."""


class RunState(TypedDict):
    """All channels. Derived facts (ready, blocked, progress) are computed, never stored."""

    goal: Annotated[Goal, Added(take_goals, snapshot_frequency=SNAPSHOTS)]
    """Goal layer. Written by the caller, and by the planner when it completes a free-text goal."""
    heard: int
    """Number of the last changed goal that was taken out of the inbox."""
    facts: Annotated[dict[str, JsonValue], Added(take_facts, snapshot_frequency=SNAPSHOTS)]
    """World layer, input: facts stated by the caller; intake takes them into the world."""
    world: Annotated[World, Changes(take_world, snapshot_frequency=SNAPSHOTS)]
    """World layer. Written by the verifier alone, and by marks."""
    plan: Annotated[Plan, Changes(take_plan, snapshot_frequency=SNAPSHOTS)]
    """Plan layer: disposable. Revision 0 is no plan."""
    phase: Phase
    """Where the run goes next; written by every node, read by the router and by nothing else."""
    move: Move | None
    """The dispatcher's decision, which the next node carries out."""
    triage: Triage | None
    """How much machinery the goal gets; written by intake."""
    order: PlanOrder | None
    """A replan that was ordered and not yet drawn."""
    attempts: tuple[Attempt, ...]
    """Finished attempts on their way from the executor to the verifier."""
    failures: tuple[Failure, ...]
    """Failures on their way to the classifier."""
    recoveries: tuple[Recovery, ...]
    """Classified failures with their rungs, on their way to the repairer."""
    unresolved: tuple[Recovery, ...]
    """Failures with no rung left; a person is asked when nothing else can be done."""
    ledger: Annotated[Ledger, Changes(take_ledger, snapshot_frequency=SNAPSHOTS)]
    """What is spent; survives a resume."""
    granted: Annotated[dict[str, float], take_grants]
    """Limits that a person has raised on this thread, by name; editing it is how to raise another."""
    allowed: Annotated[dict[str, dict[str, JsonValue]], take_words]
    """Calls that a person has allowed, by identity, each with the arguments they changed."""
    outcome: Outcome | None
    """How the run ended; None while it goes on."""
    trace: Annotated[list[TraceRecord], Added(append_records, snapshot_frequency=SNAPSHOTS)]
    """Why everything happened."""
    messages: Annotated[list[AnyMessage], add_messages]
    """Chat mode: a human message states the goal, the report comes back."""


class RunInput(TypedDict):
    """What a caller gives: a goal or a chat message, and what they know. None of it has to be given again."""

    goal: NotRequired[
        Annotated[
            Goal,
            Field(
                description='What to reach, as {"wants": ["report"]} or, with a model, {"text": "..."}. '
                "Another one changes the intent; what is finished and still serves is kept."
            ),
            Added(take_goals, snapshot_frequency=SNAPSHOTS),
        ]
    ]
    facts: NotRequired[
        Annotated[
            dict[str, JsonValue],
            Field(description="What is known and no step makes, by name; predicates read it as `facts.name`."),
            Added(take_facts, snapshot_frequency=SNAPSHOTS),
        ]
    ]
    messages: NotRequired[
        Annotated[
            list[AnyMessage],
            Field(description="Chat: with a model, the last message of a person states the goal."),
            add_messages,
        ]
    ]


class RunUpdate(TypedDict, total=False):
    """What a node may return. LangGraph drops unknown keys without a word, so the type checker must not."""

    goal: Goal
    heard: int
    world: World
    plan: Plan
    phase: Phase
    move: Move | None
    triage: Triage | None
    order: PlanOrder | None
    attempts: tuple[Attempt, ...]
    failures: tuple[Failure, ...]
    recoveries: tuple[Recovery, ...]
    unresolved: tuple[Recovery, ...]
    ledger: Ledger
    granted: dict[str, float]
    allowed: dict[str, dict[str, JsonValue]]
    outcome: Outcome | None
    trace: Sequence[TraceRecord]
    messages: Sequence[AnyMessage]


def written(state: RunState, update: RunUpdate) -> dict[str, object]:
    """An update as it is written: of world and plan only what changed, and nothing for what did not.

    Every node that runs is a super-step; it is counted here, where all of them come through.
    """
    ledger = update["ledger"] if "ledger" in update else state["ledger"]
    counted: Mapping[str, object] = {**update, "ledger": ledger.add(supersteps=1)}
    before: Mapping[str, object] = {**state}
    writes = {name: each for name, each in counted.items() if name not in before or each is not before[name]}
    for name, change in _CHANGES.items():
        if name in writes and (changed := change(before[name], writes.pop(name))) is not None:
            writes[name] = changed
    if ledger.supersteps % SNAPSHOTS == SNAPSHOTS - 1:
        # nobody else writes these for hundreds of super-steps, and a resume would read back to their first
        writes = {**{name: Overwrite(before[name]) for name in ("goal", "facts") if name in before}, **writes}
    return writes


_CHANGES: Mapping[str, Callable[[Any, Any], object]] = {
    "world": world_change,
    "plan": plan_change,
    "ledger": ledger_change,
}


def _world_after(old: World, write: object) -> World:
    match _WORLD_WRITE.validate_python(write):
        case WorldChange() as change:
            return changed_world(old, change)
        case World() as whole:
            return edited(old, whole)
        case None:
            return old


def _plan_after(old: Plan, write: object) -> Plan:
    match _PLAN_WRITE.validate_python(write):
        case PlanChange() as change:
            return changed_plan(old, change)
        case Plan() as whole:
            return whole
        case None:
            return old


def _ledger_after(old: Ledger, write: object) -> Ledger:
    match _LEDGER_WRITE.validate_python(write):
        case LedgerChange() as change:
            return changed_ledger(old, change)
        case Ledger() as whole:
            return whole
        case None:
            return old


_FACTS: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
_LEDGER_WRITE: TypeAdapter[LedgerChange | Ledger | None] = TypeAdapter(LedgerChange | Ledger | None)
_GRANTS: TypeAdapter[dict[str, float]] = TypeAdapter(dict[str, float])
_WORDS: TypeAdapter[dict[str, dict[str, JsonValue]]] = TypeAdapter(dict[str, dict[str, JsonValue]])
_WORLD_WRITE: TypeAdapter[WorldChange | World | None] = TypeAdapter(WorldChange | World | None)
_PLAN_WRITE: TypeAdapter[PlanChange | Plan | None] = TypeAdapter(PlanChange | Plan | None)

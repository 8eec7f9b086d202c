"""How do checkpoints hold what grows? As what was written, or, for who does not want that yet, as the whole each time.

LangGraph's `DeltaChannel` is in beta. Either kind of channel reads what the other has written, so that a thread may be
opened both ways, at any moment.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any, NotRequired, Self, TypeVar, get_args, get_origin, get_type_hints

from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from typing_extensions import TypedDict

from agent.core.change import LedgerChange, PlanChange, WorldChange
from agent.core.limits import Ledger
from agent.core.plan import Plan
from agent.core.world import World

S = TypeVar("S")

_CHANGES: dict[Any, Any] = {World: WorldChange, Plan: PlanChange, Ledger: LedgerChange}


class Added(DeltaChannel[Any]):
    """A channel of which checkpoints hold what was written, and the whole only now and then."""

    def copy(self) -> Self:
        """A channel with the same value: nobody changes one in place, so it need not be copied."""
        new = self.from_checkpoint(None)
        new.value = self.value
        return new


class Changes(Added):
    """Likewise, where what is written is what changed."""

    @property
    def UpdateType(self) -> Any:
        """What may be written; read by LangGraph's strict deserialiser."""
        return self.typ | _CHANGES[self.typ]


class Whole(BinaryOperatorAggregate[Any]):
    """A channel of which every checkpoint holds the whole, whatever is written."""

    @property
    def UpdateType(self) -> Any:
        """What may be written."""
        return self.typ | _CHANGES[self.typ] if self.typ in _CHANGES else self.typ


def without_deltas(schema: type[S]) -> type[S]:
    """The same channels with the same reducers, the whole of each in every checkpoint."""
    made: Any = TypedDict
    hints = {name: _whole(each) for name, each in get_type_hints(schema, include_extras=True).items()}
    plain: type[S] = made(schema.__name__, hints, total=schema.__total__)  # type: ignore[attr-defined]
    plain.__doc__ = schema.__doc__  # Studio shows it
    return plain


def _whole(hint: Any) -> Any:
    if get_origin(hint) is NotRequired:
        return NotRequired[_whole(*get_args(hint))]
    typ, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    *told, last = more or (None,)
    return Annotated[(typ, *told, Whole(typ, _one_by_one(last.reducer)))] if isinstance(last, DeltaChannel) else hint


@cache  # the same reducer gives the same again: LangGraph compares the channels of state and input
def _one_by_one(reducer: Callable[[Any, Sequence[Any]], Any]) -> Callable[[Any, Any], Any]:
    def after(old: Any, write: Any) -> Any:
        return reducer(old, [write])

    return after

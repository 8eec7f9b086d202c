"""What a tool promises: needs, produces, predicates, effect class, cost. Planning reads nothing else."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from agent.core.predicate import Predicate
from agent.core.value import ArtifactName, JsonValue, Value, words

Names = Annotated[tuple[ArtifactName, ...], BeforeValidator(words)]


def _predicates(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Predicates = Annotated[tuple[Predicate, ...], BeforeValidator(_predicates)]
"""One CEL expression or several."""


class EffectClass(StrEnum):
    """Whether running the tool changes the world outside (seed 2)."""

    READ_ONLY = "read_only"
    MUTATING = "mutating"


class ToolContract(Value):
    """The planning view of one tool. A tool without one counts as mutating and not idempotent."""

    tool: str
    intent: str = ""
    """First sentence of the tool's description; shown to people and to the patch prompt."""
    needs: Names = ()
    """Artifacts that must hold before; a trailing `*` means a family, as in `loaded_*`."""
    produces: Names = ()
    """Artifacts it makes; `{parameter}` is filled from `each`, as in `loaded_{week}`."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments by parameter: literals or references such as `{{settings.database}}`."""
    each: dict[str, ArtifactName] = Field(default_factory=dict)
    """Parameter -> given list: one step for every element."""
    requires: Predicates = ()
    ensures: Predicates = ()
    effect: EffectClass = EffectClass.MUTATING
    idempotent: bool = False
    """Running it again with the same arguments changes nothing more."""
    seconds: float | None = Field(default=None, gt=0)
    """How long one call may take, in place of `Settings.step_timeout`."""
    cost: float = 1.0
    """Relative to other tools: the cheapest way is planned first."""
    price: float = Field(default=0.0, ge=0)
    """Money for each call that is sent, in the currency of the price table."""
    alternatives: dict[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    """Parameter -> values in order of preference; the first is used until it is proven wrong."""
    stands_in_for: str | None = None
    """Name of the tool whose artifact this one can make instead."""
    idempotency_key: str = ""
    """Parameter that takes a key by which the other side knows a call that it has had before; given by the runtime."""
    free: Names | None = None
    """Parameters that take whatever was read: what is written, not where, to whom or how much (`provenance`).
    None: all of them for a tool that only reads, none for one that writes."""
    texts: Names = ()
    """Parameters that take nothing but text: what a reference gives them is spelled out."""
    observable: bool = False
    """Whether a probe can look at the artifact again."""


Contracts = Mapping[str, ToolContract]
"""Contracts by tool name."""

"""Which claims does a replay bear out? The rows of the matrix; each failing one names the layer to fix.

The first five are the seeds' own; the last two are ours.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.mutation import claims
from agent.mutation.replay import Replayed

Check = Callable[[Replayed], Iterator[str]]
"""What contradicts the claim, a sentence each."""


@dataclass(frozen=True)
class Row:
    """One claim about the representation."""

    name: str
    claim: str
    proves: str
    layer: str
    check: Check


MATRIX: tuple[Row, ...] = (
    Row(
        "reused",
        "an unchanged completed artifact is reused",
        "artifact identity is stable across repairs",
        "representation: references are bound to steps",
        claims.reused,
    ),
    Row(
        "not reused",
        "an invalidated artifact is not reused",
        "invalidation propagates",
        "repair logic: marking is too weak",
        claims.not_reused,
    ),
    Row(
        "independent",
        "an independent branch stays available",
        "the dependency graph is real, not linear",
        "representation: a flat list of steps",
        claims.independent,
    ),
    Row(
        "once",
        "a mutating action is not duplicated",
        "identity and effect class are honoured",
        "executor: the guard against re-running is missing",
        claims.once,
    ),
    Row(
        "ends",
        "the budget ends thrash",
        "progress is artifacts, not plans",
        "loop control: progress is measured by plans",
        claims.ends,
    ),
    Row(
        "no deeper",
        "repair is no deeper than needed",
        "the region is computed from the graph",
        "repair logic: the region is too wide",
        claims.no_deeper,
    ),
    Row(
        "recomputable",
        "every decision follows from its record",
        "records hold all inputs of a decision",
        "representation: a record lacks an input",
        claims.recomputable,
    ),
)

"""How did a run fare, in the numbers that LangSmith shows beside it? Those of `kintsugi stats`, for one run."""

from collections.abc import Iterable, Sequence

from agent.core.effect import EffectEntry
from agent.core.metrics import measured
from agent.core.outcome import OutcomeStatus
from agent.core.record import Ended, TraceRecord


def scores(trace: Sequence[TraceRecord], effects: Iterable[EffectEntry] = ()) -> dict[str, float | str]:
    """The scores of the last run of a thread; none while it has not ended."""
    last = trace[-1] if trace else None
    if not isinstance(last, Ended):
        return {}
    found = measured([each for each in trace if each.run == last.run], effects)
    return {
        "satisfied": float(last.status is OutcomeStatus.SATISFIED),
        "outcome": last.status.value,
        "repair_rate": found.repair_rate,
        "repair_depth": found.repair_depth,
        "reused_artifacts": found.reuse_rate,
        "duplicate_effects": float(found.duplicate_effects),
    }

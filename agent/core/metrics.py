"""How do tasks of one class fare over all their runs? Counted from the records alone (seeds 1 and 2).

One number would hide what is wrong: the same failures look alike as retries and call for opposite remedies. So
recoveries are counted by rung, by depth and by origin, and what the distribution means is said in words.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from pydantic import Field

from agent.core.effect import EffectEntry, happened
from agent.core.failure import Origin, Trigger
from agent.core.ladder import Rung
from agent.core.outcome import OutcomeStatus
from agent.core.plan import StepId
from agent.core.record import (
    AttemptEnded,
    Committed,
    Ended,
    Planned,
    Recovered,
    Repaired,
    RunStarted,
    TraceRecord,
    Withheld,
)
from agent.core.value import ArtifactName, Value

REPAIRS = (Rung.PATCH, Rung.REWRITE, Rung.REPLAN)
"""A retry is no repair: it changes nothing."""

STOOD = ("adopted", "recorded")
"""How an attempt ended that made nothing: the effect was there."""

ENOUGH = 3
"""Recoveries from which a distribution says something."""

MEANING = {
    "retry": "mostly retry: the infrastructure is flaky, not the agent",
    "patch": "mostly patch: the tools' schemas allow calls that are refused; tighten them",
    "replan": "mostly rewrite and replan: plans rest on what nobody verified; check it before the expensive work",
    "escalate": "mostly escalate: the tasks are under-specified, or the environment is broken",
}
"""What it means that more than half of all recoveries took one kind of rung (seed 1)."""

UNSEEN = "mostly missing observations: look at facts before relying on them; better repair cannot help"
TOO_DEEP = "repairs redo more than half of the plan: invalidation marks more than the change affects"


class Metrics(Value):
    """What the runs of one class of tasks came to."""

    runs: int = 0
    satisfied: int = 0
    rungs: dict[Rung, int] = Field(default_factory=dict)
    """Recoveries by rung; those that went along with a replan under way are not counted twice."""
    origins: dict[Origin, int] = Field(default_factory=dict)
    """Why they were needed: the world changed, the agent erred, a fact was never looked at."""
    depths: tuple[float, ...] = ()
    """For each repair, the share of the live plan that is done again or anew."""
    held: int = 0
    """Artifacts that were there when a repair began, over all repairs."""
    made_again: int = 0
    """Those of them that were made again before the next one."""
    withheld: int = 0
    """Calls that were not made because a model that had read data gave them arguments that come from nowhere."""
    duplicate_effects: int = 0
    """Writes that the journal let happen more than once for one identity."""

    @property
    def recoveries(self) -> int:
        """All five rungs."""
        return sum(self.rungs.values())

    @property
    def repairs(self) -> int:
        """Patches, rewrites and replans."""
        return sum(self.rungs.get(each, 0) for each in REPAIRS)

    @property
    def repair_rate(self) -> float:
        """Repairs for each run (seed 2)."""
        return self.repairs / self.runs if self.runs else 0.0

    @property
    def repair_depth(self) -> float:
        """How much of the plan a repair redoes, on average; 0 without repairs (seed 2)."""
        return sum(self.depths) / len(self.depths) if self.depths else 0.0

    @property
    def reuse_rate(self) -> float:
        """Share of the finished work that a repair leaves as it is; 1 when there was nothing to lose."""
        return 1 - self.made_again / self.held if self.held else 1.0

    def plus(self, other: "Metrics") -> "Metrics":
        """Both together."""
        summed = ("runs", "satisfied", "held", "made_again", "withheld", "duplicate_effects")
        return Metrics(
            **{name: getattr(self, name) + getattr(other, name) for name in summed},
            rungs=Counter(self.rungs) + Counter(other.rungs),
            origins=Counter(self.origins) + Counter(other.origins),
            depths=(*self.depths, *other.depths),
        )


def measured(records: Sequence[TraceRecord], effects: Iterable[EffectEntry] = ()) -> Metrics:
    """Count one thread.

    Args:
        records: its whole trace, all runs.
        effects: its entries in the effect journal.
    """
    taken = [each for each in records if isinstance(each, Recovered) and not each.choice.joined]
    held, again = _reuse(records)
    return Metrics(
        runs=sum(isinstance(each, RunStarted) for each in records),
        satisfied=sum(isinstance(each, Ended) and each.status is OutcomeStatus.SATISFIED for each in records),
        rungs=Counter(each.choice.rung for each in taken),
        origins=Counter(each.classified.origin for each in taken),
        depths=tuple(_depths(records)),
        held=held,
        made_again=again,
        withheld=sum(isinstance(each, Withheld) and not each.what.asked for each in records),
        duplicate_effects=duplicates(effects),
    )


def together(each: Iterable[Metrics]) -> Metrics:
    """Several threads as one."""
    total = Metrics()
    for one in each:
        total = total.plus(one)
    return total


def duplicates(effects: Iterable[EffectEntry]) -> int:
    """Writes that happened again under an identity that had happened: each is one that should be looked into."""
    times = Counter(
        (each.identity.thread, each.identity.tool, each.identity.args_digest) for each in effects if happened(each)
    )
    return sum(count - 1 for count in times.values())


def diagnosis(metrics: Metrics) -> tuple[str, ...]:
    """What the distributions say is to be mended, in sentences; empty when nothing stands out."""
    return tuple(_findings(metrics))


def _findings(metrics: Metrics) -> Iterator[str]:
    if metrics.recoveries >= ENOUGH:
        kinds = {rung.value: count for rung, count in metrics.rungs.items() if rung is not Rung.REWRITE}
        kinds["replan"] = sum(metrics.rungs.get(each, 0) for each in (Rung.REWRITE, Rung.REPLAN))
        yield from (MEANING[kind] for kind, count in kinds.items() if 2 * count > metrics.recoveries)
        if 2 * metrics.origins.get(Origin.OBSERVATION, 0) > metrics.recoveries:
            yield UNSEEN
    if len(metrics.depths) >= ENOUGH and metrics.repair_depth > 0.5:
        yield TOO_DEEP


def _is_repair(record: TraceRecord) -> bool:
    """Whether the plan was changed because something broke; a first plan and a changed goal are no repairs."""
    if isinstance(record, Planned):
        return record.trigger not in (Trigger.INITIAL, Trigger.INTENT_CHANGE)
    return isinstance(record, Repaired)


def _depths(records: Iterable[TraceRecord]) -> Iterator[float]:
    """For each repair the share of the live plan that is done again or anew; one of no steps has none."""
    for record in records:
        if isinstance(record, Planned | Repaired) and _is_repair(record):
            redone = len(record.delta.reopened) + len(record.delta.added)
            live = redone + len(record.delta.kept)
            if live:
                yield redone / live


def _reuse(records: Sequence[TraceRecord]) -> tuple[int, int]:
    """Artifacts there at each repair, and those of them that were made again before the next one.

    What was only looked at, and found standing, was not made again.
    """
    held, again = 0, 0
    made, since, looked = set[ArtifactName](), set[ArtifactName](), set[StepId]()
    at_risk: Collection[ArtifactName] = ()
    for record in records:
        if _is_repair(record):
            again += len(since & set(at_risk))
            held, at_risk, since = held + len(made), frozenset(made), set()
        elif isinstance(record, AttemptEnded):
            looked = looked | {record.step} if record.how in STOOD else looked - {record.step}
        elif isinstance(record, Committed):
            made.add(record.name)
            since |= set() if record.step in looked else {record.name}
    return held, again + len(since & set(at_risk))

"""Does every decision follow from its record (invariant 8)? Recomputed from a trace alone: no state, no world.

Covered are the strategy, the scope of a failure and what is known of its effect, the rung, the marks, what was drawn
for it and what that keeps, what was verified, what a judge's word came to, what was withheld, and the end. A verdict is
taken as it was recorded: what it was judged over is named by digest and lies in the store. So is what a model or a
person said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.core.classification import OUTDATED, blame, classify, conclude
from agent.core.control import Cause
from agent.core.failure import Classified, Origin, Scope
from agent.core.ladder import choose_rung
from agent.core.limits import Stop
from agent.core.outcome import OutcomeStatus, borne_out, ended_by
from agent.core.plan import StepId
from agent.core.predicate import Verdict
from agent.core.provenance import untraced
from agent.core.record import (
    Committed,
    Ended,
    IntentChanged,
    Invalidated,
    Judged,
    Recovered,
    Redrawn,
    Ruled,
    RunStarted,
    TraceRecord,
    Triaged,
    Withheld,
)
from agent.core.ruling import verdict_of
from agent.core.triage import triage
from agent.core.value import ArtifactName, Digest


class Recomputed(NamedTuple):
    """One decision, made once more."""

    place: int
    """Of its record in the trace, from 0."""
    record: TraceRecord
    differs: tuple[str, ...]
    """What does not follow from what was recorded, a sentence each; empty when all does."""


def recomputed(trace: Iterable[TraceRecord]) -> Iterator[Recomputed]:
    """Every decision of a thread, made once more from its record.

    Args:
        trace: from the first record of the thread on, for marks stand on what was made before.
    """
    standing = _Standing()
    for place, record in enumerate(trace):
        if isinstance(record, RunStarted | IntentChanged):
            standing.rulings.clear()
        if isinstance(record, Judged):
            standing.verified[record.step] = bool(record.judgements) and all(
                each.verdict is Verdict.VERIFIED for each in record.judgements
            )
        found = _differing(standing, record)
        if found is not None:
            yield Recomputed(place, record, tuple(found))


def _differing(standing: "_Standing", record: TraceRecord) -> Iterator[str] | None:
    """What does not follow from a record; None when it is of no decision."""
    match record:
        case Triaged():
            return _triaged(record)
        case Withheld():
            return _withheld(record)
        case _:
            return standing.differing(record)


def contradictions(trace: Iterable[TraceRecord]) -> Iterator[str]:
    """What does not follow from what was recorded; a sentence each."""
    for each in recomputed(trace):
        yield from each.differs


def _triaged(record: Triaged) -> Iterator[str]:
    said = record.chosen
    again = triage(said.signs, said.asked, said.goal_revision)
    if again != said:
        yield f"recorded the strategy {said.strategy}, recomputed {again.strategy}: {again.reason}"


def _withheld(record: Withheld) -> Iterator[str]:
    said = record.what
    again = untraced(said.args, said.tool_schema, said.free, said.known)
    if again != said.strange:
        yield f"{said.tool} was withheld for {', '.join(said.strange)}, recomputed {', '.join(again) or 'nothing'}"


def _recovered(record: Recovered) -> Iterator[str]:
    key, said = record.classified.failure.key, record.classified
    again = reclassified(said)
    if again != said:
        yield f"{key}: recorded {said.scope} by {said.rule!r}, recomputed {again.scope} by {again.rule!r}"
    choice = choose_rung(said, record.options, record.limits, record.ledger, record.ordered, record.resting)
    if choice != record.choice:
        yield f"{key}: recorded {record.choice.rung}, recomputed {choice.rung}"


def reclassified(said: Classified) -> Classified:
    """What a failure proves false, once more from the facts and the evidence in its record."""
    failure, view = said.failure, dict(said.evidence)
    if said.outdated:
        again = conclude(failure, Scope.NOTHING, Origin.ENVIRONMENT, OUTDATED, said.mutating, view)
        return again.model_copy(update={"outdated": True})
    known = classify(failure, said.mutating, view)
    if known is not None:
        return known
    if said.rule == "model":
        return conclude(failure, said.scope, blame(failure, said.scope, view), "model", said.mutating, view)
    return conclude(failure, Scope.CALL, Origin.AGENT, "default", said.mutating, view)


def _ended(record: Ended) -> Iterator[str]:
    if record.claimed is not None and borne_out(record.claimed, record.missing) is not record.status:
        yield f"the run ended {record.status}, and meant to end {record.claimed}: {'; '.join(record.missing)}"
    if record.stop is not None and not _holds(record.stop, record):
        yield f"the run was stopped by {record.stop.limit}, of which {record.stop.spent:g} were spent"


def _listed(names: Iterable[ArtifactName]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _holds(stop: Stop, record: Ended) -> bool:
    return stop.spent >= stop.allowed and record.claimed is ended_by(stop)


@dataclass
class _Standing:
    """What a trace says of artifacts so far, and of the last judgement of each step."""

    verified: dict[StepId, bool] = field(default_factory=dict)
    digests: dict[ArtifactName, Digest] = field(default_factory=dict)
    inputs: dict[ArtifactName, dict[ArtifactName, Digest]] = field(default_factory=dict)
    fallen: set[ArtifactName] = field(default_factory=set)
    """Marked as untrue themselves, and not made or seen again since."""
    causes: dict[int, Cause] = field(default_factory=dict)
    """Recoveries by number; those of the first record format have none."""
    rulings: dict[str, Ruled] = field(default_factory=dict)
    """The last word on each criterion, under this goal and in this run."""
    last: Recovered | None = None
    """The last recovery; its marks come right after it."""

    def differing(self, record: TraceRecord) -> Iterator[str] | None:
        """What does not follow from a record and those before it; None when it is of no decision."""
        match record:
            case Recovered():
                return self.recovered(record)
            case Redrawn():
                return self.redrawn(record)
            case Ruled():
                return self.ruled(record)
            case Committed():
                return self.committed(record)
            case Invalidated():
                return self.invalidated(record)
            case Ended():
                return self.ended(record)
            case _:
                return None

    def ruled(self, record: Ruled) -> Iterator[str]:
        again = verdict_of(record.said, record.evidence)
        if again is not record.verdict:
            yield f"criterion {record.criterion} was ruled {record.verdict}, recomputed {again}"
        self.rulings[record.criterion] = record

    def ended(self, record: Ended) -> Iterator[str]:
        yield from _ended(record)
        for each in self.rulings.values() if record.status is OutcomeStatus.SATISFIED else ():
            if each.verdict is not Verdict.VERIFIED:
                yield f"the run ended satisfied, and criterion {each.criterion} was ruled {each.verdict}"

    def recovered(self, record: Recovered) -> Iterator[str]:
        yield from _recovered(record)
        self.causes[record.number], self.last = record.cause, record
        for name in sorted(set(record.reused) & (self.fallen | set(record.invalidated))):
            yield f"recovery {record.number} leaves {name} as it is, which had been marked"

    def redrawn(self, record: Redrawn) -> Iterator[str]:
        cause = record.cause
        if cause is not None and self.causes.get(cause.number) != cause:
            yield f"plan {record.revision} was drawn for recovery {cause.number}, which was not chosen like that"
        for name in sorted(self.fallen & set(record.reused)):
            yield f"plan {record.revision} was to reuse {name}, which had been marked as untrue"

    def committed(self, record: Committed) -> Iterator[str]:
        if record.step is not None and not self.verified.get(record.step, False):
            yield f"{record.name} was committed, and no judgement of {record.step} verified it"
        self.digests[record.name], self.inputs[record.name] = Digest(record.digest), record.inputs
        self.fallen.discard(record.name)

    def invalidated(self, record: Invalidated) -> Iterator[str]:
        marked, roots = set(record.what.artifacts), set(record.what.roots)
        # another goal marks as well: what it wants anew, and what was made of a family that is another now
        last = self.last if self.last and self.last.classified.failure.error.message == record.what.cause else None
        if last is not None and last.number and last.invalidated != record.what.artifacts:
            yield f"recovery {last.number} was to mark {_listed(last.invalidated)}, and marked {_listed(marked)}"
        below = {name for name in self.digests if roots & self._behind(name)}
        for name in sorted(marked - roots - below):
            yield f"{name} was marked, and it was made from nothing that is untrue: {', '.join(sorted(roots))}"
        held = {name for name in below if self._holds(name)}
        for name in sorted(held - marked - roots):
            yield f"{name} was not marked, although it was made from {', '.join(sorted(roots & self._behind(name)))}"
        self.fallen |= roots

    def _behind(self, name: ArtifactName) -> set[ArtifactName]:
        """Everything it was made from, directly or not."""
        found: set[ArtifactName] = set()
        frontier = set(self.inputs.get(name, ()))
        while frontier:
            found |= frontier
            frontier = {each for one in frontier for each in self.inputs.get(one, ())} - found
        return found

    def _holds(self, name: ArtifactName) -> bool:
        """Whether it holds for certain; of what the goal has given a trace does not tell when it was changed."""
        return (
            name in self.digests
            and name not in self.fallen
            and all(self.digests.get(each) == was and self._holds(each) for each, was in self.inputs[name].items())
        )

"""Does every decision follow from its record (invariant 8)? Recomputed from a trace alone: no state, no world.

Covered are the scope of a failure and what is known of its effect, the rung, the marks, what was verified, and the
end. A verdict is taken as it was recorded: what it was judged over is named by digest and lies in the store. So is
what a model or a person said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agent.core.classification import OUTDATED, blame, classify, conclude
from agent.core.failure import Classified, Origin, Scope
from agent.core.ladder import choose_rung
from agent.core.limits import Stop
from agent.core.outcome import borne_out, ended_by
from agent.core.plan import StepId
from agent.core.predicate import Verdict
from agent.core.record import Committed, Ended, Invalidated, Judged, Recovered, TraceRecord
from agent.core.value import ArtifactName, Digest


def contradictions(trace: Iterable[TraceRecord]) -> Iterator[str]:
    """What does not follow from what was recorded; a sentence each.

    Args:
        trace: from the first record of the thread on, for marks stand on what was made before.
    """
    standing = _Standing()
    for record in trace:
        match record:
            case Recovered():
                yield from _recovered(record)
            case Judged():
                standing.verified[record.step] = bool(record.judgements) and all(
                    each.verdict is Verdict.VERIFIED for each in record.judgements
                )
            case Committed():
                yield from standing.committed(record)
            case Invalidated():
                yield from standing.invalidated(record)
            case Ended():
                yield from _ended(record)
            case _:
                pass


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

    def committed(self, record: Committed) -> Iterator[str]:
        if record.step is not None and not self.verified.get(record.step, False):
            yield f"{record.name} was committed, and no judgement of {record.step} verified it"
        self.digests[record.name], self.inputs[record.name] = Digest(record.digest), record.inputs
        self.fallen.discard(record.name)

    def invalidated(self, record: Invalidated) -> Iterator[str]:
        marked, roots = set(record.what.artifacts), set(record.what.roots)
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

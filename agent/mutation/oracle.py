"""Which work had to be done again? Computed from the dependency graph and the digests, past all repair logic.

A step had to be started again only for one of four reasons. Whatever else was started again was repaired too
deeply. None of them asks what the runtime marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.core.contract import EffectClass
from agent.core.failure import Scope
from agent.core.ladder import Rung
from agent.core.plan import Step, StepId, downstream, edges, upstream
from agent.core.predicate import Verdict
from agent.core.record import AttemptEnded, Committed, Judged, Recovered, StepStarted
from agent.core.value import ArtifactName
from agent.mutation.replay import Replayed


@dataclass(frozen=True)
class Start:
    """One start of a step that had been started before the constraint changed."""

    key: str
    because: str
    """Why it had to be; empty when it did not."""


@dataclass(frozen=True)
class Depth:
    """What was done again, and what had to be."""

    again: tuple[Start, ...]
    stood_on: tuple[str, ...] = ()
    """Keys of harmless writes that were taken as they stood, although their inputs had changed."""
    doubted: frozenset[str] = frozenset()
    """Keys of what was to be looked at again, because a failure did not say which input was wrong."""

    @property
    def taken(self) -> int:
        """Steps started again."""
        return len(self.again)

    @property
    def needed(self) -> int:
        """Those of them the graph asks for."""
        return sum(bool(each.because) for each in self.again)

    @property
    def needless(self) -> tuple[str, ...]:
        """Keys of those it does not ask for."""
        return tuple(each.key for each in self.again if not each.because)


@dataclass(frozen=True)
class Reach:
    """How far the mutation can reach along dependency edges, by step key."""

    hit: frozenset[str]
    behind: frozenset[str]
    """What the hit steps stand on."""
    ahead: frozenset[str]
    """What stands on them."""

    @property
    def touched(self) -> frozenset[str]:
        """All of them."""
        return self.hit | self.behind | self.ahead


def reach(replayed: Replayed) -> Reach:
    """Where the mutation can have consequences."""
    hit = replayed.mutation.hit
    live = replayed.plan.live()
    ids = [each.id for each in live if each.key in hit]
    keys = {each.id: each.key for each in live}
    behind = frozenset(keys[each] for each in upstream(live, ids)) - hit
    ahead = frozenset(keys[each] for each in downstream(live, ids)) - hit
    return Reach(hit, behind, ahead)


def depth(replayed: Replayed) -> Depth:
    """Follow the trace, and ask of every repeated start whether it had to be."""
    following = _Following(replayed, reach(replayed))
    for record in replayed.trace:
        match record:
            case StepStarted():
                following.started(record)
            case AttemptEnded():
                following.ended(record)
            case Judged():
                following.judged(record)
            case Committed():
                following.digests[record.name] = record.digest
            case Recovered():
                following.recovered(record)
            case _:
                pass
    return Depth(tuple(following.again), tuple(following.stood_on), frozenset(following.doubted))


@dataclass
class _Following:
    """Where the replay stands, record by record."""

    replayed: Replayed
    reach: Reach
    digests: dict[ArtifactName, str] = field(default_factory=dict)
    made_from: dict[str, dict[ArtifactName, str]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    looks: dict[str, int] = field(default_factory=dict)
    """How often a step may look again, because what it observed was doubted."""
    carried_out: dict[str, dict[ArtifactName, str]] = field(default_factory=dict)
    """From what a step was really made last."""
    stood_on: list[str] = field(default_factory=list)
    doubted: set[str] = field(default_factory=set)
    again: list[Start] = field(default_factory=list)
    news: set[str] = field(default_factory=set)
    """Hit steps that have not been started since."""

    def __post_init__(self) -> None:
        self.steps = {each.id: each for each in self.replayed.plan.steps}
        self.news = set(self.reach.hit)

    def started(self, record: StepStarted) -> None:
        step = self.steps[record.step]
        inputs = {name: self.digests.get(name, "") for name in sorted(step.reads())}
        late = self.replayed.fired_at is not None and record.at > self.replayed.fired_at
        if late and step.key in self.made_from:
            self.again.append(Start(step.key, self._because(step, inputs)))
        if late:
            self.news.discard(step.key)
        self.made_from[step.key] = inputs
        self.failed.discard(step.key)

    def ended(self, record: AttemptEnded) -> None:
        step = self.steps[record.step]
        if not record.ok:
            self.failed.add(step.key)
        elif record.how == "called":
            self.carried_out[step.key] = self.made_from[step.key]
        elif step.idempotent and self.carried_out.get(step.key, self.made_from[step.key]) != self.made_from[step.key]:
            self.stood_on.append(step.key)

    def judged(self, record: Judged) -> None:
        if any(each.verdict is not Verdict.VERIFIED for each in record.judgements):
            self.failed.add(self.steps[record.step].key)

    def recovered(self, record: Recovered) -> None:
        """A failure that proves a precondition false doubts what the step stands on: that is looked at again."""
        classified, rung = record.classified, record.choice.rung
        key = classified.failure.key
        if rung is Rung.ESCALATE or not (classified.scope is Scope.PRECONDITION or rung is Rung.REWRITE):
            return
        for step in (each for each in self.replayed.plan.live() if each.key == key and key in self.reach.touched):
            for each in self._observers(step, far=record.ledger.rewrite.get(key, 0) > 0):
                self.looks[each.key] = 1
                self.doubted.add(each.key)

    def _observers(self, step: Step, far: bool) -> Sequence[Step]:
        live = self.replayed.plan.live()
        ids: frozenset[StepId] = upstream(live, [step.id]) if far else edges(live)[step.id]
        return [each for each in live if each.id in ids and each.effect is EffectClass.READ_ONLY]

    def _because(self, step: Step, inputs: dict[ArtifactName, str]) -> str:
        if self.looks.pop(step.key, 0):
            return "what it had observed was doubted"
        if step.key not in self.reach.touched:
            return ""
        if inputs != self.made_from[step.key]:
            return "its inputs changed"
        if step.key in self.failed:
            return "it had failed"
        if step.key in self.news:
            return "what it had observed or made changed"
        return ""

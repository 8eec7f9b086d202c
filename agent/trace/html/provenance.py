"""Where does each artifact come from? What it was made of, by which step, and which check verified it."""

from collections.abc import Mapping, Sequence

from agent.core.plan import Plan
from agent.core.predicate import Judgement
from agent.core.record import Committed, Judged, TraceRecord
from agent.core.value import ArtifactName, Digest, canonical
from agent.core.world import GIVEN, Artifact, World
from agent.trace.html.model import Made, Source
from agent.trace.html.wording import size

PREVIEW = 300
"""Characters of a body that are shown."""

_MAKERS = {GIVEN: "given with the goal", "person": "a person"}

Versions = Mapping[tuple[ArtifactName, Digest], int]


def made(world: World, plan: Plan, trace: Sequence[TraceRecord]) -> tuple[Made, ...]:
    """Every artifact of the world, those given with the goal last."""
    intents = {str(each.id): each.intent for each in plan.steps}
    versions = {(each.name, Digest(each.digest)): each.version for each in trace if isinstance(each, Committed)}
    versions |= {(each.name, each.digest): each.version for each in world.artifacts.values()}
    checks = _checks(trace)
    ordered = sorted(world.artifacts.values(), key=lambda each: each.producer == GIVEN)
    return tuple(_made(each, world, intents, versions, checks.get(each.name, ())) for each in ordered)


def _made(
    artifact: Artifact, world: World, intents: Mapping[str, str], versions: Versions, checks: Sequence[Judgement]
) -> Made:
    sources = (_source(name, digest, world, versions) for name, digest in sorted(artifact.inputs.items()))
    return Made(
        name=artifact.name,
        version=artifact.version,
        digest=artifact.digest[:8],
        size=artifact.size,
        holds=artifact.mark is None,
        doubt=artifact.mark.cause if artifact.mark else "",
        maker=_MAKERS.get(artifact.producer) or intents.get(artifact.producer, artifact.producer),
        sources=tuple(sources),
        by=", ".join(artifact.verification.by),
        checks=tuple((each.predicate, each.verdict.value) for each in checks),
        assumed=tuple(each.predicate for each in artifact.assumptions),
        preview=_preview(artifact),
    )


def _source(name: ArtifactName, digest: Digest, world: World, versions: Versions) -> Source:
    now = world.artifacts.get(name)
    version = versions.get((name, digest))
    return Source(
        name=name,
        version=f"version {version}" if version else digest[:8],
        current=now is not None and now.digest == digest and now.mark is None,
    )


def _checks(trace: Sequence[TraceRecord]) -> dict[ArtifactName, tuple[Judgement, ...]]:
    """By artifact the judgements it was last committed on."""
    judged: dict[str, tuple[Judgement, ...]] = {}
    found: dict[ArtifactName, tuple[Judgement, ...]] = {}
    for record in trace:
        if isinstance(record, Judged):
            judged[record.step] = record.judgements
        elif isinstance(record, Committed):
            found[record.name] = judged.get(record.step, ()) if record.step else ()
    return found


def _preview(artifact: Artifact) -> str:
    if artifact.stored:
        return f"({size(artifact.size)} in the artifact store, not shown here)"
    spelled = canonical(artifact.value)
    return spelled if len(spelled) <= PREVIEW else f"{spelled[:PREVIEW]} … ({size(artifact.size)} in all)"

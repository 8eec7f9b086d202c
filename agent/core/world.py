"""Ground truth: facts and artifacts, with versions and digests. Nothing here knows the plan."""

from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

from pydantic import Field

from agent.core.predicate import reads
from agent.core.value import ArtifactName, Digest, JsonValue, Value, digest, size

GIVEN = "goal"
"""Producer of artifacts that the goal itself supplies."""


class Fact(Value):
    """Something observed that no step makes; edited in Studio or given with the input."""

    name: str
    value: JsonValue
    version: int = 1


class Assumption(Value):
    """A predicate an artifact was made under, with the digests it read."""

    predicate: str
    reads: dict[ArtifactName, Digest] = Field(default_factory=dict)


class Verification(Value):
    """By what an artifact was verified (`result`, `predicate`, `probe`, `judge`, `given`, `person`)."""

    by: tuple[str, ...]
    world_version: int = 0


class Mark(Value):
    """Why an artifact is not trusted now. A mark deletes nothing (seed 2)."""

    cause: str
    """Sentence for people."""
    root: bool
    """True: the artifact itself was falsified and must be made or observed again.
    False: it follows from a marked input, and is lifted when the input comes back unchanged."""


class Artifact(Value):
    """A named, verified piece of finished work. Addressed by name, never by the step that made it."""

    name: ArtifactName
    digest: Digest
    version: int = 1
    """Counts distinct contents under this name; starts at 1."""
    value: JsonValue = None
    """The body, when small; None with `stored` when it lies in the artifact store under `digest`."""
    stored: bool = False
    size: int = 0
    """Bytes of the canonical JSON."""
    producer: str
    """Id of the step, or `goal`, or `person`."""
    inputs: dict[ArtifactName, Digest] = Field(default_factory=dict)
    """Exactly what it was made from."""
    assumptions: tuple[Assumption, ...] = ()
    verification: Verification
    seen: Digest | None = None
    """What its probe saw when it was verified; None when nothing can observe it."""
    seen_at: int = 0
    """Tick of the last look; see `World.tick`."""
    mark: Mark | None = None

    @property
    def mirrors(self) -> bool:
        """Whether it stands for something outside that can be looked at again."""
        return self.seen is not None and self.producer != GIVEN

    @property
    def leans(self) -> bool:
        """Whether it was made under an assumption about facts."""
        return any(reads(each.predicate, "facts") for each in self.assumptions)


class World(Value):
    """All that is known to be true, and since when.

    A world may have thousands of artifacts, and every round of the loop changes one or two. So what decisions
    ask of all of them is computed once, and carried along from one world to the next.
    """

    kept_with: ClassVar[frozenset[str]] = frozenset({"artifacts"})

    version: int = 0
    """Grows with every commit and every mark."""
    tick: int = 0
    """Grows with every harvest; an artifact seen at this tick need not be looked at again."""
    artifacts: dict[ArtifactName, Artifact] = Field(default_factory=dict)
    facts: dict[str, Fact] = Field(default_factory=dict)

    @cached_property
    def marked(self) -> frozenset[ArtifactName]:
        """Artifacts that are not trusted now."""
        return frozenset(name for name, each in self.artifacts.items() if each.mark is not None)

    @cached_property
    def mirrored(self) -> frozenset[ArtifactName]:
        """Artifacts that stand for something outside."""
        return frozenset(name for name, each in self.artifacts.items() if each.mirrors)

    @cached_property
    def users(self) -> dict[ArtifactName, frozenset[ArtifactName]]:
        """For each artifact those that were made from it."""
        return _users({}, {}, self.artifacts)

    @cached_property
    def leaning(self) -> frozenset[ArtifactName]:
        """Artifacts made under assumptions about facts."""
        return frozenset(name for name, each in self.artifacts.items() if each.leans)

    @cached_property
    def news(self) -> frozenset[ArtifactName] | None:
        """Artifacts that came or changed since marks and plan were brought up to date; None: any of them may have."""
        return None

    def holds(self, name: ArtifactName) -> bool:
        """Whether a verified artifact of that name exists and is not marked."""
        artifact = self.artifacts.get(name)
        return artifact is not None and artifact.mark is None

    def digests(self, names: Iterable[ArtifactName]) -> dict[ArtifactName, Digest]:
        """Digests of those of the names that hold now."""
        return {name: self.artifacts[name].digest for name in sorted(set(names)) if self.holds(name)}

    def fact_values(self) -> dict[str, JsonValue]:
        """Fact values by name, as predicates read them."""
        return {name: fact.value for name, fact in self.facts.items()}

    def ticked(self) -> "World":
        """The world after another harvest: earlier looks may be out of date."""
        return self.model_copy(update={"tick": self.tick + 1})

    def with_artifacts(self, *changed: Artifact) -> "World":
        """The world with these artifacts in place of their namesakes."""
        fresh = {each.name: each for each in changed}
        new = self.model_copy(update={"artifacts": {**self.artifacts, **fresh}, "version": self.version + 1})
        return new.knowing(
            marked=self.marked.difference(fresh).union(name for name, each in fresh.items() if each.mark is not None),
            mirrored=self.mirrored.difference(fresh).union(name for name, each in fresh.items() if each.mirrors),
            leaning=self.leaning.difference(fresh).union(name for name, each in fresh.items() if each.leans),
            users=_users(self.users, self.artifacts, fresh),
            news=None if self.news is None else self.news.union(fresh),
        )


def _users(
    known: dict[ArtifactName, frozenset[ArtifactName]],
    old: dict[ArtifactName, Artifact],
    fresh: dict[ArtifactName, Artifact],
) -> dict[ArtifactName, frozenset[ArtifactName]]:
    users = dict(known)
    for name, artifact in fresh.items():
        before = old[name].inputs if name in old else {}
        for each in before.keys() - artifact.inputs.keys():
            users[each] = users[each] - {name}
        for each in artifact.inputs.keys() - before.keys():
            users[each] = users.get(each, frozenset()) | {name}
    return users


def made(names: Iterable[ArtifactName], world: World) -> tuple[ArtifactName, ...]:
    """Those of the names that were made, not given."""
    return tuple(n for n in names if n in world.artifacts and world.artifacts[n].producer != GIVEN)


def commit(world: World, artifact: Artifact, seen_at: int | None = None) -> World:
    """Put a verified artifact into the world; equal content keeps its version (early cutoff).

    Args:
        world: the world.
        artifact: what was verified.
        seen_at: the tick at which it was looked at; None: just now.
    """
    old = world.artifacts.get(artifact.name)
    same = old is not None and old.digest == artifact.digest
    version = 1 if old is None else old.version + (0 if same else 1)
    verified = artifact.verification.model_copy(update={"world_version": world.version + 1})
    looked = world.tick if seen_at is None else seen_at
    return world.with_artifacts(
        artifact.model_copy(update={"version": version, "verification": verified, "seen_at": looked, "mark": None})
    )


def seen(world: World, name: ArtifactName) -> World:
    """Record that a probe saw the artifact unchanged at this tick."""
    return world.with_artifacts(world.artifacts[name].model_copy(update={"seen_at": world.tick}))


def edited(old: World, new: World) -> World:
    """The world as a person has edited it: a body in place of another is another artifact, and verified by them."""
    changed = (each for each in new.artifacts.values() if not each.stored and digest(each.value) != each.digest)
    by_hand = [
        each.model_copy(
            update={
                "digest": digest(each.value),
                "size": size(each.value),
                "version": max(each.version, old.artifacts[each.name].version + 1 if each.name in old.artifacts else 1),
                "verification": Verification(by=("person",), world_version=new.version + 1),
            }
        )
        for each in changed
    ]
    return new.with_artifacts(*by_hand) if by_hand else new


def with_facts(world: World, facts: dict[str, JsonValue]) -> World:
    """Take stated facts into the world; a changed one gets a new version."""
    taken = dict(world.facts)
    for name, value in facts.items():
        old = taken.get(name)
        if old is None or old.value != value:
            taken[name] = Fact(name=name, value=value, version=old.version + 1 if old else 1)
    return world.model_copy(update={"facts": taken, "version": world.version + 1}) if taken != world.facts else world


def given(values: dict[ArtifactName, JsonValue], bodies: Iterable[Artifact], world: World) -> World:
    """Commit the goal's given values (their bodies already sized and stored by the caller)."""
    for artifact in bodies:
        old = world.artifacts.get(artifact.name)
        if artifact.name in values and (old is None or old.digest != artifact.digest or old.mark):
            world = commit(world, artifact)
    return world

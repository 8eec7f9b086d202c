"""Ground truth: facts and artifacts, with versions and digests. Nothing here knows the plan."""

from collections.abc import Iterable

from pydantic import Field

from agent.core.value import ArtifactName, Digest, JsonValue, Value

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


class World(Value):
    """All that is known to be true, and since when."""

    version: int = 0
    """Grows with every commit and every mark."""
    tick: int = 0
    """Grows with every harvest; an artifact seen at this tick need not be looked at again."""
    artifacts: dict[ArtifactName, Artifact] = Field(default_factory=dict)
    facts: dict[str, Fact] = Field(default_factory=dict)

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
        merged = {**self.artifacts, **{each.name: each for each in changed}}
        return self.model_copy(update={"artifacts": merged, "version": self.version + 1})


def commit(world: World, artifact: Artifact) -> World:
    """Put a verified artifact into the world; equal content keeps its version (early cutoff)."""
    old = world.artifacts.get(artifact.name)
    same = old is not None and old.digest == artifact.digest
    version = 1 if old is None else old.version + (0 if same else 1)
    verified = artifact.verification.model_copy(update={"world_version": world.version + 1})
    return world.with_artifacts(
        artifact.model_copy(update={"version": version, "verification": verified, "seen_at": world.tick, "mark": None})
    )


def seen(world: World, name: ArtifactName) -> World:
    """Record that a probe saw the artifact unchanged at this tick."""
    return world.with_artifacts(world.artifacts[name].model_copy(update={"seen_at": world.tick}))


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

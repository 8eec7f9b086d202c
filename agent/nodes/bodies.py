"""Artifacts' bodies: small ones ride in state, larger ones lie in the store under their digest."""

from collections.abc import Iterable

from agent.core.goal import Goal
from agent.core.invalidation import settle
from agent.core.value import ArtifactName, Digest, JsonValue, size, weighed
from agent.core.world import GIVEN, Artifact, Verification, World, given
from agent.store.artifacts import ArtifactStore


class Bodies:
    """Reads and writes artifact bodies."""

    def __init__(self, store: ArtifactStore, inline_bytes: int) -> None:
        """Args: where large bodies lie; up to how many bytes a body stays in state."""
        self._store = store
        self._inline = inline_bytes

    async def view(self, world: World, names: Iterable[ArtifactName]) -> dict[ArtifactName, JsonValue]:
        """Bodies of those of the names that hold, as predicates and references read them."""
        return {name: await self.of(world.artifacts[name]) for name in sorted(set(names)) if world.holds(name)}

    async def of(self, artifact: Artifact) -> JsonValue:
        """The body of one artifact."""
        return await self._store.get(artifact.digest) if artifact.stored else artifact.value

    async def parked(self, value: JsonValue) -> Digest | None:
        """Put a value into the store if it is too large for state; its digest, or None if it may ride along."""
        return await self._store.put(value) if size(value) > self._inline else None

    async def load(self, value: JsonValue, stored: Digest | None) -> JsonValue:
        """Undo `parked`."""
        return value if stored is None else await self._store.get(stored)

    async def artifact(
        self,
        name: ArtifactName,
        value: JsonValue,
        producer: str,
        verification: Verification,
        inputs: dict[ArtifactName, Digest] | None = None,
    ) -> Artifact:
        """A new artifact around a body."""
        identity, bytes_ = weighed(value)
        stored = bytes_ > self._inline
        return Artifact(
            name=name,
            digest=await self._store.put(value) if stored else identity,
            value=None if stored else value,
            stored=stored,
            size=bytes_,
            producer=producer,
            inputs=inputs or {},
            verification=verification,
        )

    async def with_given(self, goal: Goal, world: World) -> World:
        """The world with the goal's given values in it, and what was made from others marked."""
        artifacts = [
            await self.artifact(name, value, GIVEN, Verification(by=("given",))) for name, value in goal.given.items()
        ]
        return settle(given(goal.given, artifacts, world))

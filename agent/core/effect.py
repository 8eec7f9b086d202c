"""What is known about a mutating call: its identity, whether it may be made, and how it ended.

The world cannot be rolled back, so a call is answered for by the journal and not by the plan: a new plan, a
resume or a fork of the same thread asks about the same identity and finds what was already done.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agent.core.value import Digest, JsonValue, digest


@dataclass(frozen=True, slots=True)
class EffectIdentity:
    """What makes two calls the same call. Step and plan are no part of it: they change, effects do not."""

    thread: str
    tool: str
    args_digest: Digest
    """Digest of the canonical arguments, references resolved."""
    repetition: int = 0
    """Counts identical calls that are meant to happen more than once; starts at 0."""

    @property
    def call(self) -> str:
        """Which call it is on its thread, however often it is meant to happen."""
        return f"{self.tool} {self.args_digest}"


class EffectStatus(StrEnum):
    """How far an effect is known to have come."""

    OPEN = "open"
    """Intended; whether it happened is not known."""
    DONE = "done"
    """Happened; the call said so."""
    ADOPTED = "adopted"
    """Happened; found by reading the world, the answer of the call was lost."""
    ABSENT = "absent"
    """Did not happen; may be tried again."""


@dataclass(frozen=True, slots=True)
class EffectEntry:
    """The durable record of an effect. `Begun` is what a caller is told about it."""

    identity: EffectIdentity
    step: str
    """Id of the step that intended it last."""
    status: EffectStatus
    attempts: int
    """How often the call was let through; at least 1."""
    result: JsonValue = None
    """What the call gave; None until it is known."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """The intent is durable and ours: make the call, then report its end."""

    attempts: int = 1
    """Number of this attempt; `absent` wants it back."""


@dataclass(frozen=True, slots=True)
class Open:
    """Someone intended this and never reported the end. Find out; never repeat it blindly."""

    step: str
    attempts: int
    """Number of the attempt whose end is unknown; `absent` wants it back."""


@dataclass(frozen=True, slots=True)
class Done:
    """It already happened; this is its result."""

    result: JsonValue


Begun = Fresh | Open | Done
"""Answer to the wish to make a mutating call."""


class UnknownEffect(LookupError):
    """An end was reported for an effect that was never begun."""


class EffectJournal(Protocol):
    """Brackets every mutating call: the intent is durable before it, its end after it."""

    async def begin(self, identity: EffectIdentity, step: str, fence: int | None = None) -> Begun:
        """Ask to make the call. Of all that ask at once, one is told `Fresh`.

        Args:
            identity: which call.
            step: the step that makes it.
            fence: token of the thread's lease; None for a run that needs none.

        Raises:
            Superseded: another run has taken the thread over.
        """
        ...

    async def done(self, identity: EffectIdentity, result: JsonValue) -> None:
        """Report that the call happened. The first result stays."""
        ...

    async def adopted(self, identity: EffectIdentity, result: JsonValue) -> None:
        """Report that the effect was found in the world. The first result stays."""
        ...

    async def absent(self, identity: EffectIdentity, attempts: int) -> None:
        """Report that this attempt is known to have had no effect, so that the call may be made again.

        Nothing changes when the effect has happened or a later attempt was let through meanwhile: what was
        found out about an earlier attempt says nothing about that one.
        """
        ...

    async def entries(self, thread: str) -> tuple[EffectEntry, ...]:
        """All effects of a thread, in the order they were first intended."""
        ...

    async def undecided(self, thread: str, steps: Collection[str]) -> tuple[EffectIdentity, ...]:
        """What any of these steps has intended last and nobody has reported the end of, in the order of intent."""
        ...


def idempotency_key(identity: EffectIdentity) -> str:
    """A key for the other side, which is the same at every try of this effect and at none of another."""
    return digest([identity.thread, identity.tool, identity.args_digest, identity.repetition])


def answer(entry: EffectEntry | None) -> Begun:
    """Decide what to tell a caller that wants to make this call."""
    if entry is None:
        return Fresh()
    match entry.status:
        case EffectStatus.ABSENT:
            return Fresh(entry.attempts + 1)
        case EffectStatus.OPEN:
            return Open(entry.step, entry.attempts)
        case EffectStatus.DONE | EffectStatus.ADOPTED:
            return Done(entry.result)


def happened(entry: EffectEntry) -> bool:
    """Whether the effect is known to have happened."""
    return entry.status in (EffectStatus.DONE, EffectStatus.ADOPTED)

"""What went wrong, as data: the trigger, the facts of the error, and what it proves false."""

from enum import StrEnum

from pydantic import Field

from agent.core.plan import StepId
from agent.core.value import ArtifactName, Digest, JsonValue, Value, digest


class Trigger(StrEnum):
    """What happened (seed 2)."""

    INITIAL = "initial"
    TASK_FAILURE = "task_failure"
    PRECONDITION_VIOLATION = "precondition_violation"
    INTENT_CHANGE = "intent_change"
    BLOCKED = "blocked"


class Scope(StrEnum):
    """What a failure proves false (seed 1): scope routes recovery, severity never does."""

    NOTHING = "nothing"
    CALL = "call"
    PRECONDITION = "precondition"
    GOAL = "goal"


class Origin(StrEnum):
    """Why it happened: the world changed, the agent erred, or a fact was never looked at."""

    ENVIRONMENT = "environment"
    AGENT = "agent"
    OBSERVATION = "observation"


class Effect(StrEnum):
    """What is known about the effect of a mutating call that failed."""

    ABSENT = "absent"
    UNKNOWN = "unknown"
    PRESENT = "present"


class NothingDone(ValueError):
    """Raised by a tool that refuses its arguments before it does anything: the call may be made otherwise.

    Any other error out of a write leaves open what it did: a probe looks, or a person is asked.
    """


class ErrorFacts(Value):
    """An error reduced to facts at the boundary, before any policy looks at it."""

    kind: str
    """`exception`; `timeout`; `value`: an error returned as data; `refused`: the arguments, before anything ran;
    `verdict`: a predicate that is not verified; `absent`: a probe saw nothing; `probe`: a probe could not look;
    `stale`: an observation changed; `lost`: a write whose outcome cannot be found out; `need`: nobody makes it;
    `loop`: a model went on making the same call; `invalid`: a model's replies could not be read; `gave_up`: it says
    that the step cannot be done, and in `code` what that proves false."""
    type: str = ""
    """Class name of the exception, if any."""
    bases: tuple[str, ...] = ()
    """Names of its base classes, nearest first."""
    status: int | None = None
    """HTTP status, when the error carries one."""
    code: str = ""
    """Any other code: `sqlstate:42P01`, `SQLITE_BUSY`, `ENOSPC`, `exit:127`, `rpc:-32602`, `insufficient_quota`."""
    endpoint: str = ""
    """Host that the error came from, when the client names it; steps that call it wait for it together."""
    message: str = ""
    """Verbatim text, secrets masked, cut to a limit."""
    retry_after: float | None = None
    """Seconds the other side asked us to wait."""
    nothing_there: bool = False
    """A probe has looked since, and saw no effect of the call."""
    lost: tuple[str, ...] = ()
    """Writes of an inner loop whose outcome cannot be found out (`EffectIdentity.call`)."""


class Failure(Value):
    """One failed attempt or one broken predicate, waiting to be classified."""

    trigger: Trigger
    step: StepId | None = None
    key: str = ""
    """`Step.key`: budgets are kept under it."""
    tool: str = ""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """The exact arguments sent."""
    error: ErrorFacts
    predicate: str = ""
    """The predicate that broke, for a precondition violation or a refuted effect."""
    reads: tuple[ArtifactName, ...] = ()
    """Artifacts the attempt or the predicate read."""
    inputs: dict[ArtifactName, Digest] = Field(default_factory=dict)
    """Their digests when the attempt started; empty when nothing was started."""

    @property
    def of_a_look(self) -> bool:
        """Whether something was only looked at: it is another now, or could not be seen."""
        return self.error.kind == "stale" or (self.error.kind == "probe" and self.step is None)

    @property
    def fingerprint(self) -> str:
        """Equal for the same call failing in the same way; step ids and prose do not count."""
        error = self.error
        sort = [error.kind, error.type, str(error.status or ""), self.predicate, *([error.code] if error.code else [])]
        return digest([self.key, self.tool, self.args, list(sort)])


class Classified(Value):
    """A failure with its scope, and the rule that decided."""

    failure: Failure
    scope: Scope
    origin: Origin
    effect: Effect = Effect.ABSENT
    rule: str
    """Name of the table row, `model`, or `default`."""
    falsified: tuple[ArtifactName, ...] = ()
    """Observations the failure proves out of date."""
    mutating: bool = False
    """Whether the call could have changed the world."""
    evidence: dict[ArtifactName, str] = Field(default_factory=dict)
    """Of what was read, what it says of the name that the error misses: the scope follows from it once more."""
    outdated: bool = False
    """It says nothing new: what the attempt read was already being looked at again when it ended."""

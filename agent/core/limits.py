"""Allowed and spent: two plain values. A crossed limit is a Stop that ends the run through the finisher."""

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from agent.core.value import Value


class Limits(Value):
    """What a run may use. One field per budget, so that thrash shows where it happens (seed 2)."""

    retry: NonNegativeInt = 3
    """Retries per step."""
    patch: NonNegativeInt = 2
    """Patches per step."""
    rewrite: NonNegativeInt = 2
    """Rewrites per step that broke."""
    replan: NonNegativeInt = 1
    """Replans per run; a second one is almost always an escalation (seed 1)."""
    escalate: NonNegativeInt = 5
    """Questions to a person per run."""
    retries_per_run: PositiveInt = 100
    patches_per_run: PositiveInt = 50
    rewrites_per_run: PositiveInt = 20
    planner_calls: PositiveInt = 20
    model_calls: PositiveInt = 500
    """Calls to any model role but the planner."""
    tool_calls: PositiveInt = 10_000
    tokens: PositiveInt = 2_000_000
    seconds: PositiveFloat = 24 * 3600.0
    """Wall clock of one run, waiting for a person not counted."""
    steps: PositiveInt = 5_000
    """Attempts started."""
    moves: PositiveInt = 50_000
    """Rounds of the loop: nothing may go round for ever."""
    barren: PositiveInt = 25
    """Failed attempts in a row without a newly verified artifact."""
    turns: PositiveInt = 12
    """Model turns inside one ReAct step."""
    depth: PositiveInt = 2
    parallel: PositiveInt = 64
    """Steps in flight at once."""
    replan_breadth: float = Field(default=0.5, ge=0, le=1)
    """A rewrite that would redo more than this share of the plan becomes a replan (seed 2)."""
    backoff: float = Field(default=0.5, ge=0)
    """Seconds before the first retry; doubled for each next one."""
    backoff_cap: float = Field(default=30.0, ge=0)


class Ledger(Value):
    """What the run has spent; lives in checkpointed state and survives a resume."""

    run: int = 1
    """Number of the run on this thread."""
    planner_calls: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0
    moves: int = 0
    barren: int = 0
    verified: int = 0
    """Artifacts newly verified: the only measure of progress."""
    verified_at_replan: int = -1
    """`verified` when the last replan was ordered; -1 before the first."""
    retry: dict[str, int] = Field(default_factory=dict)
    """Retries by step key; likewise the next two."""
    patch: dict[str, int] = Field(default_factory=dict)
    rewrite: dict[str, int] = Field(default_factory=dict)
    replan: int = 0
    escalate: int = 0
    failures: dict[str, str] = Field(default_factory=dict)
    """Failure fingerprint -> highest rung taken for it; a repair that brings it back made no progress."""
    tried: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Step key -> digests of calls proven wrong; a patch may not choose one of them again."""

    def add(self, **spent: float) -> "Ledger":
        """The ledger with amounts added to the named counters."""
        return self.model_copy(update={name: getattr(self, name) + amount for name, amount in spent.items()})


class Stop(Value):
    """A hard bound that was reached."""

    limit: str
    allowed: float
    spent: float

    def __str__(self) -> str:
        return f"{self.limit} limit reached: {self.spent:g} of {self.allowed:g}"


_HARD = ("planner_calls", "model_calls", "tool_calls", "tokens", "seconds", "steps", "moves")


def stopped(limits: Limits, ledger: Ledger) -> Stop | None:
    """The first hard bound that is used up, if any."""
    for name in (*_HARD, "barren"):
        allowed, spent = getattr(limits, name), getattr(ledger, name)
        if spent >= allowed:
            return Stop(limit=name, allowed=allowed, spent=spent)
    return None

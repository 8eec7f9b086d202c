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
    """Retries of all steps together; those of an endpoint that asked everybody to wait count once."""
    patches_per_run: PositiveInt = 50
    """Patches of all steps together."""
    rewrites_per_run: PositiveInt = 20
    """Rewrites of all steps together."""
    planner_calls: PositiveInt = 20
    """Plans and replans asked of a model or a planner of your own."""
    classifier_calls: PositiveInt = 100
    """Failures that no rule knew, judged by a model."""
    repairer_calls: PositiveInt = 100
    """Patches and rewrites asked of a model."""
    executor_turns: PositiveInt = 1_000
    """Model turns of all steps together; `turns` bounds one attempt."""
    judge_calls: PositiveInt = 100
    """Sentences judged by a model, each with its re-asks."""
    tool_calls: PositiveInt = 10_000
    """Calls sent to tools, probes not counted."""
    tokens: PositiveInt = 2_000_000
    """In and out, of all roles together."""
    planner_tokens_in: PositiveInt = 1_000_000
    """Tokens the planner reads; the replanner's among them."""
    planner_tokens_out: PositiveInt = 200_000
    """Tokens the planner writes."""
    classifier_tokens_in: PositiveInt = 500_000
    """Tokens the classifier reads."""
    classifier_tokens_out: PositiveInt = 100_000
    """Tokens the classifier writes."""
    repairer_tokens_in: PositiveInt = 500_000
    """Tokens the repairer reads."""
    repairer_tokens_out: PositiveInt = 100_000
    """Tokens the repairer writes."""
    judge_tokens_in: PositiveInt = 500_000
    """Tokens the judge reads."""
    judge_tokens_out: PositiveInt = 100_000
    """Tokens the judge writes."""
    executor_tokens_in: PositiveInt = 2_000_000
    """Tokens the executor reads."""
    executor_tokens_out: PositiveInt = 500_000
    """Tokens the executor writes."""
    money: PositiveFloat = 100.0
    """In the currency of the price table; what nobody priced costs nothing."""
    seconds: PositiveFloat = 24 * 3600.0
    """Wall clock of one run, waiting for a person not counted."""
    steps: PositiveInt = 5_000
    """Attempts started."""
    moves: PositiveInt = 50_000
    """Rounds of the loop: nothing may go round for ever."""
    supersteps: PositiveInt = 250_000
    """LangGraph's super-steps, of every phase node together."""
    barren: PositiveInt = 25
    """Failed attempts in a row without a newly verified artifact."""
    turns: PositiveInt = 12
    """Model turns inside one ReAct step."""
    depth: PositiveInt = 2
    """How deep a step may be split into smaller ones."""
    parallel: PositiveInt = 64
    """Steps in flight at once."""
    replan_breadth: float = Field(default=0.5, ge=0, le=1)
    """A rewrite that would redo more than this share of the plan becomes a replan (seed 2)."""
    backoff: float = Field(default=0.5, ge=0)
    """Seconds before the first retry; doubled for each next one."""
    backoff_cap: float = Field(default=30.0, ge=0)
    """Longest wait before a retry, in seconds, where no server asks for more."""


class Ledger(Value):
    """What the run has spent; lives in checkpointed state and survives a resume."""

    run: int = 1
    """Number of the run on this thread."""
    planner_calls: int = 0
    classifier_calls: int = 0
    repairer_calls: int = 0
    executor_turns: int = 0
    judge_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    planner_tokens_in: int = 0
    planner_tokens_out: int = 0
    classifier_tokens_in: int = 0
    classifier_tokens_out: int = 0
    repairer_tokens_in: int = 0
    repairer_tokens_out: int = 0
    judge_tokens_in: int = 0
    judge_tokens_out: int = 0
    executor_tokens_in: int = 0
    executor_tokens_out: int = 0
    models: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Role -> names under which its models have answered, the first few."""
    tokens_estimated: int = 0
    """Those among `tokens` that nobody told: counted from the text."""
    money: float = 0.0
    seconds: float = 0.0
    steps: int = 0
    moves: int = 0
    supersteps: int = 0
    barren: int = 0
    verified: int = 0
    """Artifacts newly verified: the only measure of progress."""
    verified_at_replan: int = -1
    """`verified` when the last replan was ordered; -1 before the first."""
    verified_at_rewrite: dict[str, int] = Field(default_factory=dict)
    """Failure fingerprint -> `verified` when a rewrite was last ordered for it."""
    retry: dict[str, int] = Field(default_factory=dict)
    """Retries by step key; likewise patches and rewrites."""
    together: int = 0
    """Retries among them that went along with the rest of an endpoint: they count for the step, not for the run."""
    patch: dict[str, int] = Field(default_factory=dict)
    rewrite: dict[str, int] = Field(default_factory=dict)
    replan: int = 0
    escalate: int = 0
    failures: dict[str, str] = Field(default_factory=dict)
    """Failure fingerprint -> highest rung taken for it; a repair that brings it back made no progress."""
    tried: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Step key -> digests of calls proven wrong; a patch may not choose one of them again."""

    endpoints: dict[str, str] = Field(default_factory=dict)
    """Tool -> the host it was seen to call, or its own name; empty text stands for the model of a step."""
    cooldowns: dict[str, float] = Field(default_factory=dict)
    """Endpoint -> until when nobody calls it, in seconds since the epoch."""

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


ROLES = ("planner", "classifier", "repairer", "executor", "judge")
CALLS = ("planner_calls", "classifier_calls", "repairer_calls", "executor_turns", "judge_calls")
"""The counter of each role's model calls, in the order of `ROLES`."""
_TOKENS = tuple(f"{role}_tokens_{way}" for role in ROLES for way in ("in", "out"))
HARD = (*CALLS, "tool_calls", "tokens", *_TOKENS, "money", "seconds", "steps", "moves", "supersteps", "barren")
"""Bounds that end a run; rungs have budgets of their own and end nothing."""


def stopped(limits: Limits, ledger: Ledger) -> Stop | None:
    """The first hard bound that is used up, if any."""
    for name in HARD:
        allowed, spent = getattr(limits, name), getattr(ledger, name)
        if spent >= allowed:
            return Stop(limit=name, allowed=allowed, spent=spent)
    return None

"""What does the report page say? Plain values, already in words; nothing here knows HTML."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import Field

from agent.core.control import Question
from agent.core.goal import Goal
from agent.core.limits import Ledger, Limits
from agent.core.outcome import Outcome
from agent.core.plan import Plan
from agent.core.record import TraceRecord
from agent.core.value import Value
from agent.core.world import World
from agent.trace.costs import Paid


@dataclass(frozen=True)
class Material:
    """All that a report is made of: a thread's state, and how it stands."""

    thread: str
    standing: str
    """`running`, `stopped`, `waiting`, or the status of the outcome."""
    goal: Goal = field(default_factory=Goal)
    plan: Plan = field(default_factory=Plan)
    world: World = field(default_factory=World)
    trace: Sequence[TraceRecord] = ()
    ledger: Ledger = field(default_factory=Ledger)
    limits: Limits = field(default_factory=Limits)
    """What is allowed, with what a person has granted."""
    outcome: Outcome | None = None
    questions: Sequence[Question] = ()
    """Those that are open."""
    again: str = ""
    """The command that goes on with the thread."""


class Cell(Value):
    """One step in one revision of the plan, as it stood when the next revision was drawn."""

    status: str
    change: str = "kept"
    """What the revision did with it: `kept`, `again`, `found` (to be done again, and seen to be there), `new`,
    `dropped`."""
    tries: int = 0
    broke: bool = False
    """Its failure led to the next revision."""


class Drawn(Value):
    """One revision of the plan."""

    revision: int
    at: float
    """Seconds since the start."""
    why: str
    cells: dict[str, Cell]
    """By step id: live steps, and those just dropped."""


class StepLine(Value):
    """One step, over all revisions."""

    id: str
    intent: str
    does: str
    """The tool it calls, or that a model carries it out."""
    makes: tuple[str, ...]
    reads: tuple[str, ...]
    after: tuple[str, ...]
    """Ids of the steps it waits for, without those that these wait for already."""
    status: str
    reason: str = ""
    tries: int = 0
    story: str = ""
    """What the revisions did with it, in words."""
    bundle: str = ""
    """Steps that may be drawn as one share it; empty: there is something to tell, and it stands alone."""


class Bar(Value):
    """One attempt, on the axis of the timeline."""

    number: int
    start: float
    """Seconds on the axis; likewise the next two."""
    seconds: float
    wait: float = 0.0
    """Seconds it waited before it."""
    fate: str
    """`done`, `failed`, `found` (the effect was there), `open` (nothing came back)."""
    critical: bool = False
    said: str = ""


class Row(Value):
    """One step on the timeline."""

    step: str
    intent: str
    bars: tuple[Bar, ...]


class Timeline(Value):
    """Attempts against the critical path."""

    rows: tuple[Row, ...] = ()
    seconds: float = 0.0
    """Length of the axis: wall clock, less pauses in which nothing ran."""
    paused: float = 0.0
    """Seconds of those pauses."""
    critical: float = 0.0
    """Seconds of work on the longest chain of the plan."""
    chain: tuple[str, ...] = ()
    """Intents of its steps, first one first."""
    left_out: int = 0
    """Rows that are not shown."""


class Redone(Value):
    """One step that a recovery had done again, or anew."""

    step: str
    intent: str
    why: str
    came: str
    """What came of it."""
    stood: bool = False
    """It was looked at, and its effect was there: nothing was made again."""


class Mended(Value):
    """One recovery: what failed, what it proved false, the rung, what was kept, what was redone, what it cost."""

    number: int
    at: float
    rung: str
    start: str
    """The rung where the climb began."""
    passed: tuple[tuple[str, str], ...] = ()
    """Rungs that were passed over, each with the reason."""
    about: str
    """What the failed step makes."""
    intent: str = ""
    failed: str
    """How it failed, verbatim."""
    trigger: str
    proved: str
    origin: str
    rule: str
    doubted: tuple[str, ...] = ()
    """Artifacts that were not trusted any more."""
    done: str
    """What was changed."""
    kept: tuple[str, ...] = ()
    """Verified artifacts that were there and were not made again."""
    redone: tuple[Redone, ...] = ()
    along: tuple[tuple[str, str], ...] = ()
    """Failures that went along with it: about what, and how it failed."""
    cost: str


class Source(Value):
    """An input that an artifact was made from."""

    name: str
    version: str
    current: bool
    """Whether that is still the content under this name."""


class Made(Value):
    """One artifact with its provenance."""

    name: str
    version: int
    digest: str
    size: int
    holds: bool
    doubt: str = ""
    """Why it does not hold."""
    maker: str
    sources: tuple[Source, ...] = ()
    by: str
    """By what it was verified."""
    checks: tuple[tuple[str, str], ...] = ()
    """Each predicate with its verdict."""
    assumed: tuple[str, ...] = ()
    preview: str = ""


class Spent(Value):
    """One budget."""

    name: str
    spent: float
    allowed: float
    whole: bool = True
    """Counted in whole numbers."""


class Posed(Value):
    """One question to a person, and what they said."""

    id: str
    question: str
    answer: str = ""
    """Empty while it is open."""
    learned: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


class Graded(Value):
    """A want or criterion of the goal, with its verdict."""

    says: str
    verdict: str
    reason: str = ""


class Told(Value):
    """One line of the trace."""

    at: float
    keyword: str
    said: str


class Report(Value):
    """The whole page."""

    thread: str
    title: str
    standing: str
    outcome: str
    """One sentence."""
    numbers: tuple[tuple[str, str], ...]
    """What to know at a glance: a figure and what it is of."""
    next: str = ""
    """What can be done now."""
    mended: tuple[Mended, ...] = ()
    drawn: tuple[Drawn, ...] = ()
    steps: tuple[StepLine, ...] = ()
    timeline: Timeline = Timeline()
    paid: tuple[Paid, ...] = ()
    budgets: tuple[Spent, ...] = ()
    artifacts: tuple[Made, ...] = ()
    asked: tuple[Posed, ...] = ()
    grades: tuple[Graded, ...] = ()
    unfinished: tuple[tuple[str, str], ...] = ()
    """What is not done, each with the reason."""
    told: tuple[Told, ...] = ()
    left_out: dict[str, int] = Field(default_factory=dict)
    """How much of each part is not shown."""

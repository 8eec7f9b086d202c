"""The ports: what the phase nodes may ask of the outside. Everything behind them can be replaced in tests."""

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol

from pydantic import Field

from agent.core.contract import ToolContract
from agent.core.failure import ErrorFacts, Scope
from agent.core.goal import OCCASION, Criterion, Goal
from agent.core.limits import Limits
from agent.core.move import PlanOrder
from agent.core.plan import Call, Inquiry, Step, StepId
from agent.core.predicate import Judgement
from agent.core.provenance import Sources, Suspicion
from agent.core.spending import Usage as Usage  # re-exported: every answer of a port carries one
from agent.core.value import ArtifactName, Digest, JsonValue, Value

View = Mapping[ArtifactName, JsonValue]


class PlanRequest(Value):
    """All that a planner may see: the goal, what is done, what was falsified. Never the transcript."""

    goal: Goal
    order: PlanOrder
    contracts: dict[str, ToolContract] = Field(default_factory=dict)
    """By tool name."""
    present: dict[ArtifactName, str] = Field(default_factory=dict)
    """Artifacts that hold, each with a short preview."""
    done: tuple[str, ...] = ()
    """Intents of finished steps, with what they made."""
    hints: tuple[str, ...] = ()
    """What a person said about steps, each with what the step makes."""
    wants: tuple[ArtifactName, ...] = ()
    """What to make: the goal's artifacts, or the products of a region to rewrite."""
    depth: int = Limits().depth
    """Most levels that a step may be split into, as it is allowed now."""
    alone: bool = False
    """The goal deserves no plan: one step is to do all of it."""
    region: bool = False
    """A rewrite of a part, not a plan for the whole goal."""
    before: tuple[Step, ...] = ()
    """The live steps of the plan that is redrawn. For checking drafts against; a model never sees them."""


class PlanDraft(Value):
    """A planner's answer: steps under the planner's own ids, and, for a free-text goal, what it means."""

    steps: tuple[Step, ...]
    planner: str
    wants: tuple[ArtifactName, ...] = ()
    """For a goal that was only text: the artifacts that answer it."""
    criteria: tuple[Criterion, ...] = ()
    usage: Usage = Usage()
    nudges: tuple[str, ...] = ()
    """What the planner was told about drafts that were no plan."""


class PlanningFailed(ValueError):
    """The planner gave nothing valid within its re-asks; the message says what was wrong with the last draft."""

    def __init__(self, reason: str, usage: Usage = Usage(), nudges: tuple[str, ...] = ()) -> None:  # noqa: B008 - frozen value
        super().__init__(reason)
        self.usage = usage
        self.nudges = nudges


class NoProgress(PlanningFailed):
    """The planner has nothing but what failed already: another plan of the same shape cannot help."""


class Planner(Protocol):
    """Draws steps for a goal.

    Raises (from `draw`):
        Unreachable: with the needs no tool can produce.
        PlanningFailed: when no valid draft came about.
    """

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw steps for what the request wants."""
        ...


class PatchView(Value):
    """All that a patch may see (seed 1): the intent, the exact arguments, the verbatim error, the schema."""

    intent: str
    tool: str
    args: dict[str, JsonValue]
    """As sent, references resolved."""
    template: dict[str, JsonValue]
    """As planned, references unresolved."""
    error: ErrorFacts
    hint: str = ""
    """What a person said about the step."""
    tool_schema: dict[str, JsonValue]


class ProposedCall(Value):
    """A patcher's answer; None when it sees no other way to express the intent."""

    call: Call | None
    usage: Usage = Usage()


class Patcher(Protocol):
    """Proposes another call for one step."""

    async def propose(self, view: PatchView) -> ProposedCall:
        """Another call for the same intent."""
        ...


class ScopeAnswer(Value):
    """A classifier model's answer, out of the closed set."""

    scope: Scope | None
    """None: it gave no valid answer."""
    usage: Usage = Usage()


class ScopeModel(Protocol):
    """Says what an error proves false when the table does not know."""

    async def scope(self, intent: str, tool: str, error: ErrorFacts) -> ScopeAnswer:
        """What the error proves false."""
        ...


class RulingAnswer(Value):
    """A judge's answer to one sentence."""

    said: str | None
    """None: it gave no valid answer."""
    evidence: str = ""
    """What shows it, or why there is no answer."""
    usage: Usage = Usage()


class Judge(Protocol):
    """Says whether a sentence holds that no predicate can decide."""

    async def rule(self, sentence: str, about: str, view: View) -> RulingAnswer:
        """Judge it.

        Args:
            sentence: the criterion.
            about: the goal in words.
            view: all that it may be judged by.
        """
        ...


class Result(Value):
    """What one attempt of a step came to: a failure is data, never an exception."""

    how: Literal["called", "recorded", "adopted", "turns"] = "called"
    """`recorded`: the journal had the outcome. `adopted`: the effect was seen in the world."""
    value: JsonValue = None
    """What the probe saw where there is one, else what was returned; by product name if there are several."""
    stored: Digest | None = None
    """Set when the value was too large for state: it lies in the artifact store under this digest."""
    judgements: tuple[Judgement, ...] = ()
    """What the step's effects came to, over exactly what was read and seen."""
    by: tuple[str, ...] = ()
    """On what they rest: `result`, `predicate`, `probe`."""
    error: ErrorFacts | None = None
    predicate: str = ""
    """The effect that was not verified, if that is the error."""
    seen: Digest | None = None
    """Digest of what the probe saw, when one looked."""
    moved: bool = False
    """What it read was another before and after: what was seen may be out of date already."""
    asks: tuple[Call, ...] = ()
    """Calls that need a person's word first; the attempt has ended before them, and is no failure."""
    inquiries: tuple[Inquiry, ...] = ()
    """What its calls ask a person; the attempt has ended there, and is no failure either."""
    tool_calls: int = 0
    money: float = 0.0
    """What its tool calls cost by their contracts; a model's turns are in `usage`."""
    usage: Usage = Usage()
    nudges: tuple[str, ...] = ()
    """What the model was told about how it goes on."""
    withheld: tuple[Suspicion, ...] = ()
    """Calls of the inner loop that were not made, because their arguments came from nowhere."""
    notes: tuple[str, ...] = ()
    """What of the values could not be kept as it was, and how it is kept instead."""


class Attempt(Value):
    """A finished try of a step, on its way to the verifier; `Step` holds what is durable about it."""

    step: StepId
    number: int
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """As planned, references unresolved."""
    inputs: dict[ArtifactName, Digest] = Field(default_factory=dict)
    """Exactly what it read, when it started."""
    tick: int = 0
    """`World.tick` when it started."""
    result: Result
    seconds: float = 0.0


class Task(Value):
    """What a runner needs to know to try a step."""

    thread: str
    step: Step
    args: dict[str, JsonValue]
    """References resolved."""
    inputs: dict[ArtifactName, JsonValue]
    """Bodies of all the artifacts the step reads."""
    facts: dict[str, JsonValue]
    sources: Sources = Sources()
    """What the arguments of an inner loop's writes may come from."""
    informed: bool = False
    """Whether the inner loop is shown what tools gave before it has called any."""
    allowed: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """Calls that a person has allowed, by identity, each with the arguments they changed."""
    look_first: bool = False
    """The artifact was made before: look whether its effect still stands before doing it again."""
    kin: tuple[StepId, ...] = ()
    """Steps of the plan, superseded ones among them, that were to make the same."""
    made_before: bool = False
    """It was made from these very inputs once, perhaps by another call."""
    anew: bool = False
    """What stands was made from other inputs, so that it is out of date whatever its promise says."""
    fence: int | None = None
    """Token of the thread's lease: a run that has lost it begins nothing more."""
    start: str = ""
    """Identity of this start of the step: what it was given and when. Turns are kept under it, for a resume."""
    alone: bool = True
    """Whoever held the thread before has ended. Otherwise they may be in the middle of a call, and what cannot be
    seen now may come about any moment."""

    @property
    def again(self) -> bool:
        """Whether the goal wants it done anew, so that what stands from before proves nothing."""
        return self.step.repetition >= OCCASION


class Said(Value):
    """What was said in an attempt so far."""

    talk: Any
    """As the inner loop spells it, in JSON."""
    kept: dict[str, JsonValue] = Field(default_factory=dict)
    """Results that the model has seen in part only, by handle."""
    told: bool = False
    """A tool has told the model something."""


class Diary(Protocol):
    """The turns of one attempt, for the process that goes on with it."""

    begun: Said | None
    """What it had come to when it was broken off."""

    async def keep(self, said: Said) -> None:
        """Keep all that was said until now.

        Raises:
            Superseded: another run has taken the thread over.
        """
        ...


class Turns(Protocol):
    """The turns of attempts that are under way."""

    async def of(self, task: Task) -> Diary:
        """The diary of an attempt."""
        ...

    async def sweep(self, thread: str, running: Collection[str] = (), fence: int | None = None) -> None:
        """Drop the turns of all steps of a thread but those that are running.

        Raises:
            Superseded: another run has taken the thread over.
        """
        ...


class StepRunner(Protocol):
    """Carries out one attempt of a step: a direct call, or the inner ReAct loop."""

    async def run(self, task: Task) -> Result:
        """Try once; never throws."""
        ...


class Observation(Value):
    """What a probe saw: a value, or that nothing is there, or that it could not look."""

    value: JsonValue = None
    error: ErrorFacts | None = None


class Prober(Protocol):
    """Looks at the artifact of a tool again; None when the tool has no probe."""

    async def look(self, tool: str, args: dict[str, JsonValue]) -> Observation | None:
        """What is there now."""
        ...


class Letter(Value):
    """A changed goal, numbered: it stays in the inbox until a checkpoint says that it was heard."""

    number: int
    goal: Goal


class Inbox(Protocol):
    """Goal changes that arrive while a run is going on."""

    async def newer(self, thread: str, heard: int) -> Letter | None:
        """The last letter after number `heard`, if there is one; those up to it may be thrown away."""
        ...


class Clock(Protocol):
    """Time, and waiting for it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def jitter(self) -> float:
        """A random share from 0 to 1, so that parallel steps do not come back together."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

"""What may happen next, as values: a closed union of moves. The core decides on one, the shell carries it out."""

from typing import Annotated, Literal

from pydantic import Field

from agent.core.control import Cause
from agent.core.failure import Failure, Trigger
from agent.core.limits import Stop
from agent.core.outcome import OutcomeStatus
from agent.core.phase import Phase
from agent.core.plan import StepId
from agent.core.value import ArtifactName, Value


class PlanOrder(Value):
    """A request to the planner: why, and what was falsified. Explicitly naming it makes a replan no reroll."""

    trigger: Trigger
    reason: str = ""
    falsified: tuple[str, ...] = ()
    """Predicates and artifacts that turned out to be untrue."""
    failure: Failure | None = None
    cause: Cause | None = None
    """The recovery that ordered it."""


class Draw(Value):
    """Ask the planner."""

    move: Literal["draw"] = "draw"
    order: PlanOrder


class Look(Value):
    """Observe mirrored artifacts again before anything relies on them."""

    move: Literal["look"] = "look"
    names: tuple[ArtifactName, ...]


class Rule(Value):
    """Have a criterion judged that no predicate can decide: everything else is verified."""

    move: Literal["rule"] = "rule"
    criterion: str
    """Its id."""


class Start(Value):
    """Start steps; with `wait` the executor then waits for the first to finish, else there is more to decide first."""

    move: Literal["start"] = "start"
    steps: tuple[StepId, ...]
    wait: bool = True


class Wait(Value):
    """Nothing to start; wait for something in flight."""

    move: Literal["wait"] = "wait"
    reason: str = ""


class Broken(Value):
    """Something is wrong that no running step can mend: classify it."""

    move: Literal["broken"] = "broken"
    failures: tuple[Failure, ...]


class Ask(Value):
    """Everything else is done or waits for a person: ask."""

    move: Literal["ask"] = "ask"


class Pause(Value):
    """Stop here, on request; the run can go on from here."""

    move: Literal["pause"] = "pause"
    reason: str = ""


class Finish(Value):
    """End the run."""

    move: Literal["finish"] = "finish"
    status: OutcomeStatus
    reason: str = ""
    stop: Stop | None = None
    """The bound that was reached, if that is why."""
    proof: tuple[str, ...] = ()


Move = Annotated[Draw | Look | Rule | Start | Wait | Broken | Ask | Pause | Finish, Field(discriminator="move")]

LEADS_TO: dict[str, Phase] = {
    "draw": Phase.PLANNER,
    "look": Phase.VERIFIER,
    "rule": Phase.VERIFIER,
    "start": Phase.EXECUTOR,
    "wait": Phase.EXECUTOR,
    "broken": Phase.CLASSIFIER,
    "ask": Phase.ESCALATOR,
    "pause": Phase.EXECUTOR,  # where it goes on
    "finish": Phase.FINISHER,
}
"""The phase that carries out each kind of move."""

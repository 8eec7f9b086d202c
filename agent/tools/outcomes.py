"""What is known about one mutating call beside its answer: its identity, its effect after an error, its loss."""

from agent.core.classification import classify
from agent.core.effect import EffectIdentity, Open
from agent.core.failure import Effect, ErrorFacts, Failure, Trigger
from agent.core.value import JsonValue, digest
from agent.ports import Observation, Task


def is_harmless_anew(task: Task) -> bool:
    """Whether what stands is out of date and may simply be made again: whatever it looks like, it is no success."""
    return task.anew and task.step.idempotent


def identity(task: Task, tool: str, args: dict[str, JsonValue]) -> EffectIdentity:
    """Tool, canonical arguments and repetition, scoped to the thread: no step id, no plan revision."""
    return EffectIdentity(thread=task.thread, tool=tool, args_digest=digest(args), repetition=task.step.repetition)


def effect_after(error: ErrorFacts, task: Task, tool: str) -> Effect:
    """What an error proves about the effect of the call."""
    failure = Failure(trigger=Trigger.TASK_FAILURE, tool=tool, error=error, reads=tuple(sorted(task.inputs)))
    known = classify(failure, mutating=True, view=task.inputs)
    return known.effect if known else Effect.UNKNOWN


def lost(tool: str, begun: Open, seen: Observation | None) -> ErrorFacts:
    """A call whose outcome nobody can find out, and why not."""
    why = "nothing can observe its effect"
    if seen is not None:
        why = f"its probe failed: {seen.error.message}" if seen.error else "what is there is not what was expected"
    return ErrorFacts(kind="lost", message=f"{tool} was begun in step {begun.step} and its outcome is unknown: {why}")

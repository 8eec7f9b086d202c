"""Which effect is meant, and what is known of it after a call that failed? Questions of the journal's bracket."""

from agent.core.classification import classify
from agent.core.effect import EffectIdentity, Open
from agent.core.failure import Effect, ErrorFacts, Failure, Trigger
from agent.core.value import JsonValue, digest
from agent.ports import Observation, Result, Task


def is_harmless_anew(task: Task) -> bool:
    """Whether what stands is out of date and may simply be made again: whatever it looks like, it is no success."""
    return task.anew and task.step.idempotent


def identity_of(task: Task, tool: str, args: dict[str, JsonValue]) -> EffectIdentity:
    """Tool, canonical arguments and repetition, scoped to the thread: no step id, no plan revision."""
    return EffectIdentity(thread=task.thread, tool=tool, args_digest=digest(args), repetition=task.step.repetition)


def effect_after(error: ErrorFacts, task: Task, tool: str) -> Effect:
    """What an error says about the effect of a mutating call."""
    failure = Failure(trigger=Trigger.TASK_FAILURE, tool=tool, error=error, reads=tuple(sorted(task.inputs)))
    known = classify(failure, mutating=True, view=task.inputs)
    return known.effect if known else Effect.UNKNOWN


def lost(tool: str, begun: Open, seen: Observation | None) -> ErrorFacts:
    """That a call was begun and nothing tells how it ended."""
    why = "nothing can observe its effect"
    if seen is not None:
        why = f"its probe failed: {seen.error.message}" if seen.error else "what is there is not what was expected"
    return ErrorFacts(kind="lost", message=f"{tool} was begun in step {begun.step} and its outcome is unknown: {why}")


def failed(error: ErrorFacts) -> Result:
    """A call that failed, as the result of an attempt."""
    return Result(error=error, tool_calls=1)

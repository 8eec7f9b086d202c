"""What is known about one mutating call beside its answer: its identity, its effect after an error, its loss."""

from collections.abc import Sequence

from agent.core.classification import classify
from agent.core.effect import EffectIdentity, Open
from agent.core.failure import Classified, Effect, ErrorFacts, Failure, Scope, Trigger
from agent.core.spelling import Schema, as_meant
from agent.core.value import JsonValue, digest
from agent.ports import Observation, Task
from agent.tools.checking import sees_nothing


def is_harmless_anew(task: Task) -> bool:
    """Whether what stands is out of date and may simply be made again: whatever it looks like, it is no success."""
    return task.anew and task.step.idempotent


def identity(task: Task, tool: str, args: dict[str, JsonValue], schema: Schema) -> EffectIdentity:
    """Tool, arguments as they are meant, and repetition, scoped to the thread: no step id, no plan revision."""
    meant = as_meant(args, schema)
    return EffectIdentity(thread=task.thread, tool=tool, args_digest=digest(meant), repetition=task.step.repetition)


def effect_after(error: ErrorFacts, task: Task, tool: str) -> Effect:
    """What an error proves about the effect of the call."""
    known = _classified(error, task, tool)
    return known.effect if known else Effect.UNKNOWN


def looked_after(error: ErrorFacts, seen: Observation | None, task: Task, tool: str) -> ErrorFacts:
    """The error with what a look after it has shown: nothing, of a call that is over.

    What timed out or was cut off may still be under way, and act after the look.
    """
    known = _classified(error, task, tool)
    over = known is None or known.scope is not Scope.NOTHING
    return error.model_copy(update={"nothing_there": over and sees_nothing(seen)})


def lost(tool: str, begun: Open, seen: Observation | None) -> ErrorFacts:
    """A call whose outcome nobody can find out, and why not."""
    why = "nothing can observe its effect"
    if seen is not None and seen.error:
        why = f"its probe failed: {seen.error.message}"
    elif seen is not None and seen.value is None:
        why = "its effect is not there, but the process that began it was only stopped, and may still act"
    elif seen is not None:
        why = "what is there is not what was expected"
    return ErrorFacts(kind="lost", message=f"{tool} was begun in step {begun.step} and its outcome is unknown: {why}")


def undecided(tool: str, before: Sequence[EffectIdentity]) -> ErrorFacts:
    """Why a write of an inner loop is not made: others for the same products may have happened."""
    first = before[0].tool
    said = f"{tool} was not called: an earlier call of {first} to the same end may have happened. Look, or give up"
    return ErrorFacts(kind="lost", message=said, lost=tuple(each.call for each in before))


def made_otherwise(tool: str) -> ErrorFacts:
    """Why a write is not made: its end was reached before, by a call with other arguments."""
    said = "the same was made from the same inputs before, by another call, and may stand; this would be the second"
    return ErrorFacts(kind="lost", message=f"{tool} was not called: {said}")


def overtaken(tool: str, before: str) -> ErrorFacts:
    """Why a write is not made in place of another, which went through after all."""
    said = f"an earlier call of {before}, with other arguments, went through after its time; this would be the second"
    return ErrorFacts(kind="lost", message=f"{tool} was not called: {said}")


def _classified(error: ErrorFacts, task: Task, tool: str) -> Classified | None:
    failure = Failure(trigger=Trigger.TASK_FAILURE, tool=tool, error=error, reads=tuple(sorted(task.inputs)))
    return classify(failure, mutating=True, view=task.inputs)

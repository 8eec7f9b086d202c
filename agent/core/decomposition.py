"""Does splitting a step help? Three independent stops against planning for ever (seed 4).

Too deep: two levels are enough. Trivial: one sub-step is the step itself. No reduction: a part as large as the
whole leaves the same problem one level down.
"""

from collections.abc import Iterable, Iterator

from agent.core.plan import Step, upstream
from agent.core.repetition import alike
from agent.core.value import ArtifactName, Value


class Split(Value):
    """A step, and the steps that are drawn in its place."""

    of: Step
    into: tuple[Step, ...]
    depth: int
    """Levels of the parts below the plan's own steps, which are at 0."""
    redrawn: bool = False
    """The parts take the place of a step that broke; a planner that nests says both, the step and its parts."""


def split_faults(split: Split, most: int) -> Iterator[str]:
    """Why a split is refused, one sentence each; nothing when it helps."""
    name = repr(split.of.id)
    if split.depth > most:
        yield f"step {name} is split {split.depth} levels deep; at most {most}: do it in one step"
    if not split.redrawn:
        yield from _nested_faults(split, name)


def _nested_faults(split: Split, name: str) -> Iterator[str]:
    if split.of.call is not None:
        yield f"step {name} has a tool and sub-steps; give one of them"
    if len(split.into) == 1:
        yield f"step {name} is split into the one step {split.into[0].id!r}, which changes nothing; give that alone"
    for part in split.into:
        if len(split.into) > 1 and as_large(part, split.of):
            yield f"step {part.id!r} is as large as {name}, of which it is a part; the parts have to be simpler"
    made = {name for each in split.into for name in each.produces}
    for each in split.of.produces:
        if each not in made:
            yield f"step {name} makes {each!r}, and none of its sub-steps does"


def as_large(part: Step, whole: Step) -> bool:
    """Whether a part does all that the whole would: the same call or words, or the same tools to the same end."""
    if part.call is not None or whole.call is not None:
        return part.call == whole.call
    covers = set(whole.produces) <= set(part.produces) and set(whole.tools) <= set(part.tools)
    return _same_words(part, whole) or (bool(whole.produces and whole.tools) and covers)


def split_in_place(broken: Step, draft: tuple[Step, ...], others: Iterable[ArtifactName]) -> Split | None:
    """The split that a new draft makes of a step that broke; None when it makes it in one step, or prepares it.

    Args:
        broken: the step whose place is redrawn.
        draft: all that was drawn.
        others: what other steps of the old plan make; whoever makes that is no part of this one.
    """
    ends = {each.id for each in draft if set(each.produces) & set(broken.produces)}
    within = ends | upstream(draft, ends)
    parts = tuple(each for each in draft if each.id in within and not set(each.produces) & set(others))
    prepared = any(as_large(each, broken) for each in parts)  # the same step, after something that may help it
    return None if len(parts) < 2 or prepared else Split(of=broken, into=parts, depth=broken.depth + 1, redrawn=True)


def deepened(steps: tuple[Step, ...], split: Split | None) -> tuple[Step, ...]:
    """The steps, the parts of the split one level below what they stand for."""
    parts = {each.id for each in split.into} if split else set()
    depth = split.depth if split else 0
    return tuple(each.model_copy(update={"depth": depth}) if each.id in parts else each for each in steps)


def _same_words(part: Step, whole: Step) -> bool:
    return bool(whole.instruction) and alike(part.instruction, whole.instruction)

"""What do steps within steps come to? A plan is flat: the innermost steps are the plan's, the others only group them.

Nothing of a nested draft is dropped without a word; whether the nesting helps is for the plan check to say.
"""

from collections.abc import Iterator

from agent.models.drafts import DraftedStep

Levelled = tuple[DraftedStep, int]
"""A step, and the levels above it."""


def unnested(steps: tuple[DraftedStep, ...]) -> tuple[Levelled, ...]:
    """The innermost steps; whoever comes after a group comes after all of it."""
    innermost = tuple(_innermost(steps, 0, ()))
    groups = {each.id: tuple(leaf.id for leaf, _ in _innermost(each.steps, 0, ())) for each, _ in nesting(steps)}
    return tuple((_after(each, groups), depth) for each, depth in innermost)


def nesting(steps: tuple[DraftedStep, ...], depth: int = 1) -> Iterator[Levelled]:
    """Every step that has sub-steps, with the level they are on."""
    for each in steps:
        if each.steps:
            yield each, depth
            yield from nesting(each.steps, depth + 1)


def _innermost(steps: tuple[DraftedStep, ...], depth: int, after: tuple[str, ...]) -> Iterator[Levelled]:
    for each in steps:
        waits = (*after, *each.after)
        if each.steps:
            yield from _innermost(each.steps, depth + 1, waits)
        else:
            yield each.model_copy(update={"after": waits}), depth


def _after(step: DraftedStep, groups: dict[str, tuple[str, ...]]) -> DraftedStep:
    named = [leaf for each in step.after for leaf in groups.get(each, (each,))]
    return step.model_copy(update={"after": tuple(dict.fromkeys(named))})

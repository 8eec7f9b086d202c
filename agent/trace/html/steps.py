"""What is each step, and with which others is it drawn? Like steps are bundled, until a picture can be read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from agent.core.plan import Plan, Step, StepId, edges
from agent.trace.html.model import Drawn, StepLine
from agent.trace.html.revisions import story

DRAWABLE = 250
"""Nodes of a drawing; a larger one takes long to lay out, and nobody can read it."""

Needs = Mapping[StepId, frozenset[StepId]]


def step_lines(plan: Plan, drawn: Sequence[Drawn]) -> tuple[StepLine, ...]:
    """Every step of the plan."""
    needs = edges(plan.steps)
    levels = _levels(needs)
    direct = _direct(needs, levels)
    lines = [_line(each, direct.get(each.id, ()), drawn) for each in plan.steps]
    bundles = _bundles(lines, levels)
    return tuple(each.model_copy(update={"bundle": bundles[each.id]}) for each in lines)


def _line(step: Step, after: tuple[StepId, ...], drawn: Sequence[Drawn]) -> StepLine:
    return StepLine(
        id=step.id,
        intent=step.intent,
        does=step.call.tool if step.call else "a model, with tools",
        makes=step.produces,
        reads=tuple(sorted(step.reads())),
        after=after,
        status=step.status.value,
        reason=step.reason,
        tries=step.attempts,
        story=story(step.id, drawn) or ("tried again" if step.attempts > 1 else ""),
    )


def _bundles(lines: Sequence[StepLine], levels: Mapping[StepId, int]) -> dict[str, str]:
    """By step its bundle, empty for one that stands alone: as few as will do.

    No bundle reaches over a level that is not its own, so the drawing of the bundles has no cycle either.
    """
    coarse = max(1, -(-len(set(levels.values())) * 2 // DRAWABLE))

    def level(line: StepLine) -> int:
        return levels.get(StepId(line.id), 0)

    def is_quiet(line: StepLine) -> bool:
        return not line.story and line.status not in ("failed", "invalid")

    ways: Iterator[Callable[[StepLine], str]] = iter(
        (
            lambda line: f"{level(line)} {line.does}" if is_quiet(line) else "",
            lambda line: f"{level(line)}" if is_quiet(line) else "",
            lambda line: f"{level(line) // coarse} {is_quiet(line)}",
        )
    )
    for way in ways:
        found = {line.id: way(line) for line in lines}
        alone = sum(not each for each in found.values())
        if alone + len(set(found.values())) <= DRAWABLE:
            break
    return found


def _levels(needs: Needs) -> dict[StepId, int]:
    """How many steps are before each one, along the longest way; steps in a cycle have no level."""
    levels: dict[StepId, int] = {}
    remaining = dict(needs)
    while free := [step for step, before in remaining.items() if before <= levels.keys()]:
        reached = {step: max((levels[each] + 1 for each in remaining[step]), default=0) for step in free}
        levels |= reached
        for each in free:
            del remaining[each]
    return levels


def _direct(needs: Needs, levels: Mapping[StepId, int]) -> dict[StepId, tuple[StepId, ...]]:
    """By step what it waits for, less what it would wait for anyway: arrows that say nothing new hide the others."""
    bit = {step: 1 << index for index, step in enumerate(needs)}
    above: dict[StepId, int] = {}
    for step in sorted(levels, key=lambda each: levels[each]):
        above[step] = reduce(or_, (above[each] | bit[each] for each in needs[step]), 0)
    implied = {step: reduce(or_, (above[each] for each in needs[step]), 0) for step in above}
    return {step: tuple(sorted(e for e in needs[step] if not implied[step] & bit[e])) for step in above}

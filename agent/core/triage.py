"""How much machinery does a goal deserve? Decided from the goal and the tools alone; nobody is asked, it costs nothing.

A plan pays where there is something to keep track of (seeds 1 and 3). What is short and exploratory is better off
without one, and what is short and stands still needs none that can be redrawn.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from agent.core.chaining import chain
from agent.core.contract import Contracts, EffectClass
from agent.core.goal import Goal, wanted
from agent.core.limits import Limits
from agent.core.value import ArtifactName, Value

WORDS = 25
"""Most words of a text that counts as short."""
SENTENCES = 2
TOOLS = 6
"""Most tools that an inner loop can choose from without losing its way."""
STEPS = 3
"""Most steps of a plan that counts as short."""


class Strategy(StrEnum):
    """What is built for a goal, least first."""

    SINGLE = "single"
    """One step that an inner loop carries out; no planner. What breaks is planned after all."""
    ONE_PASS = "one_pass"
    """Planned once and verified; retry and patch are all that is done about a failure, then a person is asked."""
    FULL = "full"
    """The whole loop, with the whole ladder."""


class Signs(Value):
    """What is seen of a goal and of the tools for it."""

    stated: bool
    """It says what it wants, or what must hold."""
    words: int = 0
    sentences: int = 0
    tools: int = 0
    writes: bool = False
    """One of the tools changes the world."""
    chained: bool = False
    """One of them needs what another makes, or stands on a precondition: there is something to plan."""
    steps: int | None = None
    """Steps that contracts reach it in; None: they do not, or it was not worth looking."""
    still: bool = False
    """None of those steps writes, has a precondition or can be looked at again: nothing can move under them."""
    loop: bool = False
    """There is a model to carry out a step."""


class Triage(Value):
    """A strategy, and why."""

    strategy: Strategy
    reason: str
    signs: Signs
    asked: Strategy | None = None
    """What somebody demanded; it is done where it can be."""
    goal_revision: int = 1
    """The goal it is about: another one gets the whole loop until it is looked at."""


def triage(signs: Signs, asked: Strategy | None = None, goal_revision: int = 1) -> Triage:
    """Choose a strategy.

    Args:
        signs: what is seen.
        asked: what somebody demands; None: whatever fits.
        goal_revision: of the goal that the signs are of.
    """
    strategy, reason = _demanded(signs, asked) if asked else _fitting(signs)
    return Triage(strategy=strategy, reason=reason, signs=signs, asked=asked, goal_revision=goal_revision)


def signs_of(
    goal: Goal, contracts: Contracts, plannable: Contracts, present: Iterable[ArtifactName], loop: bool
) -> Signs:
    """Look at a goal.

    Args:
        goal: what success means.
        contracts: what all tools promise.
        plannable: those of them that somebody wrote.
        present: artifacts that hold.
        loop: whether there is a model to carry out a step.
    """
    reached = _reached(goal, plannable, present)
    made = {name for each in contracts.values() for name in each.produces}
    used = [contracts[each] for each in reached or ()]
    return Signs(
        stated=goal.stated or bool(goal.criteria),
        words=len(goal.text.split()),
        sentences=len(re.findall(r"[.!?;]+(?:\s|$)|\n+", goal.text.strip() + "\n")),
        tools=len(contracts),
        writes=any(each.effect is EffectClass.MUTATING for each in contracts.values()),
        chained=any(each.requires or made & set(each.needs) for each in contracts.values()),
        steps=None if reached is None else len(reached),
        still=not any(each.effect is EffectClass.MUTATING or each.requires or each.observable for each in used),
        loop=loop,
    )


def bounded(limits: Limits, chosen: Triage | None, goal: Goal) -> Limits:
    """What a run may use under its strategy: planned once is planned once."""
    if chosen is None or chosen.strategy is not Strategy.ONE_PASS or chosen.goal_revision != goal.revision:
        return limits
    return limits.model_copy(update={"rewrite": 0, "replan": 0})


def _demanded(signs: Signs, asked: Strategy) -> tuple[Strategy, str]:
    if asked is Strategy.SINGLE and not signs.loop:
        return Strategy.FULL, "a single step was asked for, and there is no model to carry it out"
    if asked is Strategy.SINGLE and signs.stated:
        return Strategy.FULL, "a single step was asked for, and the goal says what it wants: that is planned for"
    return asked, f"{asked} was asked for"


def _fitting(signs: Signs) -> tuple[Strategy, str]:
    if signs.stated:
        return _stated(signs)
    against = _against_a_single_step(signs)
    if against:
        return Strategy.FULL, against
    return Strategy.SINGLE, f"short and exploratory: {signs.words} words, and {signs.tools} tools that only read"


def _stated(signs: Signs) -> tuple[Strategy, str]:
    if signs.steps is None:
        return Strategy.FULL, "contracts do not say how many steps it takes"
    if signs.steps > STEPS:
        return Strategy.FULL, f"{signs.steps} steps are more than {STEPS}"
    if not signs.still:
        return (
            Strategy.FULL,
            "the world may move under its steps: one of them writes, has a precondition, or is watched",
        )
    return Strategy.ONE_PASS, f"static and short: {signs.steps} steps that only read, and nothing can move under them"


def _against_a_single_step(signs: Signs) -> str:
    """Why a text deserves a plan; empty when it does not."""
    if not signs.loop:
        return "there is no model to carry out a single step"
    if signs.words > WORDS or signs.sentences > SENTENCES:
        return f"its text is long: {signs.words} words, {signs.sentences} sentences"
    if signs.writes:
        return "one of the tools changes the world"
    if signs.chained:
        return "one of the tools needs what another makes"
    if not 0 < signs.tools <= TOOLS:
        return f"{signs.tools} tools are there, and not between 1 and {TOOLS}"
    return ""


def _reached(goal: Goal, plannable: Contracts, present: Iterable[ArtifactName]) -> tuple[str, ...] | None:
    """The tools of the shortest plan over contracts; None when there is none, or it may be of any length."""
    if not wanted(goal) or any(each.each for each in plannable.values()):
        return None
    try:
        steps = chain(wanted(goal), plannable, present, goal.given)
    except (LookupError, ValueError):
        return None
    return tuple(each.call.tool for each in steps if each.call)

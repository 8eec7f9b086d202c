"""Is this still the goal that was stated? Drift solves another, usually easier, problem (seed 4).

A goal changes only when who stated it changes it. A planner may say what a free text means, once; after that it
may neither word the goal anew, nor want something else, nor plan work that serves nothing of it.
"""

import re
from collections.abc import Iterable, Iterator

from agent.core.contract import EffectClass
from agent.core.goal import Goal
from agent.core.plan import Step, downstream, upstream
from agent.core.repetition import alike
from agent.core.value import ArtifactName, leaves

_NAMED = re.compile(
    r"""
    [\w.+-]+@[\w-]+\.[\w.-]*\w                                  # an address of mail
    | https?://[^\s<>"']+[\w/]
    | (?<![\w.])(?!\w\.\w\b)(?:~?/|\.\.?/)?(?:[\w-][\w.-]*/)*[\w-][\w.-]*\.(?!\d+\b)\w{1,5}\b(?!\()  # a file
    """,
    re.VERBOSE,
)


def restated(
    goal: Goal,
    stated: Iterable[ArtifactName],
    text: str = "",
    wants: Iterable[ArtifactName] = (),
    predicates: Iterable[str] = (),
) -> tuple[str, ...]:
    """How a draft words the goal otherwise than it was stated; one sentence each.

    Args:
        goal: as it was stated, or as a planner has completed it before.
        stated: all artifacts it reads; empty when it is only text, whose meaning the draft may give.
        text: the draft's words for the goal, if it has any.
        wants: what the draft says is wanted.
        predicates: what the draft says must hold at the end.
    """
    return (*_other_text(goal, text), *_other_meaning(goal, tuple(stated), tuple(wants), predicates))


def idle(steps: tuple[Step, ...], aims: frozenset[ArtifactName]) -> tuple[Step, ...]:
    """Steps that serve no want and no criterion: nothing the goal reads stands on them."""
    direct = frozenset(each.id for each in steps if aims & set(each.produces))
    useful = direct | upstream(steps, direct)
    return tuple(each for each in steps if each.id not in useful)


def second_looks(steps: tuple[Step, ...], aims: frozenset[ArtifactName]) -> tuple[Step, ...]:
    """Idle steps that only look at what is wanted once it is there: the verifier's work, which needs no step."""
    # whatever a draft's predicates say: they may be broken yet, and what is looked at is needed
    bare = tuple(each.model_copy(update={"preconditions": (), "effects": ()}) for each in steps)
    after = downstream(bare, frozenset(each.id for each in bare if aims & set(each.produces)))
    spare = {each.id for each in idle(bare, aims) if each.id in after and each.effect is EffectClass.READ_ONLY}
    return tuple(each for each in steps if each.id in spare)


def unspoken(text: str, steps: Iterable[Step]) -> tuple[str, ...]:
    """Files, addresses and mailboxes that a text names and no step speaks of: work that a draft has forgotten.

    A file is spoken of by its name or by its folder, in an argument or in an instruction.
    """
    said = "\n".join(_spoken(each) for each in steps).lower()
    named = dict.fromkeys(each.group() for each in _NAMED.finditer(text))
    return tuple(each for each in named if not any(part in said for part in _parts(each.lower())))


def _spoken(step: Step) -> str:
    args = step.call.args if step.call else {}
    return "\n".join((step.instruction, *(each for each in leaves(args) if isinstance(each, str))))


def _parts(name: str) -> tuple[str, ...]:
    """Ways to speak of it."""
    folder, _, last = name.rpartition("/")
    return (last, folder) if folder.strip("./~") and "://" not in name else (last or name,)


def _other_text(goal: Goal, text: str) -> Iterator[str]:
    if goal.text and text and not alike(text, goal.text):
        yield f"the goal is {goal.text!r}, and the draft words it as {text!r}; plan the goal as it was stated"


def _other_meaning(
    goal: Goal, stated: tuple[ArtifactName, ...], wants: tuple[ArtifactName, ...], predicates: Iterable[str]
) -> Iterator[str]:
    if not stated:
        return
    if wants and set(wants) not in (set(stated), set(goal.wants)):
        yield f"the goal wants {', '.join(stated)}, and the draft says {', '.join(wants)}; leave `wants` out"
    own = [each.predicate for each in goal.criteria if each.predicate]
    for each in predicates:
        if not any("".join(each.split()) == "".join(known.split()) for known in own):
            yield f"the criterion {each!r} is none of the goal's; leave `criteria` out"

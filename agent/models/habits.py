"""What do models write again and again that is no plan as it stands, and can mean one thing only?

It is read as it is meant: to have a draft drawn anew for the sake of a name costs as much as to plan.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count

from agent.core.value import ArtifactName, JsonValue, canonical
from agent.models.drafts import DraftedPlan, DraftedStep

_REFERENCE = re.compile(r"(\{\{\s*)([A-Za-z_]\w*)")
_READ = re.compile(r"(\bartifacts\.)([A-Za-z_]\w*)")
_FILTERED = re.compile(
    r"\{\{\s*([A-Za-z_][\w.]*)\s*\|\s*(?:to_?json|json|str|string|text|trim|safe)(?:\([^()]*\))?\s*\}\}"
)
_INDEXED = re.compile(r"\{\{\s*[A-Za-z_]\w*(?:\.\w+|\[\s*(?:\d+|'\w+'|\"\w+\")\s*\])+\s*\}\}")
_INDEX = re.compile(r"\[\s*['\"]?(\w+)['\"]?\s*\]")

Names = Mapping[ArtifactName, ArtifactName]


def as_meant(plan: DraftedPlan, fixed: frozenset[str]) -> DraftedPlan:
    """The draft with plain references, and with a name of its own for everything that is made.

    Args:
        plan: as the model filled it.
        fixed: tools whose contracts name what they make, which nothing here may change.
    """
    steps = tuple(each.model_copy(update={"args": _plainly(each.args)}) for each in plan.steps)
    plan = plan.model_copy(update={"steps": steps})
    made = Counter(name for each in steps for name in each.produces)
    again = {name for name, times in made.items() if times > 1}
    return _versioned(plan, again, fixed) if again and not any(each.steps for each in steps) else plan


def _versioned(plan: DraftedPlan, again: set[ArtifactName], fixed: frozenset[str]) -> DraftedPlan:
    """What is made more than once has its name from the last step on; each step reads what was made before it.

    Whoever makes it again comes after whoever made it before, also where nothing of that is read: both may write.
    """
    taken = {name for each in plan.steps for name in (*each.produces, *each.needs)}
    alike: dict[str, DraftedStep] = {}  # a step that is there twice is one, and no second version
    makers = [each for each in plan.steps if alike.setdefault(_spelled(each), each) is each and each.tool not in fixed]
    last = {name: each for each in makers for name in each.produces}
    latest: dict[ArtifactName, ArtifactName] = {}
    maker: dict[ArtifactName, str] = {}
    steps: list[DraftedStep] = []
    for each in plan.steps:
        own, before = dict(latest), list(each.after)
        for name in sorted(again & set(each.produces)) if any(each is other for other in makers) else ():
            own[name] = name if last[name] is each else _new(name, taken)
            taken.add(own[name])
            before += [maker[name]] if name in maker else []
            maker[name] = each.id
        renamed = _renamed(each, latest, own)
        steps.append(renamed.model_copy(update={"after": tuple(dict.fromkeys(before))}))
        latest = own
    return plan.model_copy(update={"steps": tuple(steps)})


def _spelled(step: DraftedStep) -> str:
    return canonical([step.tool, step.args, step.instruction, list(step.produces)])


def _renamed(step: DraftedStep, before: Names, after: Names) -> DraftedStep:
    return step.model_copy(
        update={
            "args": _each_text(step.args, lambda text: _sub(_REFERENCE, text, before)),
            "needs": tuple(before.get(name, name) for name in step.needs),
            "produces": tuple(after.get(name, name) for name in step.produces),
            "effects": tuple(_sub(_READ, each, after) for each in step.effects),
        }
    )


def _sub(pattern: re.Pattern[str], text: str, names: Names) -> str:
    return pattern.sub(lambda match: match.group(1) + names.get(match.group(2), match.group(2)), text)


def _plainly(args: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """References as they are written here: without the filters that spell a value out, and `rows.0` for `rows[0]`."""

    def plain(text: str) -> str:
        return _INDEXED.sub(lambda match: _INDEX.sub(r".\1", match.group()), _FILTERED.sub(r"{{\1}}", text))

    return _each_text(args, plain)


def _each_text(args: dict[str, JsonValue], change: Callable[[str], str]) -> dict[str, JsonValue]:
    return {name: _changed(each, change) for name, each in args.items()}


def _changed(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return _each_text(value, change)
    return [_changed(each, change) for each in value] if isinstance(value, list) else value


def _new(name: ArtifactName, taken: set[ArtifactName]) -> ArtifactName:
    return next(each for number in count(1) if (each := f"{name}_{number}") not in taken)

"""Is a draft a plan? Every fault as one exact sentence, so that a planner can be asked again with them.

A draft is checked before anything is executed: a cycle, an unknown tool or a lost dependency found later
would cost finished work, or leave steps that never become ready. Nothing is repaired, no name is guessed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from pydantic import Field

from agent.core.arguments import malformed, misfits
from agent.core.decomposition import Split, split_faults
from agent.core.drift import idle
from agent.core.family import expand
from agent.core.goal import Criterion
from agent.core.plan import Step, cycle
from agent.core.predicate import PredicateError, checked, reads
from agent.core.reference import referenced
from agent.core.value import ArtifactName, JsonValue, Value


class Ground(Value):
    """What a draft is checked against."""

    schemas: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """JSON schema of the arguments, by tool name; a tool that is not here does not exist."""
    present: frozenset[ArtifactName] = frozenset()
    """Artifacts that hold, given values included."""
    wants: tuple[ArtifactName, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    window: int | None = None
    """Most steps of one draft; None: any number."""
    splits: tuple[Split, ...] = ()
    """Steps that the draft, or a part of it, puts others in the place of."""
    depth: int = 2
    """Most levels of splits (seed 4: two are almost always enough)."""


def faults(steps: tuple[Step, ...], ground: Ground) -> tuple[str, ...]:
    """Everything that keeps the draft from being a plan; empty when it is one."""
    sound = tuple(_without_broken_predicates(each) for each in steps)
    available = ground.present | {name for each in steps for name in each.produces}
    found = [
        *_number(steps, ground),
        *_identities(steps),
        *(fault for each in steps for fault in _predicates(each)),
        *(fault for each in steps for fault in _work(each, ground)),
        *_producers(steps),
        *(fault for each in sound for fault in _needs(each, available)),
        *_order(sound),
        *uncovered(ground, available),
        *_purpose(sound, ground, available),
        *(fault for each in ground.splits for fault in split_faults(each, ground.depth)),
    ]
    return tuple(dict.fromkeys(found))


def _number(steps: tuple[Step, ...], ground: Ground) -> Iterator[str]:
    if not steps and not (ground.wants or ground.criteria):
        yield "the plan has no steps"
    if ground.window is not None and len(steps) > ground.window:
        yield f"the plan has {len(steps)} steps; give at most {ground.window}, each doing one thing"


def _identities(steps: tuple[Step, ...]) -> Iterator[str]:
    # a model may write 1 here and "1" there, so ids are compared as texts
    ids = [str(each.id).strip() for each in steps]
    for each, times in Counter(ids).items():
        if not each:
            yield "a step has no id; every step needs its own"
        elif times > 1:
            yield f"{times} steps have the id {each!r}; every step needs its own"
    for step in steps:
        for before in step.after:
            if str(before).strip() not in ids:
                yield f"step {step.id!r} comes after {before!r}, which is no step; ids are: {_listed(ids)}"


def _predicates(step: Step) -> Iterator[str]:
    for source in (*step.preconditions, *step.effects):
        problem = _broken(source)
        if problem:
            yield f"step {step.id!r}: {problem}"


def _work(step: Step, ground: Ground) -> Iterator[str]:
    named = (step.call.tool,) if step.call else step.tools
    for tool in named:
        if tool not in ground.schemas:
            yield f"step {step.id!r} uses the tool {tool!r}, which does not exist{_near(tool, ground)}"
    if step.call is None and not step.instruction:
        yield f"step {step.id!r} has neither a tool nor an instruction"
    if step.call and step.call.tool in ground.schemas:
        for misfit in misfits(step.call.args, ground.schemas[step.call.tool]):
            yield f"step {step.id!r}, tool {step.call.tool!r}: {misfit}"
        for text in malformed(step.call.args):
            yield f"step {step.id!r}: {text} is no reference; write {{{{name}}}} or {{{{name.field}}}}"


def _near(tool: str, ground: Ground) -> str:
    """The tools there are, and the one that was perhaps meant: said, never chosen for the planner."""
    lowered = {name.casefold(): name for name in ground.schemas}
    near = get_close_matches(tool.casefold(), lowered, n=1)
    hint = f" (did you mean {lowered[near[0]]!r}?)" if near else ""
    return f"{hint}; the tools are: {_listed(sorted(ground.schemas))}"


def _producers(steps: tuple[Step, ...]) -> Iterator[str]:
    makers: dict[ArtifactName, list[str]] = {}
    for step in steps:
        if not step.produces:
            yield f"step {step.id!r} produces nothing; name the artifact it makes"
        for name in step.produces:
            makers.setdefault(name, []).append(repr(step.id))
            if not (name.isidentifier() and name.isascii()):
                yield f"step {step.id!r} produces {name!r}; a name has only letters, digits and _"
    for name, ids in makers.items():
        if len(ids) > 1:
            yield f"steps {' and '.join(ids)} make {name!r}; an artifact has one producer"


def _needs(step: Step, available: frozenset[ArtifactName]) -> Iterator[str]:
    for name in sorted(set(step.needs) & set(step.produces)):
        yield f"step {step.id!r} needs {name!r}, which it produces itself"
    args = referenced(step.call.args) if step.call else frozenset()
    for name in sorted(step.reads() - available):
        why = "refers to" if name in args else "needs" if name in step.needs else "checks"
        yield f"step {step.id!r} {why} {name!r}, but no step produces it; available: {_listed(sorted(available))}"


def _order(steps: tuple[Step, ...]) -> Iterator[str]:
    loop = cycle(steps)
    if loop:
        yield f"the steps wait for each other in a circle: {' -> '.join(reversed(loop))}"


def uncovered(ground: Ground, available: frozenset[ArtifactName]) -> Iterator[str]:
    """Wants and criteria that nothing serves: a plan may not lose one on the way (seed 4: goal drift)."""
    for want in expand(ground.wants, sorted(available)):
        if want not in available:
            yield f"nothing produces the wanted artifact {want!r}"
    for criterion in ground.criteria:
        missing = sorted(reads(criterion.predicate) - available) if criterion.predicate else []
        for name in missing:
            yield f"criterion {criterion.id!r} checks {name!r}, but no step produces it"


def _purpose(steps: tuple[Step, ...], ground: Ground, available: frozenset[ArtifactName]) -> Iterator[str]:
    """Steps that serve nothing of the goal; asked only where it is known what the goal reads."""
    read = (name for each in ground.criteria if each.predicate for name in reads(each.predicate))
    aims = frozenset((*expand(ground.wants, sorted(available)), *read))
    for step in idle(steps, aims) if aims else ():
        made = ", ".join(step.produces) or "it"
        yield (
            f"step {step.id!r} serves no want and no criterion, for nothing needs {made}; leave the step out, or "
            f"name {made} where it is needed or wanted"
        )


def _without_broken_predicates(step: Step) -> Step:
    """The step as far as its dependencies can be read; what does not compile is reported on its own."""
    kept = {
        field: tuple(each for each in predicates if not _broken(each))
        for field, predicates in (("preconditions", step.preconditions), ("effects", step.effects))
    }
    return step.model_copy(update=kept)


def _broken(source: str) -> str:
    try:
        checked(source)
    except PredicateError as error:
        return str(error)
    return ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"

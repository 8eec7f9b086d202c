"""What does a drafted plan mean in core values? Names come from the model, what is trusted from contracts.

A tool whose contract names its product makes that artifact and no other. Arguments the contract binds may be
left out. Predicates are carried over unchecked: the plan check reports those that do not compile.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from agent.core.chaining import Maker, fill
from agent.core.contract import Contracts, EffectClass, ToolContract
from agent.core.decomposition import Split
from agent.core.family import expand, pattern_of
from agent.core.goal import Criterion
from agent.core.plan import Call, Step, StepId, downstream
from agent.core.predicate import PredicateError, checked, reads
from agent.core.reference import referenced
from agent.core.value import ArtifactName, JsonValue, canonical
from agent.models.drafts import DraftedCriterion, DraftedPlan, DraftedStep
from agent.models.nesting import nesting, unnested


class Converted(NamedTuple):
    """A drafted plan as core values, and what could not be converted, one sentence each."""

    steps: tuple[Step, ...]
    criteria: tuple[Criterion, ...]
    faults: tuple[str, ...]
    splits: tuple[Split, ...] = ()


def converted(
    plan: DraftedPlan, contracts: Contracts, written: frozenset[str], present: Iterable[ArtifactName]
) -> Converted:
    """The plan in core values.

    Args:
        plan: as the model filled it.
        contracts: what all tools promise.
        written: tools whose contract somebody wrote; the rest is known by schema only.
        present: artifacts that hold; families are spelled out over them.
    """
    leaves = unnested(plan.steps)
    known = frozenset({*present, *(name for each, _ in leaves for name in _products(each, contracts, written))})
    drawn = tuple(_step(each, contracts, written, known).model_copy(update={"depth": depth}) for each, depth in leaves)
    names = (*present, *(name for each in drawn for name in each.produces))
    needing = tuple(each.model_copy(update={"needs": expand(each.needs, names)}) for each in drawn)
    steps = _forwards(_folded(needing), written)
    faults = [fault for each, _ in leaves for fault in _other_products(each, contracts, written)]
    judged = [_criterion(f"c{index}", each) for index, each in enumerate(plan.criteria, 1)]
    criteria = tuple(each for each in judged if isinstance(each, Criterion))
    splits = tuple(_split(each, depth, contracts, written, known) for each, depth in nesting(plan.steps))
    return Converted(steps, criteria, (*faults, *(each for each in judged if isinstance(each, str))), splits)


def promised(contract: ToolContract, written: frozenset[str]) -> bool:
    """Whether the contract decides what the tool's artifact is called.

    The tool's own name is only a default, which a plan that uses the tool twice has to change.
    """
    default = contract.produces == (re.sub(r"\W", "_", contract.tool),)
    judged = {name for each in (*contract.requires, *contract.ensures) for name in reads(each)}
    return contract.tool in written and (not default or bool(judged & set(contract.produces)))


def makeable(contracts: Contracts, present: Iterable[ArtifactName] = ()) -> frozenset[ArtifactName]:
    """What is there or some tool makes; families as patterns."""
    return frozenset(pattern_of(name) for each in contracts.values() for name in each.produces) | frozenset(present)


def bound(contract: ToolContract, written: frozenset[str], there: frozenset[ArtifactName]) -> frozenset[str]:
    """Arguments that the contract gives; the model need not.

    A path or a text that only carries the name of a need, and that no tool makes, is the model's to give.
    """
    given = fill(contract, {}).args if contract.tool in written else {}
    return frozenset(name for name, each in given.items() if all(_among(there, source) for source in referenced(each)))


def _among(there: frozenset[ArtifactName], name: ArtifactName) -> bool:
    return name in there or any(fnmatchcase(name, each) for each in there if "*" in each)


def _folded(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Equal calls that make the same are one step: small models write one twice."""
    kept: dict[str, Step] = {}
    same: dict[StepId, StepId] = {}
    for each in steps:
        key = canonical([each.call.tool, each.call.args, list(each.produces)]) if each.call else each.id
        same.setdefault(each.id, kept.setdefault(key, each).id)
    return tuple(
        each.model_copy(update={"after": tuple(dict.fromkeys(same.get(before, before) for before in each.after))})
        for each in kept.values()
    )


def _forwards(steps: tuple[Step, ...], written: frozenset[str]) -> tuple[Step, ...]:
    """Steps of contracted tools without edges that are the wrong way round: what needs a step comes after it."""
    unordered = tuple(each.model_copy(update={"after": ()}) for each in steps)
    ordered = (each for each in steps if each.after and each.call and each.call.tool in written)
    behind = {each.id: downstream(unordered, frozenset({each.id})) for each in ordered}
    return tuple(
        each.model_copy(update={"after": tuple(before for before in each.after if before not in behind[each.id])})
        if each.id in behind
        else each
        for each in steps
    )


def _split(
    drafted: DraftedStep, depth: int, contracts: Contracts, written: frozenset[str], known: frozenset[ArtifactName]
) -> Split:
    parts = tuple(_step(each, contracts, written, known) for each in drafted.steps)
    return Split(of=_step(drafted, contracts, written, known), into=parts, depth=depth)


def _step(drafted: DraftedStep, contracts: Contracts, written: frozenset[str], known: frozenset[ArtifactName]) -> Step:
    return _call(drafted, contracts, written, known) if drafted.tool else _instruction(drafted, contracts)


def _products(drafted: DraftedStep, contracts: Contracts, written: frozenset[str]) -> tuple[ArtifactName, ...]:
    """What a step makes: what the contract promises, else what the model calls it."""
    contract = contracts.get(drafted.tool)
    if contract is None:
        return drafted.produces
    promise = promised(contract, written)
    return _maker(drafted, contract).produces if promise else drafted.produces or contract.produces


def _call(drafted: DraftedStep, contracts: Contracts, written: frozenset[str], names: frozenset[ArtifactName]) -> Step:
    contract = contracts.get(drafted.tool, ToolContract(tool=drafted.tool))
    maker, known = _maker(drafted, contract), contract.tool in written
    args = {**maker.args, **_chosen(drafted, maker, names)} if known else drafted.args
    return Step(
        id=StepId(drafted.id.strip()),
        intent=drafted.intent,
        call=Call(tool=drafted.tool, args=args, texts=contract.texts),
        tools=(drafted.tool,),
        needs=_united(_still_needed(maker, args) if known else (), drafted.needs, referenced(args)),
        produces=_products(drafted, contracts, written) or contract.produces,
        after=tuple(StepId(each.strip()) for each in drafted.after),
        preconditions=contract.requires if known else (),
        effect=contract.effect,
        idempotent=contract.idempotent,
    ).model_copy(update={"effects": contract.ensures if known and contract.ensures else drafted.effects})


def _chosen(drafted: DraftedStep, maker: Maker, names: frozenset[ArtifactName]) -> dict[str, JsonValue]:
    """Arguments as the model chose them; the contract's own wiring stands where the model's leads nowhere."""
    return {
        name: each
        for name, each in drafted.args.items()
        if referenced(each) <= names or not referenced(maker.args.get(name))
    }


def _instruction(drafted: DraftedStep, contracts: Contracts) -> Step:
    used = [contracts.get(each, ToolContract(tool=each)) for each in drafted.tools]
    reading = all(each.effect is EffectClass.READ_ONLY for each in used)
    return Step(
        id=StepId(drafted.id.strip()),
        intent=drafted.intent,
        instruction=drafted.instruction,
        tools=drafted.tools,
        needs=drafted.needs,
        produces=drafted.produces,
        after=tuple(StepId(each.strip()) for each in drafted.after),
        effect=EffectClass.READ_ONLY if reading else EffectClass.MUTATING,
        idempotent=all(each.idempotent for each in used),
    ).model_copy(update={"effects": drafted.effects})


def _maker(drafted: DraftedStep, contract: ToolContract) -> Maker:
    return fill(contract, {name: drafted.args[name] for name in contract.each if name in drafted.args})


def _still_needed(maker: Maker, args: Mapping[str, JsonValue]) -> tuple[ArtifactName, ...]:
    """The contract's needs, less those that only an argument carried which the model gave itself."""
    replaced = {name: each for name, each in maker.args.items() if args[name] != each}
    gone = referenced(replaced) - referenced({name: maker.args[name] for name in maker.args if name not in replaced})
    return tuple(each for each in maker.contract.needs if each not in gone)


def _other_products(drafted: DraftedStep, contracts: Contracts, written: frozenset[str]) -> list[str]:
    contract = contracts.get(drafted.tool)
    if contract is None or not drafted.produces or not promised(contract, written):
        return []
    made = _maker(drafted, contract).produces
    if set(made) == set(drafted.produces):
        return []
    return [f"step {drafted.id!r}: the tool {drafted.tool!r} produces {', '.join(made)}; use that name"]


def _criterion(criterion_id: str, drafted: DraftedCriterion) -> Criterion | str:
    try:
        checked(drafted.predicate)
    except PredicateError as error:
        return f"criterion {drafted.text!r}: {error}"
    return Criterion(id=criterion_id, text=drafted.text or drafted.predicate, predicate=drafted.predicate)


def _united(*groups: Iterable[ArtifactName]) -> tuple[ArtifactName, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in sorted(group)))

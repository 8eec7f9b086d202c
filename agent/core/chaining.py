"""The contract planner: backward from the wanted artifacts over contracts, cheapest first, with no model."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from agent.core.cheapest import Rule, cheapest, circle, lacking, selected
from agent.core.contract import Contracts, ToolContract
from agent.core.family import belonging, expand, pattern_of
from agent.core.plan import Call, Step, StepId
from agent.core.predicate import reads
from agent.core.reference import referenced
from agent.core.value import ArtifactName, JsonValue, Value

_WORD = re.compile(r"\W")


class Need(Value):
    """A need that no tool can produce, and the chain of steps that asked for it."""

    name: ArtifactName
    wanted_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        path = " <- ".join(self.wanted_by)
        return f"no tool produces {self.name!r}" + (f" (needed by {path})" if path else "")


class Unreachable(ValueError):
    """The goal cannot be reached; `needs` is the proof."""

    def __init__(self, needs: tuple[Need, ...]) -> None:
        self.needs = needs
        super().__init__("; ".join(str(each) for each in needs))


class Maker(NamedTuple):
    """A contract with its family parameters filled in: one possible step."""

    contract: ToolContract
    args: dict[str, JsonValue]
    produces: tuple[ArtifactName, ...]


def ground(contracts: Contracts, given: dict[ArtifactName, JsonValue]) -> tuple[Maker, ...]:
    """Every possible step: a contract with `each` becomes one for every element of its given lists.

    Raises:
        ValueError: when two elements share one artifact name, or two tools make one artifact.
    """
    makers = tuple(maker for contract in contracts.values() for maker in _spread(contract, given))
    duplicates(makers)
    return makers


def duplicates(makers: Iterable[Maker]) -> None:
    """Refuse two producers of one artifact, unless one is declared to stand in for the other.

    Raises:
        ValueError: naming the artifact and both tools.
    """
    first: dict[ArtifactName, Maker] = {}
    for maker in makers:
        for name in maker.produces:
            other = first.setdefault(name, maker)
            if other is not maker and not _stand_ins(other.contract, maker.contract):
                raise ValueError(
                    f"artifact {name!r} is produced by both {other.contract.tool!r} and {maker.contract.tool!r}; "
                    f"declare stands_in_for on one of them, or rename one artifact"
                )


def chain(
    wants: Iterable[ArtifactName],
    contracts: Contracts,
    present: Iterable[ArtifactName],
    given: dict[ArtifactName, JsonValue],
    excluded: frozenset[str] = frozenset(),
    reuse: bool = True,
) -> tuple[Step, ...]:
    """Steps that make the wanted artifacts from the present ones, in dependency order.

    Args:
        wants: artifact names; a trailing `*` wants a whole family.
        contracts: what the tools promise, by tool name.
        present: artifacts that hold now.
        given: the goal's given values; families range over its lists.
        excluded: tools that may not be used (removed, or proven wrong).
        reuse: stop at present artifacts; False draws the whole path down to the given values.

    Raises:
        Unreachable: with every need that no tool can produce.
        ValueError: when needs are cyclic, producers are ambiguous, or a list to range over is not given.
    """
    allowed = {name: each for name, each in contracts.items() if name not in excluded}
    makers = ground(allowed, given)
    held = frozenset(given) | (frozenset(present) if reuse else frozenset())
    names = _family_names(makers, frozenset(given), held, allowed)
    rules = tuple(Rule(each.contract.cost, needed_names(each, names), each.produces) for each in makers)
    ways, spelled = cheapest(rules, held), expand(wants, names)
    refusal = _refusal(spelled, rules, held | ways.keys(), allowed, given)
    if refusal is not None:
        raise refusal
    steps = tuple(as_step(makers[each], rules[each].needs) for each in selected(rules, ways, held, spelled))
    _refuse_doubles(steps)
    return steps


def needed_names(maker: Maker, names: Iterable[ArtifactName]) -> tuple[ArtifactName, ...]:
    """The maker's needs with families spelled out, references and predicate reads included."""
    contract = maker.contract
    extra = set(referenced(maker.args))
    for predicate in (*contract.requires, *contract.ensures):
        extra |= reads(predicate)
    wanted = [*contract.needs, *sorted(extra - set(maker.produces) - set(contract.needs))]
    # a step that sums a family up is no member of the family it needs
    return expand(wanted, (name for name in names if name not in maker.produces))


def as_step(maker: Maker, needs: tuple[ArtifactName, ...]) -> Step:
    """The step that runs a maker; its id is minted later."""
    contract = maker.contract
    shown = ", ".join(f"{value}" for name, value in maker.args.items() if name in contract.each)
    return Step(
        id=StepId(""),
        intent=(contract.intent or contract.tool.replace("_", " ")) + (f" ({shown})" if shown else ""),
        call=Call(tool=contract.tool, args=maker.args, texts=contract.texts),
        tools=(contract.tool,),
        needs=needs,
        produces=maker.produces,
        preconditions=contract.requires,
        effects=contract.ensures,
        effect=contract.effect,
        idempotent=contract.idempotent,
    )


def members(contracts: Contracts, given: dict[ArtifactName, JsonValue]) -> dict[str, tuple[ArtifactName, ...]]:
    """Every family whose list is given, with its members.

    Raises:
        ValueError: when two elements share one artifact name.
    """
    listed = (each for each in contracts.values() if all(isinstance(given.get(n), list) for n in each.each.values()))
    return {
        pattern_of(product): tuple(name for maker in _spread(each, given) for name in maker.produces)
        for each in listed
        if each.each
        for product in each.produces
    }


def _family_names(
    makers: Iterable[Maker], given: frozenset[ArtifactName], held: frozenset[ArtifactName], contracts: Contracts
) -> tuple[ArtifactName, ...]:
    """What can be a member of a family. What was made for an element that the list has no more is none."""
    made = dict.fromkeys(name for maker in makers for name in maker.produces)
    families = {pattern_of(name) for each in contracts.values() if each.each for name in each.produces}
    others = held - given - made.keys()
    former = {name for each in families for name in belonging(each, others)}
    return tuple(dict.fromkeys([*made, *sorted(held - former)]))


def _refuse_doubles(steps: Iterable[Step]) -> None:
    """Stand-ins that make several artifacts can overlap where each is needed for another one."""
    makers: dict[ArtifactName, str] = {}
    for step in steps:
        for name in step.produces:
            if name in makers:
                raise ValueError(f"artifact {name!r} would be made by both {makers[name]!r} and {step.tools[0]!r}")
            makers[name] = step.tools[0]


def _refusal(
    wants: tuple[ArtifactName, ...],
    rules: tuple[Rule, ...],
    obtainable: frozenset[ArtifactName],
    contracts: Contracts,
    given: dict[ArtifactName, JsonValue],
) -> ValueError | None:
    """Why the wanted artifacts cannot all be made; None when they can."""
    lacks = lacking(rules, obtainable, wants)
    for lack in lacks:
        for contract in contracts.values():
            if any(_alike(lack.name, product) for product in contract.produces) and _ungiven(contract, given):
                return ValueError(
                    f"tool {contract.tool!r} runs for each element of {_ungiven(contract, given)!r}, "
                    f"which the goal must give as a list with something in it"
                )
    if lacks:
        return Unreachable(tuple(Need(name=each.name, wanted_by=tuple(reversed(each.path))) for each in lacks))
    stuck = next((name for name in wants if name not in obtainable), None)
    if stuck is None:
        return None
    return ValueError(f"needs are cyclic: {' -> '.join(reversed(circle(rules, obtainable, stuck)))}")


def _ungiven(contract: ToolContract, given: dict[ArtifactName, JsonValue]) -> ArtifactName | None:
    """The list it ranges over that is not given, or is empty."""
    lists = ((source, given.get(source)) for source in contract.each.values())
    return next((source for source, each in lists if not (isinstance(each, list) and each)), None)


def _alike(name: ArtifactName, product: str) -> bool:
    """Whether a product such as `loaded_{week}` could bear the name, or belong to the family."""
    family = pattern_of(product)
    return fnmatchcase(name, family) or fnmatchcase(family, name)


def _spread(contract: ToolContract, given: dict[ArtifactName, JsonValue]) -> list[Maker]:
    if _ungiven(contract, given):
        return []  # reported only when the goal turns out to need it
    spreads: list[dict[str, JsonValue]] = [{}]
    for parameter, source in contract.each.items():
        values = given[source]
        assert isinstance(values, list)
        spreads = [{**each, parameter: value} for each in spreads for value in values]
    makers = [fill(contract, spread) for spread in spreads]
    names = [name for maker in makers for name in maker.produces]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"tool {contract.tool!r} would produce {twice[0]!r} twice; name it by all of its parameters")
    return makers


def fill(contract: ToolContract, spread: dict[str, JsonValue]) -> Maker:
    """A contract with its family parameters filled in, and the preferred value of every alternative."""
    preferred = {name: values[0] for name, values in contract.alternatives.items() if values}
    spelled = {name: _WORD.sub("_", str(value)) for name, value in spread.items()}
    produces = tuple(name.format_map(spelled) for name in contract.produces) if spread else contract.produces
    return Maker(contract, {**contract.args, **preferred, **spread}, produces)


def _stand_ins(one: ToolContract, other: ToolContract) -> bool:
    root = {one.tool, one.stands_in_for} & {other.tool, other.stands_in_for} - {None}
    return bool(root) and (one.stands_in_for is not None or other.stands_in_for is not None)

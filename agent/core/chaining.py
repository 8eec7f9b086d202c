"""The contract planner: backward from the wanted artifacts over contracts, cheapest first, with no model."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from agent.core.contract import Contracts, ToolContract
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
        ValueError: when a list to range over is not given, or two elements share one artifact name.
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
        ValueError: when needs are cyclic or producers are ambiguous.
    """
    makers = ground({name: each for name, each in contracts.items() if name not in excluded}, given)
    held = set(given) | (set(present) if reuse else set())
    return _Chainer(makers, held).steps(tuple(wants))


def needed_names(maker: Maker, names: Iterable[ArtifactName]) -> tuple[ArtifactName, ...]:
    """The maker's needs with families spelled out, references and predicate reads included."""
    contract = maker.contract
    extra = set(referenced(maker.args))
    for predicate in (*contract.requires, *contract.ensures):
        extra |= reads(predicate)
    wanted = [*contract.needs, *sorted(extra - set(maker.produces) - set(contract.needs))]
    return expand(wanted, names)


def expand(wanted: Iterable[ArtifactName], names: Iterable[ArtifactName]) -> tuple[ArtifactName, ...]:
    """Spell out `family_*`; a family nobody makes stays as it is, so that it is reported."""
    known, spelled = tuple(names), []
    for name in wanted:
        members = [each for each in known if fnmatchcase(each, name)] if name.endswith("*") else []
        spelled.extend(members or [name])
    return tuple(dict.fromkeys(spelled))


def as_step(maker: Maker, needs: tuple[ArtifactName, ...]) -> Step:
    """The step that runs a maker; its id is minted later."""
    contract = maker.contract
    shown = ", ".join(f"{value}" for name, value in maker.args.items() if name in contract.each)
    return Step(
        id=StepId(""),
        intent=(contract.intent or contract.tool.replace("_", " ")) + (f" ({shown})" if shown else ""),
        call=Call(tool=contract.tool, args=maker.args),
        tools=(contract.tool,),
        needs=needs,
        produces=maker.produces,
        preconditions=contract.requires,
        effects=contract.ensures,
        effect=contract.effect,
        idempotent=contract.idempotent,
    )


class _Chainer:
    """One backward search; remembers what is being made, so that a cyclic need is seen."""

    def __init__(self, makers: tuple[Maker, ...], held: set[ArtifactName]) -> None:
        self._by_name: dict[ArtifactName, list[Maker]] = {}
        for maker in makers:
            for name in maker.produces:
                self._by_name.setdefault(name, []).append(maker)
        self._held = held
        self._best: dict[ArtifactName, tuple[float, Maker | None]] = {}
        self._names = tuple(dict.fromkeys([*self._by_name, *held]))

    def steps(self, wants: tuple[ArtifactName, ...]) -> tuple[Step, ...]:
        spelled = expand(wants, self._names)
        missing = [need for name in spelled for need in self._missing(name, ())]
        if missing:
            raise Unreachable(tuple(dict.fromkeys(missing)))
        chosen: dict[int, Step] = {}
        for name in spelled:
            self._collect(name, chosen)
        return tuple(chosen.values())

    def _missing(self, name: ArtifactName, path: tuple[ArtifactName, ...]) -> list[Need]:
        """Find the cheapest maker of a name; the list says what stands in the way of every one."""
        if name in self._held or name in self._best:
            return []
        if name in path:
            loop = " -> ".join(reversed((*path[path.index(name) :], name)))
            raise ValueError(f"needs are cyclic: {loop}")
        makers = self._by_name.get(name, [])
        if not makers:
            return [Need(name=name, wanted_by=tuple(reversed(path)))]
        reasons: list[Need] = []
        for maker in makers:
            lacks = [need for each in needed_names(maker, self._names) for need in self._missing(each, (*path, name))]
            reasons += lacks
            if not lacks:
                self._offer(name, maker)
        return [] if name in self._best else reasons

    def _offer(self, name: ArtifactName, maker: Maker) -> None:
        cost = maker.contract.cost + sum(
            self._best.get(each, (0.0, None))[0] for each in needed_names(maker, self._names)
        )
        if name not in self._best or cost < self._best[name][0]:
            self._best[name] = (cost, maker)

    def _collect(self, name: ArtifactName, chosen: dict[int, Step]) -> None:
        if name in self._held:
            return
        maker = self._best[name][1]
        assert maker is not None
        if id(maker) in chosen:
            return
        needs = needed_names(maker, self._names)
        for each in needs:
            self._collect(each, chosen)
        chosen[id(maker)] = as_step(maker, needs)


def _spread(contract: ToolContract, given: dict[ArtifactName, JsonValue]) -> list[Maker]:
    spreads: list[dict[str, JsonValue]] = [{}]
    for parameter, source in contract.each.items():
        values = given.get(source)
        if not isinstance(values, list):
            raise ValueError(  # noqa: TRY004 - bad input like the others, not a wrong type in code
                f"tool {contract.tool!r} runs for each element of {source!r}, which the goal must give as a list"
            )
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
    if one.tool == other.tool:
        return False
    root = {one.tool, one.stands_in_for} & {other.tool, other.stands_in_for} - {None}
    return bool(root) and (one.stands_in_for is not None or other.stands_in_for is not None)

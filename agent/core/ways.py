"""In which other way can a step make the same? Found without a model: another declared value, or a tool that stands in.

The way that was found is kept. A planner knows only the preferred one, and going back to it would undo a repair, or
make what stands once more.
"""

from collections.abc import Iterable

from agent.core.chaining import Maker, as_step, fill, needed_names
from agent.core.contract import Contracts, ToolContract
from agent.core.limits import Ledger
from agent.core.plan import Step
from agent.core.repeating import noted, repeats
from agent.core.value import ArtifactName, Value

_OF_THE_CALL = ("call", "drawn", "intent", "needs", "preconditions", "effects", "effect", "idempotent")
"""What a step has from the tool that it calls."""


class Patch(Value):
    """One step, expressed another way: the intent was right, the call was not (seed 1)."""

    step: Step
    """The step with its new call, still under its old id."""
    because: str


def next_patch(step: Step, contracts: Contracts, ledger: Ledger) -> Patch | None:
    """The next declared way to make the same artifact: an alternative value first, then a stand-in tool."""
    if step.call is None:
        return None
    ways = (*_other_values(step, contracts), *_other_tools(step, contracts))
    tried = remember(ledger, step)
    return next((each for each in ways if not proven_wrong(each.step, tried)), None)


def proven_wrong(step: Step, ledger: Ledger) -> bool:
    """Whether the step makes a call that failed before for the same products."""
    return step.call is not None and repeats(step.call, step.key, ledger, {})


def remember(ledger: Ledger, step: Step) -> Ledger:
    """Note that the step's present call was proven wrong, as it was planned."""
    return noted(ledger, step, {})


def learned(
    draft: Iterable[Step], contracts: Contracts, ledger: Ledger, before: Iterable[Step] = ()
) -> tuple[Step, ...]:
    """A draft that does not bring back what was left behind: a call proven wrong, or one that was mended.

    Args:
        draft: what a planner draws.
        contracts: what the tools promise.
        ledger: knows the calls that were proven wrong.
        before: all steps of the plan so far, the latest last.
    """
    latest = {each.key: each for each in before}
    return tuple(_another_way(_mended(each, latest.get(each.key), contracts), contracts, ledger) for each in draft)


def _mended(step: Step, before: Step | None, contracts: Contracts) -> Step:
    """The step as it was mended before, when it is drawn as it had been drawn then."""
    if before is None or before.call is None or before.drawn is None or before.drawn != step.call:
        return step
    if before.call.tool not in contracts:
        return step
    return step.model_copy(update={name: getattr(before, name) for name in _OF_THE_CALL})


def _another_way(step: Step, contracts: Contracts, ledger: Ledger) -> Step:
    patch = next_patch(step, contracts, ledger) if proven_wrong(step, ledger) else None
    return patch.step if patch else step


def _other_values(step: Step, contracts: Contracts) -> Iterable[Patch]:
    assert step.call is not None
    contract = contracts.get(step.call.tool)
    for parameter, values in contract.alternatives.items() if contract else ():
        for value in values:
            call = step.call.model_copy(update={"args": {**step.call.args, parameter: value}})
            because = f"{parameter} = {value!r} instead of {step.call.args.get(parameter)!r}"
            yield Patch(step=step.calling(call), because=because)


def _other_tools(step: Step, contracts: Contracts) -> Iterable[Patch]:
    """Declared stand-ins that make the same artifacts from what the step already waits for, cheapest first."""
    assert step.call is not None
    contract = contracts.get(step.call.tool)
    original = (contract.stands_in_for if contract else None) or step.call.tool
    family = (each for each in contracts.values() if original in (each.tool, each.stands_in_for))
    for other in sorted(family, key=lambda each: each.cost):
        maker = _as_maker(other, step)
        if other.tool == step.call.tool or not set(step.produces) <= set(maker.produces):
            continue
        needs = needed_names(maker, step.reads())
        if set(needs) <= step.reads():
            yield Patch(step=_replaced(step, maker, needs), because=f"{other.tool} stands in for {step.call.tool}")


def _as_maker(contract: ToolContract, step: Step) -> Maker:
    assert step.call is not None
    return fill(contract, {name: step.call.args[name] for name in contract.each if name in step.call.args})


def _replaced(step: Step, maker: Maker, needs: tuple[ArtifactName, ...]) -> Step:
    new = as_step(maker, needs)
    assert new.call is not None
    of_the_call = {name: getattr(new, name) for name in _OF_THE_CALL if name not in ("call", "drawn")}
    return step.calling(new.call).model_copy(update=of_the_call)

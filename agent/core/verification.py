"""Whether an attempt did what its step promised. Fails closed: only `verified` completes a step."""

from collections.abc import Mapping

from agent.core.plan import Step
from agent.core.predicate import Judgement, Verdict, judge
from agent.core.value import ArtifactName, JsonValue

View = Mapping[ArtifactName, JsonValue]


def products_of(step: Step, value: JsonValue) -> dict[ArtifactName, JsonValue] | None:
    """The artifacts inside a returned value: itself for one product, by name for several; None if one is missing."""
    if value is None:
        return None
    if len(step.produces) == 1:
        return {step.produces[0]: value}
    if not isinstance(value, dict) or not all(value.get(name) is not None for name in step.produces):
        return None
    return {name: value[name] for name in step.produces}


def judge_effects(
    step: Step,
    args: dict[str, JsonValue],
    inputs: View,
    facts: Mapping[str, JsonValue],
    value: JsonValue,
    result: JsonValue,
) -> tuple[Judgement, ...]:
    """Judge what a step promised, over what was observed.

    Args:
        step: carries the effects.
        args: as sent.
        inputs: artifacts the step read.
        facts: the world's facts.
        value: what the artifact is: read back from the world where a probe can, else what was returned.
        result: what the call returned; equal to `value` when it was adopted.
    """
    products = products_of(step, value)
    if products is None:
        shape = " and ".join(step.produces)
        return (Judgement(predicate=f"gives {shape}", verdict=Verdict.REFUTED, reason="nothing was there"),)
    if not step.effects:
        # weak, and labelled so in the verification: the tool's own answer is all there is to look at
        return (Judgement(predicate="gives a value", verdict=Verdict.VERIFIED),)
    seen = {**inputs, **products}
    return tuple(judge(each, seen, facts, args, result) for each in step.effects)

"""What is a judge's word worth? It counts for a sentence over exactly what it was given, and only with evidence.

A judge is asked for what no predicate can decide. It fails closed: no answer, no evidence or a doubt verify nothing.
"""

from collections.abc import Mapping

from agent.core.predicate import Verdict
from agent.core.value import ArtifactName, Digest, JsonValue, Value, digest

HOLDS, FAILS, UNSURE = "holds", "fails", "unsure"
"""What a judge may say."""


class Ruling(Value):
    """A judge's word on one criterion, as the world keeps it."""

    verdict: Verdict
    evidence: str = ""
    """What shows it, in the judge's words; or why there is no answer."""
    answered: bool = True
    """It was given; one that was not is asked for again by the next run."""
    over: Digest
    """Of the sentence, and of all that it was judged over: over anything else it says nothing."""


def verdict_of(said: str | None, evidence: str) -> Verdict:
    """What an answer comes to; None is none."""
    if said == HOLDS and evidence.strip():
        return Verdict.VERIFIED
    return Verdict.REFUTED if said == FAILS else Verdict.UNVERIFIABLE


def case(sentence: str, about: str, shown: Mapping[ArtifactName, Digest]) -> Digest:
    """Identity of what is judged: the same sentence over the same artifacts is not asked twice."""
    named: dict[str, JsonValue] = {**shown}
    return digest([sentence, about, named])


def fact_of(criterion: str) -> str:
    """Name of the fact that the word on a criterion is kept as; a person may state it, as true or false."""
    return f"judged:{criterion}"

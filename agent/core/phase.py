"""The phase table: which phase node may follow which. Graph, diagram and tests are all read from it."""

from enum import StrEnum


class Phase(StrEnum):
    """Phase is explicit state (invariant 7): no node infers where it is from a transcript."""

    INTAKE = "intake"
    PLANNER = "planner"
    DISPATCHER = "dispatcher"
    EXECUTOR = "executor"
    VERIFIER = "verifier"
    CLASSIFIER = "classifier"
    REPAIRER = "repairer"
    ESCALATOR = "escalator"
    FINISHER = "finisher"
    END = "__end__"


P = Phase

LEGAL: dict[Phase, tuple[Phase, ...]] = {
    P.INTAKE: (P.DISPATCHER, P.VERIFIER, P.FINISHER),
    P.PLANNER: (P.DISPATCHER, P.FINISHER),
    P.DISPATCHER: (P.PLANNER, P.EXECUTOR, P.VERIFIER, P.CLASSIFIER, P.ESCALATOR, P.FINISHER),
    P.EXECUTOR: (P.EXECUTOR, P.VERIFIER, P.DISPATCHER),
    P.VERIFIER: (P.DISPATCHER, P.CLASSIFIER),
    P.CLASSIFIER: (P.REPAIRER,),
    P.REPAIRER: (P.DISPATCHER, P.CLASSIFIER),
    P.ESCALATOR: (P.DISPATCHER, P.REPAIRER, P.FINISHER),
    P.FINISHER: (P.END,),
}
"""From -> to. The dispatcher is the only way to the planner: it is never called between steps for nothing.

The executor leads to itself when all it brought was verified and there is more to start or to wait for: a whole
round in one super-step. Every other turn of events takes the verifier's and the dispatcher's own.
"""

START = Phase.INTAKE


def mermaid() -> str:
    """The phase diagram, as it stands in the README."""
    names = {Phase.END: "done([end])"}
    lines = ["flowchart LR", f"    start([start]) --> {START}"]
    lines += [f"    {source} --> {names.get(to, to.value)}" for source, targets in LEGAL.items() for to in targets]
    return "\n".join(lines)


def reachable(start: Phase = START) -> frozenset[Phase]:
    """Every phase that can be reached from the start."""
    found, frontier = {start}, [start]
    while frontier:
        fresh = [each for each in LEGAL.get(frontier.pop(), ()) if each not in found]
        found.update(fresh)
        frontier.extend(fresh)
    return frozenset(found)

"""The mutation test as a LangSmith experiment: a mutation is an example, a row of the matrix an evaluator.

Without a LangSmith the same examples, target and evaluators run here and are summed up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent.core.goal import Goal
from agent.mutation.ground import Supply, ground_of
from agent.mutation.kinds import KINDS, Kind, Mutation, mutations
from agent.mutation.kit import sample
from agent.mutation.matrix import MATRIX, Row
from agent.mutation.replay import Bench, Build, built, unhurried
from agent.mutation.report import verdict
from agent.settings import Settings

if TYPE_CHECKING:
    from langsmith import Client

Evaluator = Callable[[dict[str, Any]], dict[str, Any]]
"""Grades the outputs of the target: key, score, and what contradicts the row as a comment."""


class Experiment:
    """Mutations of one recorded run, to be replayed by whoever evaluates."""

    def __init__(
        self,
        tools: Supply,
        goal: Goal,
        *,
        build: Build = built,
        kinds: Sequence[Kind] = KINDS,
        settings: Settings | None = None,
        seed: int = 0,
        most: int | None = None,
    ) -> None:
        """Record the undisturbed run; the arguments are those of `mutate`.

        Raises:
            ValueError: when it does not reach its goal.
        """
        self._bench = Bench(ground_of(tools, goal), build, unhurried(settings or Settings()))
        self._trajectory = self._bench.record()
        chosen = sample(mutations(self._trajectory, tuple(kinds), seed), seed, most)
        self._mutations: Mapping[str, Mutation] = {str(each): each for each in chosen}

    @property
    def examples(self) -> tuple[dict[str, Any], ...]:
        """Inputs of the target, one for each mutation."""
        named = self._mutations.items()
        return tuple({"mutation": name, "kind": each.kind.name, "says": each.kind.says} for name, each in named)

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """One for each row of the matrix."""
        return tuple(_evaluator(row) for row in MATRIX)

    def target(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Replay one mutation.

        Raises:
            ValueError: an example of another run, or of another seed.
        """
        name = str(inputs.get("mutation"))
        if name not in self._mutations:
            raise ValueError(f"this run has no mutation {name!r}: make the dataset anew, under another name")
        return asdict(verdict(self._bench.replay(self._trajectory, self._mutations[name])))

    def offline(self) -> dict[str, float]:
        """Run everything here; by row the share of the replays in which it holds."""
        outputs = [self.target(each) for each in self.examples]
        graded = [[grade(each)["score"] for each in outputs] for grade in self.evaluators]
        return {row.name: sum(each) / len(each) for row, each in zip(MATRIX, graded, strict=True) if each}

    def upload(self, client: "Client", dataset: str) -> None:
        """Make the dataset, or add to it what it lacks."""
        if not client.has_dataset(dataset_name=dataset):
            client.create_dataset(dataset, description="What changes while a run goes on, one example a mutation.")
        there = {(each.inputs or {}).get("mutation") for each in client.list_examples(dataset_name=dataset)}
        new = [{"inputs": each} for each in self.examples if each["mutation"] not in there]
        if new:
            client.create_examples(dataset_name=dataset, examples=new)

    def run(self, client: "Client", dataset: str, prefix: str = "mutations") -> Any:
        """Upload the dataset and evaluate it; LangSmith's results of the experiment."""
        self.upload(client, dataset)
        given: dict[str, Any] = {"data": dataset, "evaluators": self.evaluators, "experiment_prefix": prefix}
        return client.evaluate(self.target, **given)


def _evaluator(row: Row) -> Evaluator:
    def holds(outputs: dict[str, Any]) -> dict[str, Any]:
        failures = outputs.get("failures", {}).get(row.name, ())
        return {"key": key, "score": float(not failures), "comment": "; ".join(failures)}

    holds.__name__ = key = row.name.replace(" ", "_")
    return holds

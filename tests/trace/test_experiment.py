"""The mutation test runs as a LangSmith experiment, and offline without one, with the same grades."""

from collections.abc import Iterator

import pytest
from langsmith import Client

from agent.mutation import Experiment
from agent.mutation.matrix import MATRIX
from tests.mutation.worlds import GOAL, kinds, shop
from tests.trace.langsmith_server import Standin


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return Experiment(shop, GOAL, kinds=kinds("file changed", "value drifted"), most=2)


@pytest.fixture
def standin() -> Iterator[Standin]:
    started = Standin()
    yield started
    started.close()


def test_offline_every_row_is_graded_over_all_replays(experiment: Experiment) -> None:
    assert experiment.offline() == {row.name: 1.0 for row in MATRIX}


def test_a_row_that_does_not_hold_says_what_contradicts_it(experiment: Experiment) -> None:
    outputs = {"failures": {MATRIX[0].name: ("x was made twice", "y too")}}
    first, second = (grade(outputs) for grade in experiment.evaluators[:2])
    assert (first["score"], first["comment"]) == (0.0, "x was made twice; y too")
    assert second["score"] == 1.0


def test_an_example_of_another_run_is_refused_in_a_sentence(experiment: Experiment) -> None:
    with pytest.raises(ValueError, match=r"no mutation 'else'.*make the dataset anew"):
        experiment.target({"mutation": "else"})


def test_with_a_langsmith_each_mutation_is_an_example_and_each_row_a_grade(
    experiment: Experiment, standin: Standin
) -> None:
    client = Client(api_url=standin.url, api_key="key", web_url=standin.url)
    try:
        for _ in range(2):  # the second time the dataset is there
            results = list(experiment.run(client, "mutations of the shop"))
            assert [each["run"].error for each in results] == [None, None]
            for each in results:
                found = each["evaluation_results"]["results"]
                assert {grade.score for grade in found} == {1.0}
                assert len(found) == len(MATRIX)
        client.flush()
    finally:
        client.close(timeout=60)
    assert sorted(each["inputs"]["mutation"] for each in standin.examples) == sorted(
        each["mutation"] for each in experiment.examples
    )
    below = {each["name"] for each in standin.runs.values() if each.get("parent_run_id")}
    assert "finisher: satisfied" in below

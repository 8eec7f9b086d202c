"""The mutation test over somebody's own tools and graph: it holds for this runtime, and says what it looked at."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from agent import build_graph
from agent.core.goal import Goal
from agent.mutation import KINDS, mutate
from agent.mutation.ground import ground_in
from agent.mutation.kit import mutate_ground
from agent.mutation.matrix import MATRIX
from agent.mutation.replay import built
from agent.scenarios import SCENARIOS
from tests.builders import Calls, always, calm
from tests.mutation.worlds import GOAL, kinds, shop


def test_every_row_holds_at_every_point_for_every_mutation_that_applies() -> None:
    report = mutate(shop, GOAL)
    report.assert_holds()
    assert (report.steps, report.points) == (5, 10)
    assert {each.kind for each in report.verdicts} == {each.name for each in KINDS}
    assert all(each.reached for each in report.verdicts)
    assert (report.ratio, report.planner_calls) == (1.0, 0)


def test_a_changed_file_redoes_what_reads_it_and_nothing_behind_an_equal_result() -> None:
    found = mutate(shop, GOAL, kinds=kinds("file changed")).verdicts
    assert {each.status for each in found} == {"satisfied"}
    # at most the file and the settings that are read from it; they come out the same, so nothing else
    assert all(each.taken == each.needed <= 2 for each in found)
    assert any(each.taken for each in found)


def test_the_same_seed_gives_the_same_mutations_and_another_number_of_jobs_changes_nothing() -> None:
    one = mutate(shop, GOAL, kinds=kinds("value drifted"), seed=3, jobs=1, most=4)
    other = mutate(shop, GOAL, kinds=kinds("value drifted"), seed=3, jobs=8, most=4)
    assert [(each.mutation, each.status) for each in one.verdicts] == [
        (each.mutation, each.status) for each in other.verdicts
    ]


def test_a_part_of_the_replays_is_chosen_by_the_seed() -> None:
    assert len(mutate(shop, GOAL, most=3).verdicts) == 3


def test_tools_may_come_as_a_list_and_from_a_world_that_is_tended() -> None:
    opened: list[str] = []

    @contextmanager
    def tended() -> Iterator[Sequence[Any]]:
        opened.append("open")
        yield shop()
        opened.append("closed")

    report = mutate(tended, GOAL, kinds=kinds("tool slower"), most=4)
    report.assert_holds()
    assert opened.count("open") == opened.count("closed") == len(report.verdicts) + 1
    reading = [Calls().tool("a"), Calls().tool("b", "a")]
    mutate(reading, Goal(wants=("b",)), most=4).assert_holds()


def test_any_graph_that_is_built_over_the_watched_tools_can_be_tested() -> None:
    made: list[int] = []

    def build(tools: Sequence[BaseTool], saver: Any, settings: Any) -> Any:
        made.append(len(tools))
        return build_graph(tools, checkpointer=saver, settings=settings)

    mutate(shop, GOAL, build=build, kinds=kinds("answer lost"))
    assert set(made) == {5}


async def double(a: int) -> int:
    return 2 * a


def test_coroutines_and_coroutine_probes_are_watched_as_well() -> None:
    def make() -> list[BaseTool]:
        there: dict[str, int] = {}

        async def write(b: int) -> int:
            there["c"] = b
            return b

        async def look() -> int | None:
            return there.get("c")

        calls = Calls()
        promised = {"effect": "mutating", "idempotent": True, "observe": look, "ensures": "artifacts.c == artifacts.b"}
        return [calls.tool("a"), calls.tool("b", "a", double), calls.tool("c", "b", write, **promised)]

    probed = {"value drifted", "effect undone", "answer lost"}
    report = mutate(make, Goal(wants=("c",)), kinds=kinds(*probed))
    report.assert_holds()
    assert {each.kind for each in report.verdicts} == probed


def test_an_undisturbed_run_that_fails_is_refused() -> None:
    with pytest.raises(ValueError, match="has to be satisfied, and is handed_over"):
        mutate([Calls().tool("a", "", always(PermissionError("no")))], Goal(wants=("a",)))


def test_the_document_holds_each_row_and_each_replay() -> None:
    found = mutate(shop, GOAL, settings=calm(), kinds=kinds("criteria rewritten")).document()
    assert (found["holds"], found["replays"], found["points"], found["depth_ratio"]) == (True, 10, 10, 1.0)
    rows, replays = found["rows"], found["mutations"]
    assert isinstance(rows, list) and isinstance(replays, list)
    assert [each["row"] for each in rows if isinstance(each, dict)] == [each.name for each in MATRIX]
    assert len(replays) == 10


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_packaged_scenarios_hold_for_some_mutations(name: str) -> None:
    mutate_ground(ground_in(SCENARIOS[name]), built, KINDS, calm(), seed=7, most=5).assert_holds()

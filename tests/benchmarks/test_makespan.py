"""The short form of `make bench`: ratios within one run, never times alone."""

from collections.abc import Callable, Sequence

import pytest

from tests.benchmarks.dags import Task, critical_path, ends, ragged
from tests.benchmarks.drivers import in_waves, through_ainvoke, through_invoke

ATTEMPTS = 6
"""The machine may be busy with something else for a while; it cannot make a run faster than it is."""


@pytest.mark.parametrize("run", [through_invoke, through_ainvoke])
def test_a_ragged_plan_takes_hardly_longer_than_its_critical_path(run: Callable[[Sequence[Task]], float]) -> None:
    tasks = ragged(seed=1)
    shortest = critical_path(tasks)
    ratios: list[float] = []
    while len(ratios) < ATTEMPTS and min(ratios, default=9.0) > 1.15:
        ratios.append(run(tasks) / shortest)
    assert min(ratios) <= 1.15, ratios


def test_waves_wait_for_their_slowest_step() -> None:
    lanes = (Task("a", 0.3), Task("b", 0.02), Task("c", 0.02, ("a",)), Task("d", 0.3, ("b",)))
    assert in_waves(lanes) / critical_path(lanes) > 1.5


def test_the_critical_path_is_the_longest_chain() -> None:
    tasks = (Task("a", 1.0), Task("b", 2.0), Task("c", 3.0, ("a", "b")), Task("d", 1.0, ("a",)))
    assert critical_path(tasks) == 5.0
    assert ends(tasks) == ("c", "d")

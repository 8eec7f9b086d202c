"""The short form of `make bench`: ratios within one run, never times alone, and never close to what is measured."""

from tests.benchmarks.dags import Task, critical_path, ends, uneven
from tests.benchmarks.drivers import in_waves, through_ainvoke, through_invoke

ATTEMPTS = 4
"""The machine may be busy with something else for a while; it cannot make a run faster than it is."""


def test_a_plan_whose_every_wave_has_one_slow_step_takes_much_less_than_its_waves() -> None:
    tasks = uneven(lanes=4)
    ratios: list[tuple[float, float]] = []
    while len(ratios) < ATTEMPTS and min(map(max, ratios), default=1.0) > 0.7:
        waves = in_waves(tasks)
        ratios.append((through_invoke(tasks) / waves, through_ainvoke(tasks) / waves))
    assert min(map(max, ratios)) <= 0.7, ratios


def test_waves_wait_for_their_slowest_step() -> None:
    lanes = (Task("a", 0.3), Task("b", 0.02), Task("c", 0.02, ("a",)), Task("d", 0.3, ("b",)))
    assert in_waves(lanes) / critical_path(lanes) > 1.5


def test_the_critical_path_is_the_longest_chain() -> None:
    tasks = (Task("a", 1.0), Task("b", 2.0), Task("c", 3.0, ("a", "b")), Task("d", 1.0, ("a",)))
    assert critical_path(tasks) == 5.0
    assert ends(tasks) == ("c", "d")


def test_uneven_lanes_are_slow_one_after_the_other() -> None:
    tasks = uneven(lanes=3, short=1.0, long=10.0)
    assert critical_path(tasks) == 12.0
    waves = [tasks[start : start + 3] for start in range(0, 9, 3)]
    assert [sum(each.seconds == 10.0 for each in wave) for wave in waves] == [1, 1, 1]

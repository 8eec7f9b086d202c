"""The short form of `make bench`: what a step leaves on disk, and that no step costs more than the first ones did."""

import random

from tests.benchmarks.growth import MEGABYTE, chain, grown, lanes

STEPS = 150
ATTEMPTS = 4
"""The machine may be busy with something else for a while."""


def test_a_long_run_keeps_its_pace_and_its_size() -> None:
    flat: list[float] = []
    while len(flat) < ATTEMPTS and min(flat, default=9.0) > 1.5:
        run = grown(chain(STEPS))
        assert run.stored / run.steps < 6_600, run.tables  # 20 MB for 3,000
        flat.append(run.flat)
    assert min(flat) <= 1.5, flat


def test_steps_side_by_side_leave_less() -> None:
    run = grown(lanes(STEPS))
    assert run.stored / run.steps < 6_600, run.tables


def test_what_many_writes_return_is_stored_once_though_the_journal_has_it_too() -> None:
    bodies = [random.Random(each).randbytes(MEGABYTE // 8).hex() for each in range(8)]  # hardly to be compressed
    run = grown(chain(8), "mutating", bodies)
    assert run.stored < 1.5 * sum(map(len, bodies)), run.tables


def test_many_steps_over_a_large_artifact_store_it_once() -> None:
    run = grown(chain(50), bodies=["x" * MEGABYTE])
    assert run.stored < 2 * MEGABYTE, run.tables

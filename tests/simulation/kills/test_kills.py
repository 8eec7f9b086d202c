"""SIGKILL anywhere, then another process: some of the schedules that `make kills` has by the thousand."""

from dataclasses import replace

import pytest

from tests.postgres import Server
from tests.simulation.kills.campaign import campaign, carried_out, shrunk, story
from tests.simulation.kills.script import BOUNDARIES, Fault, Kill, Life, Script, draw, smaller

AGAIN, RESUME, NATIVE = Life(), Life(again=False), Life(native=True)


def dies(boundary: str, when: str, nth: int = 1, **more: bool) -> Life:
    return Life(Kill(boundary, when, nth), **more)


KNOWN = {
    # `kintsugi resume` took a run for one that waits, whose node had written and whose checkpoint was missing
    "a node has written, and its checkpoint is missing": Script(
        (dies("put", "before", 10), RESUME), subject="config-report"
    ),
    "an effect is done and not in the journal": Script((dies("effect", "after", 5), NATIVE)),
    "a person is asked about a charge that happened": Script(
        (dies("waiting", "before"), dies("waiting", "after"), RESUME), faults=(Fault("charge", 1, "lost"),)
    ),
    "a person is asked about a charge that did not happen": Script(
        (dies("waiting", "after"), RESUME), faults=(Fault("charge", 1, "reset"),)
    ),
    # the person looked while the call that had run out of time was still at work, and it was made beside it
    "a person lets a charge be made again that is about to happen": Script(
        (NATIVE,), wants=("charge",), faults=(Fault("charge", 1, "slow"),)
    ),
    "a mail of the inner loop is sent, and its process dies": Script((dies("effect", "after", 13, native=True), AGAIN)),
    "the goal is changed, and the process that heard it dies": Script(
        (dies("inbox", "after"), dies("put", "before", 3, again=False), RESUME),
        first=("ship",),
        faults=(Fault("parcel_b", 1, "goal"), Fault("invoice", 1, "edit")),
    ),
    "the processes die before they have done anything": Script((dies("put", "before"), dies("node", "before"), RESUME)),
    "the thread is still held by a dead process": Script(
        (dies("lease", "after"), dies("lease", "before", 2), dies("lease", "before"), NATIVE), wants=("ship",)
    ),
}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_what_was_thought_of_or_went_wrong_once_holds(known: Script) -> None:
    run = carried_out(known)
    assert not run.wrong, story(known)
    assert len(run.kills) == known.kills


# A moment may come when a fast machine is done: each range has a seed that dies where every run passes (2 and 4).
@pytest.mark.parametrize("first", range(0, 8, 4))
def test_whatever_is_killed_and_wherever_nothing_is_lost_and_nothing_happens_twice(first: int) -> None:
    tally = campaign(range(first, first + 4), workers=1)
    assert not tally.broken, story(draw(tally.broken[0][0]))
    assert tally.schedules.total() == 4
    assert tally.kills.total() > 0


def test_the_same_holds_for_runs_that_are_kept_in_postgres(server: Server) -> None:
    tally = campaign(range(4, 6), workers=1, server=server)
    assert not tally.broken, story(draw(tally.broken[0][0]), server)
    assert tally.kills.total() > 0


@pytest.mark.parametrize(
    ("sabotage", "found"),
    [("forgetful", "parcel_c happened 2 times"), ("careless", "order was verified, and was made again")],
)
def test_a_runtime_that_does_not_keep_what_it_must_is_found_out(sabotage: str, found: str) -> None:
    broken = Script((dies("effect", "after", 6), RESUME), parallel=1, sabotage=sabotage)
    assert found in carried_out(broken).wrong


def test_a_schedule_that_breaks_shrinks_to_what_breaks_it() -> None:
    broken = Script((dies("effect", "after", 6), RESUME), faults=(Fault("label", 1, "lost"),), parallel=1)
    small = shrunk(replace(broken, sabotage="forgetful"))
    assert (small.kills, small.faults, small.sabotage) == (1, (), "forgetful")


def test_a_seed_is_the_same_schedule_every_time_and_the_seeds_reach_every_boundary() -> None:
    drawn = [draw(seed) for seed in range(1000)]
    assert drawn == [draw(seed) for seed in range(1000)]
    ends = [life.end for each in drawn for life in each.lives]
    assert {(end.boundary, end.when) for end in ends if isinstance(end, Kill)} == {
        (boundary, when) for boundary in BOUNDARIES for when in ("before", "after")
    }
    assert all(each.lives[-1].end is None for each in drawn)


def test_a_smaller_schedule_has_one_thing_less_and_still_lives_in_the_end() -> None:
    for less in smaller(draw(1)):
        assert less != draw(1)
        assert less.lives[-1].end is None

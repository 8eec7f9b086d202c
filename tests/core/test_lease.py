"""Who may have a thread: every combination of what is written down and what is known of its holder."""

import pytest

from agent.core.lease import Busy, Halt, Holder, Lease, Life, Standing, Superseded, standing, succeeded

ME, OTHER = Holder(place="here", pid=1, born="9"), Holder(place="there", pid=1)


def lease(expires: float = 100.0, **more: object) -> Lease:
    return Lease.model_validate({"thread": "t", "token": 3, "holder": OTHER, "expires": expires, **more})


@pytest.mark.parametrize(
    ("found", "life", "now", "token", "seen"),
    [
        pytest.param(None, Life.GONE, 0.0, None, "free", id="never held"),
        pytest.param(lease(0.0), Life.RUNNING, 0.0, None, "free", id="given back"),
        pytest.param(lease(), Life.UNKNOWN, 200.0, 3, "mine", id="mine, however late"),
        pytest.param(lease(), Life.GONE, 0.0, None, "dead", id="a dead holder is not waited for"),
        pytest.param(lease(), Life.RUNNING, 99.0, None, "held", id="alive and in time"),
        pytest.param(lease(), Life.RUNNING, 100.0, None, "expired", id="alive and silent"),
        pytest.param(lease(), Life.UNKNOWN, 99.0, None, "held", id="elsewhere and in time"),
        pytest.param(lease(), Life.UNKNOWN, 100.0, None, "expired", id="elsewhere and silent"),
        pytest.param(lease(), Life.HOLDING, 1e9, None, "held", id="a call of this process never runs out"),
        pytest.param(lease(), Life.RUNNING, 99.0, 2, "held", id="what was mine once"),
    ],
)
def test_a_lease_says_whether_the_thread_can_be_had(
    found: Lease | None, life: Life, now: float, token: int | None, seen: str
) -> None:
    assert standing(found, life, now, token) is Standing(seen)


def test_the_token_grows_with_every_holder_and_a_request_is_for_one_holder_only() -> None:
    first = succeeded(None, Standing.FREE, ME, "t", 10.0)
    assert (first.token, first.holder, first.expires) == (1, ME, 10.0)
    after = succeeded(lease(0.0, halt=Halt.DRAIN), Standing.FREE, ME, "t", 10.0)
    assert (after.token, after.halt, after.strays) == (4, Halt.NO, ())


def test_a_holder_that_fell_silent_is_remembered_and_one_that_has_ended_is_not() -> None:
    assert succeeded(lease(), Standing.EXPIRED, ME, "t", 10.0).strays == (OTHER,)
    assert succeeded(lease(), Standing.DEAD, ME, "t", 10.0).strays == ()
    assert succeeded(lease(0.0, strays=[OTHER]), Standing.FREE, ME, "t", 10.0).strays == (OTHER,)


def test_both_refusals_say_who_works_on_which_thread() -> None:
    assert str(Busy(lease())) == "process 1 is working on thread 't'"
    assert "thread 't' was silent for too long" in str(Superseded("t"))

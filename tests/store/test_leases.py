"""Leases in the run's database: taken, kept alive, given back, lost; and what is written under an old token."""

import asyncio
import gc
import os
import signal
import threading
import time
from functools import partial

import pytest

from agent.core.effect import EffectIdentity, Fresh
from agent.core.lease import Busy, Halt, Lease, Superseded
from agent.core.value import digest
from agent.store.database import memory_database, open_database
from agent.store.hold import Hold
from agent.store.journal import DatabaseJournal
from agent.store.leases import Leases

SECONDS = 60.0

HOLDER = """
import sys, threading
from agent.store.database import open_database
from agent.store.leases import Leases
with open_database(sys.argv[1]) as database, Leases(database, float(sys.argv[2])).held("t") as hold:
    print(hold.token, flush=True)
    sys.stdin.readline()
"""


class Time:
    """Seconds since the epoch, set forward by a test."""

    def __init__(self):
        self.ahead = 0.0

    def __call__(self):
        return time.time() + self.ahead


@pytest.fixture(params=["file", "memory"])
def leases(request, path):
    with open_database(path) if request.param == "file" else memory_database() as database:
        yield Leases(database, 30.0)


def until(true):
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def held(leases: Leases) -> Hold:
    taken = await leases.take("t")
    assert isinstance(taken, Hold)
    return taken


def expiry(leases: Leases) -> float:
    found = leases.holder("t")
    assert found is not None
    return found.expires


async def test_one_caller_has_a_thread_and_the_next_sees_who_it_is(leases):
    first = await leases.take("t")
    found = await leases.take("t")
    assert isinstance(found, Lease)
    assert found.holder.pid == os.getpid()
    assert isinstance(await leases.take("another"), Hold)
    await leases.release(first)
    second = await leases.take("t")
    assert (first.token, second.token) == (1, 2)
    assert second.is_alone()


async def test_of_many_that_ask_at_once_one_has_the_thread(path):
    with open_database(path) as one, open_database(path) as two:
        taken = await asyncio.gather(*(Leases(each, 30.0).take("t") for each in [one, two] * 10))
    assert sum(isinstance(each, Hold) for each in taken) == 1


async def test_a_hold_that_was_dropped_without_a_word_is_none(leases):
    hold = await held(leases)
    assert isinstance(await leases.take("t"), Lease)
    del hold
    gc.collect()
    assert isinstance(await leases.take("t"), Hold)


async def test_a_call_of_this_process_keeps_its_thread_however_long_it_lasts(path):
    now = Time()
    with open_database(path) as database:
        leases = Leases(database, 30.0, now)
        hold = await held(leases)
        now.ahead = 1e6
        assert isinstance(await leases.take("t"), Lease)
        await leases.release(hold)


async def test_a_lease_is_kept_alive_while_its_call_goes_on_and_no_thread_is_left_after_it(path):
    with open_database(path) as database:
        leases = Leases(database, 0.03)
        hold = await held(leases)
        expires = expiry(leases)
        until(lambda: expiry(leases) > expires)  # blocks the loop, as a tool may
        await leases.release(hold)
        until(lambda: not any(each.name == "kintsugi-lease" for each in threading.enumerate()))
        assert leases.holder("t") is None


def test_a_dead_holder_is_not_waited_for(path, child):
    holder = child(HOLDER, path, 3600)
    assert holder.stdout.readline() == "1\n"
    with open_database(path) as database:
        leases = Leases(database, 30.0)
        with pytest.raises(Busy, match=f"process {holder.pid} is working on thread 't'"), leases.held("t"):
            pass
        holder.kill()
        holder.wait()
        assert leases.holder("t") is None
        with leases.held("t") as hold:
            assert (hold.token, hold.is_alone()) == (2, True)


def test_a_killed_holder_whom_nobody_has_buried_is_dead_too(path, child):
    holder = child(HOLDER, path, 3600)
    holder.stdout.readline()
    os.kill(holder.pid, signal.SIGKILL)
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    with open_database(path) as database, Leases(database, 30.0).held("t") as hold:
        assert hold.token == 2


def test_a_stopped_holder_keeps_the_thread_until_its_lease_runs_out_and_then_has_lost_it(path, child):
    holder, now = child(HOLDER, path, 0.3), Time()
    holder.stdout.readline()
    holder.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
    try:
        with open_database(path) as database:
            leases = Leases(database, 30.0, now)
            now.ahead = -1e6
            with pytest.raises(Busy), leases.held("t"):
                pass
            now.ahead = 1e6
            with leases.held("t") as hold:
                assert (hold.token, hold.is_alone()) == (2, False)
            with leases.held("t") as hold:  # it may still wake up
                assert (hold.token, hold.is_alone()) == (3, False)
            holder.kill()
            holder.wait()
            with leases.held("t") as hold:
                assert hold.is_alone()
    finally:
        holder.send_signal(signal.SIGCONT)


async def test_who_has_lost_a_thread_is_told_and_begins_nothing_more(path):
    with open_database(path) as database:
        leases, heard = Leases(database, 0.03), threading.Event()
        hold, journal = await held(leases), DatabaseJournal(database)
        hold.listen(heard.set)
        call = EffectIdentity("t", "pay", digest({}))
        assert await journal.begin(call, "s1", hold.token) == Fresh(1)
        database.quick.call(partial(_take_away, "t"))
        with pytest.raises(Superseded):
            await journal.begin(EffectIdentity("t", "pay", digest({"again": True})), "s1", hold.token)
        await journal.done(call, "paid")  # that is a fact about the world, whoever has the thread
        assert len(await journal.entries("t")) == 1
        assert heard.wait(SECONDS)
        with pytest.raises(Superseded, match="thread 't'"):
            hold.check()
        await leases.release(hold)
        (expires,) = database.quick.call(_expires)
        assert expires > 0  # what it gives back is its own, not the other's


async def test_a_holder_hears_how_it_is_asked_to_stop_and_never_less_urgently(leases):
    assert not leases.ask("t", Halt.DRAIN)
    hold, heard = await held(leases), threading.Event()
    hold.listen(heard.set)
    assert leases.ask("t", Halt.DRAIN)
    assert heard.wait(SECONDS)
    assert hold.halt.value == "drain"
    assert leases.ask("t", Halt.NOW)
    until(lambda: hold.halt.value == "now")
    assert leases.ask("t", Halt.DRAIN)
    hold.ask(Halt.DRAIN)
    assert hold.halt.value == "now"
    await leases.release(hold)
    assert (await held(leases)).halt is Halt.NO


def _take_away(thread, connection):
    connection.execute("UPDATE kintsugi_leases SET token = token + 1 WHERE thread = ?", (thread,))


def _expires(connection):
    return connection.execute("SELECT expires FROM kintsugi_leases").fetchone()

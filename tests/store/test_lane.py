import asyncio
import gc
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.store.connection import Connection, transaction
from agent.store.database import Place, memory_database, open_database
from agent.store.lane import Lane
from agent.store.sqlite import connect


def insert(connection: Connection) -> None:
    connection.execute("INSERT INTO kintsugi_artifacts (digest, body) VALUES (?, ?)", (secrets.token_hex(), b""))


def count(connection: Connection) -> int:
    (found,) = connection.execute("SELECT count(*) FROM kintsugi_artifacts").fetchone()
    return int(found)


def test_a_failed_transaction_leaves_nothing(place: Place) -> None:
    def failing(connection: Connection) -> None:
        with transaction(connection, "42"):
            insert(connection)
            raise KeyError("stop")

    with open_database(place) as database:
        with pytest.raises(KeyError):
            database.quick.call(failing)
        assert database.quick.call(count) == 0


def test_many_threads_and_both_lanes_may_write_at_once(place: Place) -> None:
    with open_database(place) as database, ThreadPoolExecutor(16) as threads:
        for written in [threads.submit(lane.call, insert) for lane in (database.quick, database.durable) * 50]:
            written.result()
        assert database.quick.call(count) == 100


def test_one_lane_serves_several_event_loops_in_turn(place: Place) -> None:
    with open_database(place) as database:
        for _ in range(3):
            asyncio.run(database.quick.run(insert))
        assert database.quick.call(count) == 3


async def test_a_busy_lane_does_not_block_the_event_loop() -> None:
    free = threading.Event()
    with memory_database() as database:
        busy = asyncio.ensure_future(database.quick.run(lambda _: free.wait()))
        await asyncio.sleep(0)
        assert not busy.done()
        free.set()
        assert await busy


async def test_work_handed_over_is_done_although_its_caller_is_cancelled() -> None:
    free = threading.Event()
    with memory_database() as database:
        database.quick.submit(lambda _: free.wait())
        writing = asyncio.ensure_future(database.quick.run(insert))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        free.set()
        assert await database.quick.run(count) == 1


def test_closing_finishes_what_was_handed_over(place: Place) -> None:
    free = threading.Event()
    with open_database(place) as database:
        database.quick.submit(lambda _: free.wait())
        database.quick.submit(insert)
        free.set()
    database.close()
    with open_database(place) as database:
        assert database.quick.call(count) == 1


def test_a_lane_that_nobody_holds_finishes_its_work_and_closes(path: Path) -> None:
    open_database(path).close()
    free, earlier = threading.Event(), set(threading.enumerate())
    lane = Lane(connect(path, "NORMAL"))
    lane.submit(lambda _: free.wait())
    written = lane.submit(insert)
    (thread,) = set(threading.enumerate()) - earlier
    del lane
    gc.collect()
    free.set()
    written.result()
    thread.join()
    gc.collect()
    # The last connection to close removes the log.
    assert [each.name for each in path.parent.iterdir()] == [path.name]

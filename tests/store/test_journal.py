import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.effect import (
    Begun,
    Done,
    EffectEntry,
    EffectIdentity,
    EffectJournal,
    EffectStatus,
    Fresh,
    Open,
    UnknownEffect,
)
from agent.core.value import digest
from agent.store.artifacts import DamagedArtifact, DatabaseArtifacts
from agent.store.database import Place, memory_database, open_database
from agent.store.journal import DatabaseJournal, MemoryJournal
from tests.store.conftest import Child, spelled


def effect(thread: str = "42", tool: str = "post", repetition: int = 0, **args: str) -> EffectIdentity:
    return EffectIdentity(thread, tool, digest({**args}), repetition)


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def journal(request: pytest.FixtureRequest, path: Path) -> Iterator[EffectJournal]:
    if request.param == "memory":
        yield MemoryJournal()
        return
    with open_database(path if request.param == "sqlite" else request.getfixturevalue("postgres")) as database:
        yield DatabaseJournal(database)


async def test_the_first_to_begin_is_let_through_and_the_next_is_told_who_was(journal: EffectJournal) -> None:
    assert await journal.begin(effect(), "s1") == Fresh(1)
    assert await journal.begin(effect(), "s2") == Open("s1", 1)


@pytest.mark.parametrize("other", [effect(thread="43"), effect(tool="put"), effect(a="b"), effect(repetition=1)])
async def test_another_thread_tool_argument_or_repetition_is_another_effect(
    journal: EffectJournal, other: EffectIdentity
) -> None:
    await journal.begin(effect(), "s1")
    assert await journal.begin(other, "s1") == Fresh(1)


@pytest.mark.parametrize("result", [None, {"id": 1}, "\ud800\0", 10**400, float("inf"), [[], {}]])
async def test_what_was_done_is_answered_with_its_result_whatever_step_asks(
    journal: EffectJournal, result: object
) -> None:
    await journal.begin(effect(), "s1")
    await journal.done(effect(), result)  # type: ignore[arg-type]  # a table of JSON values
    assert await journal.begin(effect(), "s9") == Done(result)  # type: ignore[arg-type]


async def test_a_large_result_lies_once_in_the_database_and_is_read_back(place: Place) -> None:
    large, small = {"rows": ["\ud800\0", *range(5000)]}, {"id": 1}
    with open_database(place) as database:
        journal, artifacts = DatabaseJournal(database), DatabaseArtifacts(database)
        for result, identity in ((large, effect(a="1")), (large, effect(a="2")), (small, effect(a="3"))):
            await journal.begin(identity, "s1")
            await journal.done(identity, result)  # type: ignore[arg-type]  # a JSON value
        assert await artifacts.put(large) == digest(large)  # type: ignore[arg-type]
        assert await artifacts.get(digest(large)) == large  # type: ignore[arg-type]
        of_entries = "SELECT sum(length(result)), count(*) FROM kintsugi_effects"
        assert database.durable.call(lambda c: c.execute(of_entries).fetchone()) == (4 + 4 + 8, 3)
        assert database.durable.call(lambda c: c.execute("SELECT count(*) FROM kintsugi_artifacts").fetchone()) == (1,)
    with open_database(place) as database:
        journal = DatabaseJournal(database)
        assert [each.result for each in await journal.entries("42")] == [large, large, small]
        assert await journal.begin(effect(a="2"), "s9") == Done(large)  # type: ignore[arg-type]


async def test_a_result_that_lies_in_its_entry_is_read_however_large(place: Place) -> None:
    with open_database(place) as database:
        earlier = DatabaseJournal(database, inline_bytes=10**9)
        await earlier.begin(effect(), "s1")
        await earlier.done(effect(), "x" * 9000)
        assert await DatabaseJournal(database).begin(effect(), "s2") == Done("x" * 9000)


async def test_a_large_result_that_changed_on_disk_is_never_taken_for_what_the_call_gave(place: Place) -> None:
    with open_database(place) as database:
        journal = DatabaseJournal(database)
        await journal.begin(effect(), "s1")
        await journal.done(effect(), "x" * 9000)
        database.durable.call(lambda c: c.execute("UPDATE kintsugi_artifacts SET body = ?", (b'"y"',)))
        with pytest.raises(DamagedArtifact, match="restore the store from a backup"):
            await journal.begin(effect(), "s2")
        assert await DatabaseJournal(database).begin(effect(a="other"), "s2") == Fresh(1)


async def test_the_first_outcome_stays(journal: EffectJournal) -> None:
    await journal.begin(effect(), "s1")
    await journal.adopted(effect(), "seen")
    await journal.done(effect(), "late")
    await journal.absent(effect(), 1)
    assert await journal.begin(effect(), "s2") == Done("seen")
    assert [each.status for each in await journal.entries("42")] == [EffectStatus.ADOPTED]


async def test_an_effect_that_did_not_happen_may_be_tried_again(journal: EffectJournal) -> None:
    await journal.begin(effect(), "s1")
    await journal.absent(effect(), 1)
    assert await journal.begin(effect(), "s2") == Fresh(2)
    assert await journal.begin(effect(), "s3") == Open("s2", 2)


async def test_a_late_finding_about_an_earlier_attempt_does_not_free_the_one_under_way(
    journal: EffectJournal,
) -> None:
    await journal.begin(effect(), "s1")
    await journal.absent(effect(), 1)
    await journal.begin(effect(), "s2")
    await journal.absent(effect(), 1)
    assert await journal.begin(effect(), "s3") == Open("s2", 2)


async def test_an_attempt_that_was_written_off_and_then_reports_success_did_happen(
    journal: EffectJournal,
) -> None:
    await journal.begin(effect(), "s1")
    await journal.absent(effect(), 1)
    await journal.done(effect(), "after all")
    assert await journal.begin(effect(), "s2") == Done("after all")


async def test_an_end_without_a_beginning_is_a_mistake(journal: EffectJournal) -> None:
    for report in (journal.done(effect(), 1), journal.adopted(effect(), 1), journal.absent(effect(), 1)):
        with pytest.raises(UnknownEffect):
            await report
    assert await journal.entries("42") == ()


async def test_entries_are_those_of_the_thread_in_the_order_they_were_intended(
    journal: EffectJournal,
) -> None:
    for tool in ("z", "a", "m"):
        await journal.begin(effect(tool=tool), "s1")
    await journal.begin(effect(thread="43"), "s1")
    await journal.done(effect(tool="z"), 7)
    assert await journal.entries("42") == (
        EffectEntry(effect(tool="z"), "s1", EffectStatus.DONE, 1, 7),
        EffectEntry(effect(tool="a"), "s1", EffectStatus.OPEN, 1),
        EffectEntry(effect(tool="m"), "s1", EffectStatus.OPEN, 1),
    )


async def test_a_result_changed_by_the_caller_later_is_not_changed_in_the_journal(
    journal: EffectJournal,
) -> None:
    result = {"rows": [1]}
    await journal.begin(effect(), "s1")
    await journal.done(effect(), result)  # type: ignore[arg-type]  # dicts are invariant
    result["rows"].append(2)
    assert await journal.begin(effect(), "s1") == Done({"rows": [1]})


async def test_what_a_step_has_left_open_is_known_and_nothing_else(journal: EffectJournal) -> None:
    for args, step in (("a", "s1"), ("b", "s1"), ("c", "s2"), ("d", "s1"), ("e", "s1")):
        await journal.begin(effect(n=args), step)
    await journal.begin(effect(thread="43"), "s1")
    await journal.done(effect(n="a"), "x" * 9000)
    await journal.absent(effect(n="d"), 1)
    assert await journal.undecided("42", {"s1"}) == (effect(n="b"), effect(n="e"))


async def test_to_ask_for_them_takes_no_more_work_in_a_long_journal_than_in_a_short_one(path: Path) -> None:
    with open_database(path) as database:
        journal, taken = DatabaseJournal(database), list[int]()
        for number in range(201):
            await journal.begin(effect(n=str(number)), "s1")
            await journal.done(effect(n=str(number)), number)
            if number in (2, 200):
                worked: list[None] = []
                database.durable.call(lambda each: each.set_progress_handler(lambda: worked.append(None), 1))  # type: ignore[attr-defined]  # noqa: B023
                assert await journal.undecided("42", {"s1"}) == ()
                database.durable.call(lambda each: each.set_progress_handler(None, 1))  # type: ignore[attr-defined]
                taken.append(len(worked))
    few, many = taken
    assert few == many


async def test_of_many_that_ask_at_once_one_is_let_through(journal: EffectJournal) -> None:
    answers = await asyncio.gather(*(journal.begin(effect(), f"s{n}") for n in range(20)))
    assert sum(isinstance(each, Fresh) for each in answers) == 1


async def test_a_caller_cancelled_before_it_learns_the_answer_leaves_no_doubt() -> None:
    free = threading.Event()
    database = memory_database()
    journal = DatabaseJournal(database)
    database.durable.submit(lambda _: free.wait())
    asking = asyncio.ensure_future(journal.begin(effect(), "s1"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    free.set()
    assert await journal.begin(effect(), "s2") == Fresh(2)


async def test_a_caller_cancelled_while_another_holds_the_effect_does_not_free_it() -> None:
    free = threading.Event()
    database = memory_database()
    journal = DatabaseJournal(database)
    await journal.begin(effect(), "s1")
    database.durable.submit(lambda _: free.wait())
    asking = asyncio.ensure_future(journal.begin(effect(), "s2"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    free.set()
    assert await journal.begin(effect(), "s3") == Open("s1", 1)


BEGIN = """
import asyncio, sys
from agent.store.database import open_database
from agent.core.effect import EffectIdentity
from agent.store.journal import DatabaseJournal
with open_database(sys.argv[1]) as database:
    print("ready", flush=True)
    for line in sys.stdin:
        identity = EffectIdentity("42", "post", line.strip())
        print(asyncio.run(DatabaseJournal(database).begin(identity, sys.argv[2])), flush=True)
"""


def test_of_two_processes_that_begin_one_effect_one_is_let_through(place: Place, child: Callable[..., Child]) -> None:
    two = [child(BEGIN, spelled(place), step) for step in ("s1", "s2")]
    assert [each.stdout and each.stdout.readline() for each in two] == ["ready\n"] * 2
    for number in range(50):
        for each in two:
            assert each.stdin is not None
            each.stdin.write(f"{number}\n")
            each.stdin.flush()
        answers = sorted(each.stdout.readline().split("(")[0] for each in two if each.stdout)
        assert answers == ["Fresh", "Open"]


def test_a_process_killed_between_begin_and_done_leaves_the_effect_open(
    place: Place, child: Callable[..., Child]
) -> None:
    killed = child(BEGIN, spelled(place), "s1")
    assert killed.stdin is not None
    assert killed.stdout is not None
    killed.stdin.write("0\n")
    killed.stdin.flush()
    assert [killed.stdout.readline() for _ in range(2)] == ["ready\n", "Fresh(attempts=1)\n"]
    killed.kill()
    killed.wait()

    async def asked_again() -> Begun:
        with open_database(place) as database:
            return await DatabaseJournal(database).begin(EffectIdentity("42", "post", "0"), "s2")  # type: ignore[arg-type]

    assert asyncio.run(asked_again()) == Open("s1", 1)

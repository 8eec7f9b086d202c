"""A changed goal waits in the inbox until a checkpoint says that it was heard."""

import asyncio

from agent.core.goal import Goal
from agent.store.database import Database
from agent.store.inbox import GoalInbox


def test_a_letter_is_there_until_it_was_heard_and_then_gone(database: Database) -> None:
    inbox = GoalInbox(database)
    inbox.put("t", Goal(wants=("a",)))
    letter = asyncio.run(inbox.newer("t", 0))
    assert letter is not None
    assert letter.goal.wants == ("a",)
    assert asyncio.run(inbox.newer("t", 0)) == letter  # a kill before the checkpoint: it is still there
    assert asyncio.run(inbox.newer("t", letter.number)) is None
    assert inbox.unheard("t", 0) is None


def test_the_last_letter_counts_and_threads_do_not_hear_each_other(database: Database) -> None:
    inbox = GoalInbox(database)
    for name in ("a", "b"):
        inbox.put("t", Goal(wants=(name,)))
    assert inbox.unheard("other", 0) is None
    goal = inbox.unheard("t", 0)
    assert goal is not None
    assert goal.wants == ("b",)


def test_numbers_are_never_used_again(database: Database) -> None:
    inbox = GoalInbox(database)
    inbox.put("t", Goal(wants=("a",)))
    first = asyncio.run(inbox.newer("t", 0))
    assert first is not None
    asyncio.run(inbox.newer("t", first.number))
    inbox.put("t", Goal(wants=("b",)))
    second = asyncio.run(inbox.newer("t", first.number))
    assert second is not None
    assert second.number > first.number

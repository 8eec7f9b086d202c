"""Ground truth: what a commit does to versions, and what survives an equal one."""

from agent.core.value import digest
from agent.core.world import commit, given, seen
from tests.builders import artifact, world


def test_new_content_is_a_new_version_and_equal_content_is_not() -> None:
    state = commit(world(), artifact("a", 1))
    assert state.artifacts["a"].version == 1
    assert commit(state, artifact("a", 1)).artifacts["a"].version == 1
    assert commit(state, artifact("a", 2)).artifacts["a"].version == 2


def test_a_commit_lifts_the_mark_and_notes_at_which_world_it_was_verified() -> None:
    state = world(artifact("a", mark="root"), artifact("b"))
    after = commit(state, artifact("a", 1))
    assert after.holds("a")
    assert after.artifacts["a"].verification.world_version == after.version == state.version + 1


def test_what_was_seen_is_seen_at_this_tick() -> None:
    state = world(artifact("a", seen=digest(1))).ticked()
    assert state.artifacts["a"].seen_at < state.tick
    assert seen(state, "a").artifacts["a"].seen_at == state.tick


def test_given_values_are_taken_once_and_again_when_they_differ() -> None:
    body = artifact("n", 1, producer="goal")
    state = given({"n": 1}, [body], world())
    assert given({"n": 1}, [body], state) == state
    other = given({"n": 2}, [artifact("n", 2, producer="goal")], state)
    assert other.artifacts["n"].version == 2


def test_digests_are_of_what_holds() -> None:
    state = world(artifact("a", 1), artifact("b", 2, mark="derived"))
    assert state.digests(["a", "b", "c"]) == {"a": digest(1)}

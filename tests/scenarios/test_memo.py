"""The memo scenario: a source that goes down, and what becomes of the part that stood on it."""

import pytest

from agent.core.record import Recovered
from agent.scenarios import SCENARIOS
from agent.scenarios.memo_funding import ROUNDS
from agent.scenarios.memo_text import TOPICS
from tests.scenarios.driving import Place, drive, kill

MEMO = SCENARIOS["memo"]
RETRIES = 3


def rungs(state):
    return [str(each.choice.rung) for each in state["trace"] if isinstance(each, Recovered)]


def text(folder):
    return (folder / "world" / "memo.md").read_text()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["invoke", "ainvoke"])
def test_a_source_that_comes_back_is_asked_again(tmp_path, asynchronous):
    state = drive("memo", tmp_path, asynchronous=asynchronous)
    assert state["outcome"].status == "satisfied"
    assert MEMO.check(tmp_path / "world") == []
    assert rungs(state) == ["retry"]
    assert all(f"{each['raised']:,} EUR" in text(tmp_path) for each in ROUNDS)


def test_what_the_company_published_stands_in_for_a_source_that_stays_down(tmp_path):
    state = drive("memo", tmp_path, event="funding-down")
    assert state["outcome"].status == "satisfied"
    assert MEMO.check(tmp_path / "world") == []
    assert rungs(state) == [*["retry"] * RETRIES, "patch"]
    assert "The funding records could not be reached." in text(tmp_path)
    (step,) = (each for each in state["plan"].steps if "traction" in each.produces)
    assert step.intent == "Search the company's blog and press releases for signs of traction"


def test_a_part_that_nothing_tells_of_is_said_to_be_missing(tmp_path):
    state = drive("memo", tmp_path, event="nothing-published")
    assert state["outcome"].status == "satisfied"
    assert MEMO.check(tmp_path / "world") == []
    assert rungs(state) == [*["retry"] * RETRIES, "patch", "patch"]
    assert "## Traction\n\nMissing: the funding records could not be reached" in text(tmp_path)


def test_there_is_no_memo_without_records_where_they_are_required_and_the_end_says_why(tmp_path):
    state = drive("memo", tmp_path, event="traction-required")
    outcome = state["outcome"]
    assert outcome.status not in ("satisfied", "cancelled")
    assert "funding records" in outcome.reason
    assert MEMO.check(tmp_path / "world") == []
    assert set(outcome.artifacts) >= {f"notes_{topic}" for topic in TOPICS}  # what was found is kept
    # no wording of the plan makes the source answer: it is not asked over and over
    assert MEMO.counts(tmp_path / "world")["GET /rounds"] <= 2 * (RETRIES + 1)


def test_every_source_of_the_memo_is_a_verified_artifact(tmp_path):
    state = drive("memo", tmp_path, event="funding-down")
    world = state["world"]
    verified = {name for name in world.artifacts if world.holds(name)}
    assert verified - set(state["goal"].given) == {
        "company",
        "traction",
        "memo",
        *(f"notes_{topic}" for topic in TOPICS),
    }
    (cited,) = (each for each in state["goal"].criteria if each.id == "cited")
    assert cited.predicate and state["outcome"].status == "satisfied"
    listed = text(tmp_path).partition("## Sources")[2]
    assert listed.count("published/") == 3
    assert all(f"{topic}.md" in listed for topic in TOPICS)


def test_a_memo_that_cites_what_nobody_read_does_not_meet_the_goal(tmp_path):
    drive("memo", tmp_path)
    memo = tmp_path / "world" / "memo.md"
    memo.write_text(memo.read_text().rstrip("\n") + "\n7. a rumour\n")
    assert MEMO.check(tmp_path / "world") != []
    state = drive("memo", tmp_path)
    assert "rumour" not in memo.read_text()
    assert (state["outcome"].status, MEMO.check(tmp_path / "world")) == ("satisfied", [])


@pytest.mark.parametrize("place", [Place("read_published", "after"), Place("write_memo", "after")], ids=str)
def test_a_killed_run_goes_on_where_it_was_and_asks_the_source_no_more(tmp_path, place):
    kill("memo", tmp_path, place, "funding-down")
    state = drive("memo", tmp_path, resume=True)
    assert (state["outcome"].status, MEMO.check(tmp_path / "world")) == ("satisfied", [])
    assert MEMO.counts(tmp_path / "world")["GET /rounds"] == RETRIES + 1


def test_the_memo_fills_two_pages(tmp_path):
    drive("memo", tmp_path, faults=False)
    assert 450 <= len(text(tmp_path).split()) <= 1_100

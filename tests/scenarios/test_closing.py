"""The closing scenario: two branches, three faults of other kinds, and rates that are corrected in the middle."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core.plan import upstream
from agent.core.record import AttemptEnded, Recovered
from agent.core.value import JsonValue
from agent.scenarios import SCENARIOS
from agent.scenarios.closing_books import RATES_CORRECTED, STATEMENT, Books
from agent.scenarios.closing_data import BOOK, CORRECTED_RATES, JOURNAL, RATES, SHELVES, balances_of, differences_of
from agent.scenarios.closing_office import Office
from agent.scenarios.scenario import Conditions, tally_in
from tests.scenarios.driving import drive

CLOSING = SCENARIOS["closing"]


def recovered(state: dict[str, Any]) -> set[tuple[str, str]]:
    found = [each for each in state["trace"] if isinstance(each, Recovered)]
    return {(str(each.choice.rung), each.classified.failure.key) for each in found}


def counts(folder: Path) -> dict[str, int]:
    return CLOSING.counts(folder / "world")


def test_the_figures_are_what_they_should_be():
    assert balances_of(JOURNAL, RATES) == {"freight": -24_608, "sales": 237_280, "wages": -64_250}
    assert differences_of(BOOK, SHELVES) == {
        "north": {"bolt": -4, "washer": 2},
        "south": {"nut": -9},
        "west": {"washer": 5},
    }


@pytest.mark.parametrize("asynchronous", [False, True], ids=["invoke", "ainvoke"])
def test_each_fault_is_mended_on_its_rung_and_ends_like_an_undisturbed_closing(tmp_path, asynchronous):
    state = drive("closing", tmp_path, asynchronous=asynchronous)
    assert state["outcome"].status == "satisfied"
    assert CLOSING.check(tmp_path / "world") == []
    assert recovered(state) == {("rewrite", "journal"), ("retry", "count_south")}
    found = counts(tmp_path)
    assert (found["read_journal"], found["GET /counts south"]) == (2, 2)
    assert {count for name, count in found.items() if name not in ("read_journal", "GET /counts south")} == {1}


def test_the_adjustment_whose_answer_was_lost_is_adopted_and_not_booked_again(tmp_path):
    state = drive("closing", tmp_path)
    keys = {each.id: each.key for each in state["plan"].steps}
    adopted = [keys[each.step] for each in state["trace"] if isinstance(each, AttemptEnded) and each.how == "adopted"]
    assert adopted == ["adjusted_west"]
    assert counts(tmp_path)["POST /adjustments west"] == 1


def test_an_undisturbed_closing_has_fifteen_steps_in_two_branches_and_needs_no_recovery(tmp_path):
    state = drive("closing", tmp_path, faults=False)
    assert CLOSING.check(tmp_path / "world") == []
    assert recovered(state) == set()
    live = state["plan"].live()
    assert len(live) == 15
    statement, stocklist = (next(each.id for each in live if each.key == name) for name in ("statement", "stocklist"))
    assert not upstream(live, [statement]) & upstream(live, [stocklist])


def test_corrected_rates_redo_three_steps_of_one_branch(tmp_path):
    state = drive("closing", tmp_path, event="rates-corrected")
    assert state["outcome"].status == "satisfied"
    assert CLOSING.check(tmp_path / "world") == []
    assert ("rewrite", "rates") in recovered(state)
    found = counts(tmp_path)
    assert [found[name] for name in ("read_rates", "balance_accounts", "write_statement")] == [2, 2, 2]
    assert [found[name] for name in ("load_ledger", "write_stocklist", "POST /closings")] == [1, 1, 1]


def test_an_event_whose_moment_was_cut_short_by_a_kill_happens_when_the_world_is_opened_again(tmp_path):
    conditions = Conditions(event=RATES_CORRECTED)
    with CLOSING.prepare(tmp_path, event=RATES_CORRECTED):
        (tmp_path / STATEMENT).write_text("written, and then the process died")
    with CLOSING.prepare(tmp_path):
        assert json.loads(Books(tmp_path, conditions).rates.read_text()) == CORRECTED_RATES
    assert CLOSING.counts(tmp_path)["event"] == 1


def test_a_second_closing_of_the_thread_does_no_work_again(tmp_path):
    drive("closing", tmp_path)
    before = counts(tmp_path)
    assert drive("closing", tmp_path)["outcome"].status == "satisfied"
    assert counts(tmp_path) == before


def test_a_check_names_what_is_wrong(tmp_path):
    with CLOSING.prepare(tmp_path):
        pass
    assert len(CLOSING.check(tmp_path)) == 6
    books = Books(tmp_path, Conditions())
    books.load(JOURNAL)
    assert "the ledger does not hold each line of the journal once" not in CLOSING.check(tmp_path)
    books.load(JOURNAL)
    assert "the ledger does not hold each line of the journal once" in CLOSING.check(tmp_path)


def test_the_office_books_as_often_as_it_is_told_and_loses_one_answer(tmp_path):
    office = Office(tmp_path, tally_in(tmp_path), faults=True)
    body: JsonValue = {"depot": "west", "changes": {}}
    assert [office.book("adjustments", body) for _ in range(3)] == [False, True, True]
    assert office.booked("adjustments") == [body] * 3

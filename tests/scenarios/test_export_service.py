"""The export service, its faults and the warehouse, with no graph around them."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent.boundary import facts_of
from agent.scenarios import SCENARIOS
from agent.scenarios import export_desk as desk_module
from agent.scenarios.export_data import WEEKS, days_of, orders_of, total
from agent.scenarios.export_desk import ExportDesk
from agent.scenarios.export_service import serving
from agent.scenarios.loopback import ServiceClient, ServiceError
from agent.scenarios.tally import Tally
from agent.scenarios.warehouse import Loaded, Warehouse
from agent.tools.contracts import contract_of

SCENARIO = SCENARIOS["backfill"]


@contextmanager
def service(folder: Path, faults: bool = True) -> Iterator[ServiceClient]:
    with serving(ExportDesk(folder, Tally(folder / "counts.db"), faults)) as port:
        yield ServiceClient(port)


def rows(client: ServiceClient, week: str, columns: str = "order,revenue_net", **day: str) -> list:
    found = client.get("/rows", week=week, columns=columns, **day)
    assert isinstance(found, list)
    return found


def refused(client: ServiceClient, week: str, columns: str = "order,revenue_net") -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        rows(client, week, columns)
    return caught.value


def test_orders_are_the_same_every_time_and_only_one_week_is_large():
    assert [len(orders_of(week)) > desk_module.ROW_LIMIT for week in WEEKS] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    assert total(orders_of(WEEKS[0])) == (
        len(orders_of(WEEKS[0])),
        sum(o.gross - o.tax for o in orders_of(WEEKS[0])),
    )
    assert {order.day for week in WEEKS for order in orders_of(week)} <= {d for w in WEEKS for d in days_of(w)}


def test_an_undisturbed_service_gives_every_week_whole(tmp_path):
    with service(tmp_path, faults=False) as client:
        assert [len(rows(client, week)) for week in WEEKS] == [len(orders_of(week)) for week in WEEKS]


def test_the_second_week_times_out_once(tmp_path):
    with service(tmp_path) as client:
        rows(client, WEEKS[0])
        assert refused(client, WEEKS[1]).status == 504
        assert len(rows(client, WEEKS[1])) == len(orders_of(WEEKS[1]))


def test_the_large_week_is_refused_whole_and_given_by_days(tmp_path):
    with service(tmp_path) as client:
        rows(client, WEEKS[0])
        refused(client, WEEKS[1])
        rows(client, WEEKS[1])
        assert refused(client, WEEKS[2]).status == 413
        by_days = [row for day in days_of(WEEKS[2]) for row in rows(client, WEEKS[2], day=day)]
        assert [row["order"] for row in by_days] == [order.order for order in orders_of(WEEKS[2])]


def serve_in_order(client: ServiceClient) -> dict[str, object]:
    """Ask for all weeks at once, mend what can be mended, and say what became of each."""
    outcome: dict[str, object] = {}

    def ask(week: str) -> None:
        try:
            outcome[week] = len(rows(client, week))
        except ServiceError as error:
            if error.status == 413:
                outcome[week] = sum(len(rows(client, week, day=day)) for day in days_of(week))
            elif error.status == 504:
                ask(week)
            else:
                outcome[week] = str(error)

    threads = [threading.Thread(target=ask, args=(week,)) for week in reversed(WEEKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcome


def test_the_format_changes_after_the_fourth_week_however_many_ask_at_once(tmp_path):
    gone = "400 Bad Request: column revenue_net not found"
    with service(tmp_path) as client:
        assert serve_in_order(client) == {
            **{week: len(orders_of(week)) for week in WEEKS[:4]},
            WEEKS[4]: gone,
            WEEKS[5]: gone,
        }


def test_the_new_format_adds_up_to_the_same_revenue(tmp_path):
    with service(tmp_path) as client:
        before = client.get("/schema")
        serve_in_order(client)
        after = client.get("/schema")
        assert isinstance(before, dict) and before["net"] == {"revenue_net": 1}
        assert isinstance(after, dict) and after["net"] == {"revenue_gross": 1, "revenue_tax": -1}
        found = rows(client, WEEKS[4], "revenue_gross,revenue_tax")
    assert sum(row["revenue_gross"] - row["revenue_tax"] for row in found) == total(orders_of(WEEKS[4])).net


def test_what_was_served_is_remembered_by_the_next_process(tmp_path):
    with service(tmp_path) as client:
        serve_in_order(client)
    with service(tmp_path) as client:
        assert "revenue_net not found" in str(refused(client, WEEKS[0]))
        assert len(rows(client, WEEKS[1], "revenue_gross")) == len(orders_of(WEEKS[1]))


def test_a_week_whose_turn_does_not_come_is_turned_away(tmp_path, monkeypatch):
    monkeypatch.setattr(desk_module, "PATIENCE", 0.05)
    with service(tmp_path) as client:
        assert refused(client, WEEKS[3]).status == 503


def test_an_error_says_its_status_and_its_reason_to_the_boundary(tmp_path):
    with service(tmp_path) as client:
        rows(client, WEEKS[0])
        facts = facts_of(refused(client, WEEKS[1]))
        assert (facts.status, facts.message) == (504, "504 Gateway Timeout: gateway timeout")
        with pytest.raises(ServiceError, match="404 Not Found: there is nothing at /elsewhere"):
            client.post("/elsewhere", {})
        with pytest.raises(ServiceError, match="404 Not Found"):
            client.get("/elsewhere")


def test_a_load_that_breaks_half_way_leaves_nothing(tmp_path):
    warehouse = Warehouse(tmp_path / "w.db")
    good, bad = Loaded("1", "d", "r", 1, 1), Loaded("2", "d", object(), 1, 1)  # type: ignore[arg-type]
    with pytest.raises(sqlite3.Error):
        warehouse.load("w", [good, bad])
    assert warehouse.week("w") is None
    warehouse.load("w", [good])
    assert warehouse.week("w") == {"week": "w", "rows": 1, "net": 1}


def test_the_tools_by_hand_bring_an_undisturbed_world_to_its_end(tmp_path):
    with SCENARIO.prepare(tmp_path, faults=False) as prepared:
        by = {each.name: each for each in prepared.tools}
        by["confirm_export"].invoke({})
        net = by["read_schema"].invoke({})["net"]
        load = by["load_week"]
        for week in WEEKS:
            batch = "day" if week == WEEKS[2] else "week"
            loaded = load.invoke({"week": week, "net": net, "batch": batch})
            look = contract_of(load).observe
            assert look is not None and look(week=week) == loaded
        sums = by["recompute_aggregates"].invoke({})
        posted = by["post_summary"].invoke({"quarter": "2025-Q3", "rows": sums["rows"], "net": sums["net"]})
        look = contract_of(by["post_summary"]).observe
        assert look is not None and look(quarter="2025-Q3") == posted and look(quarter="2024-Q3") is None
    assert SCENARIO.check(tmp_path) == []


def test_a_check_sees_what_was_done_twice(tmp_path):
    with SCENARIO.prepare(tmp_path, faults=False) as prepared:
        by = {each.name: each for each in prepared.tools}
        args = {"week": WEEKS[0], "net": {"revenue_net": 1}, "batch": "week"}
        by["load_week"].invoke(args)
        by["load_week"].invoke(args)
    rows_of_week = len(orders_of(WEEKS[0]))
    assert f"{rows_of_week} rows are loaded twice" in SCENARIO.check(tmp_path)


def test_counts_survive_a_process_and_several_threads(tmp_path):
    tally = Tally(tmp_path / "counts.db")
    threads = [threading.Thread(target=lambda: [tally.add("x") for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Tally(tmp_path / "counts.db").counts() == {"x": 80}
    with closing(sqlite3.connect(tmp_path / "counts.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

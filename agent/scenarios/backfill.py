"""Scenario `backfill`: load the weeks of a quarter from an export service, and post the summary (seed 1).

The service misbehaves three times, and each time proves something else false: a gateway timeout proves
nothing (retry), a payload that is too large proves the call wrong (patch: by days), a column that is gone
proves an observation wrong on which everything was built (replan).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from agent.core.goal import Criterion, Goal
from agent.scenarios.export_data import QUARTER, WEEKS, days_of, orders_of, total
from agent.scenarios.export_desk import ExportDesk
from agent.scenarios.export_service import serving
from agent.scenarios.loopback import ServiceClient
from agent.scenarios.scenario import ChangeGoal, Conditions, Prepared, Scenario, tally_in
from agent.scenarios.warehouse import Loaded, Warehouse
from agent.tools.contracts import contract

_WAREHOUSE = "warehouse.db"

GOAL = Goal(
    text=f"Load {len(WEEKS)} weeks of {QUARTER} into the warehouse and post the summary",
    wants=("summary",),
    criteria=(
        Criterion(
            id="complete",
            text="the aggregates cover exactly what the export holds",
            predicate="artifacts.aggregates.rows == artifacts.export.rows && "
            "artifacts.aggregates.net == artifacts.export.net",
        ),
    ),
    given={"weeks": list(WEEKS), "quarter": QUARTER},
)


@contextmanager
def _open(workspace: Path, conditions: Conditions, _: ChangeGoal) -> Iterator[Prepared]:
    warehouse = Warehouse(workspace / _WAREHOUSE)
    with serving(ExportDesk(workspace, tally_in(workspace), conditions.faults)) as port:
        yield Prepared(
            goal=GOAL,
            tools=_tools(ServiceClient(port), warehouse),
            notes=(f"export service: http://127.0.0.1:{port}", f"warehouse: {workspace / _WAREHOUSE}"),
        )


def _tools(client: ServiceClient, warehouse: Warehouse) -> list[BaseTool]:
    return [
        _confirm_export(client),
        _read_schema(client),
        _load_week(client, warehouse),
        _recompute_aggregates(warehouse),
        _post_summary(client),
    ]


def _confirm_export(client: ServiceClient) -> BaseTool:
    @contract(produces="export", effect="read_only", ensures="size(artifacts.export.weeks) > 0")
    def confirm_export() -> JsonValue:
        """Confirm that the export landed."""
        return client.get("/export")

    return confirm_export


def _read_schema(client: ServiceClient) -> BaseTool:
    # No probe on purpose: nobody looks at the schema again until a load proves it wrong.
    @contract(needs="export", produces="schema", effect="read_only", ensures="size(artifacts.schema.net) > 0")
    def read_schema() -> JsonValue:
        """Read the schema of the export."""
        return client.get("/schema")

    return read_schema


def _load_week(client: ServiceClient, warehouse: Warehouse) -> BaseTool:
    @contract(
        needs="export schema",
        produces="loaded_{week}",
        each={"week": "weeks"},
        args={"net": "{{schema.net}}"},
        alternatives={"batch": ("week", "day")},
        ensures=(
            "result.rows == artifacts.export.weeks[args.week].rows",
            "result.net == artifacts.export.weeks[args.week].net",
        ),
        effect="mutating",
        observe=warehouse.week,
    )
    def load_week(week: str, net: dict[str, int], batch: str) -> JsonValue:
        """Load one week of orders into the warehouse."""
        days = days_of(week) if batch == "day" else (None,)
        rows = [row for day in days for row in _fetched(client, week, day, net)]
        # all rows are here before the first is written: a load that fails half-way has written nothing
        warehouse.load(week, rows)
        return {"week": week, "rows": len(rows), "net": sum(row.net for row in rows)}

    return load_week


def _fetched(client: ServiceClient, week: str, day: str | None, net: dict[str, int]) -> list[Loaded]:
    columns = ("order", "day", "region", "units", *net)
    query = {"week": week, "columns": ",".join(columns)} | ({"day": day} if day else {})
    found = client.get("/rows", **query)
    assert isinstance(found, list)
    return [_row(each, net) for each in found if isinstance(each, dict)]


def _row(row: dict[str, JsonValue], net: dict[str, int]) -> Loaded:
    amount = sum(sign * int(str(row[column])) for column, sign in net.items())
    return Loaded(str(row["order"]), str(row["day"]), str(row["region"]), int(str(row["units"])), amount)


def _recompute_aggregates(warehouse: Warehouse) -> BaseTool:
    @contract(
        needs="loaded_* export",
        produces="aggregates",
        ensures="artifacts.aggregates.rows == artifacts.export.rows",
        effect="mutating",
        idempotent=True,
        observe=warehouse.aggregates,
    )
    def recompute_aggregates() -> JsonValue:
        """Recompute the derived aggregates."""
        warehouse.recompute()
        return warehouse.aggregates()

    return recompute_aggregates


def _post_summary(client: ServiceClient) -> BaseTool:
    def posted(quarter: str) -> JsonValue:
        summaries = client.get("/summaries")
        assert isinstance(summaries, list)
        of_quarter = [each for each in summaries if isinstance(each, dict) and each["quarter"] == quarter]
        return of_quarter[-1] if of_quarter else None

    @contract(
        needs="aggregates quarter",
        produces="summary",
        args={"rows": "{{aggregates.rows}}", "net": "{{aggregates.net}}"},
        ensures="artifacts.summary.rows == args.rows && artifacts.summary.net == args.net",
        effect="mutating",
        observe=posted,
    )
    def post_summary(quarter: str, rows: int, net: int) -> JsonValue:
        """Post the summary of the quarter."""
        summary: dict[str, JsonValue] = {"quarter": quarter, "rows": rows, "net": net}
        client.post("/summaries", summary)
        return summary

    return post_summary


def _check(workspace: Path) -> list[str]:
    """Compare the warehouse and the service with the orders themselves, past all tools."""
    expected = [order for week in WEEKS for order in orders_of(week)]
    whole = total(expected)
    warehouse = Warehouse(workspace / _WAREHOUSE)
    loaded, aggregates = warehouse.orders(), warehouse.aggregates()
    summaries = ExportDesk(workspace, tally_in(workspace), faults=False).summaries().body
    summary: JsonValue = {"quarter": QUARTER, "rows": whole.rows, "net": whole.net}
    regions: dict[str, JsonValue] = {region: _sums(region) for region in sorted({order.region for order in expected})}
    problems = {
        f"{len(loaded) - len(set(loaded))} rows are loaded twice": len(loaded) != len(set(loaded)),
        "the warehouse does not hold exactly the orders of the export": set(loaded) != {o.order for o in expected},
        "the aggregates are not those of an undisturbed run": (aggregates or {}).get("regions") != regions,
        f"the service has these summaries instead of one that is right: {summaries}": summaries != [summary],
    }
    return [sentence for sentence, wrong in problems.items() if wrong]


def _sums(region: str) -> JsonValue:
    orders = [order for week in WEEKS for order in orders_of(week) if order.region == region]
    return {"rows": len(orders), "units": sum(each.units for each in orders), "net": total(orders).net}


BACKFILL = Scenario(
    name="backfill",
    description="Load weeks from a service that times out, refuses a large one and changes its format.",
    open=_open,
    check=_check,
)

"""Tools that are named in words: built-in ones, steps over them in a file, and the goal they reach without a model."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.tools.loading import ToolsNotFound, load_tools, settled
from tests.cli.conftest import ROOT

STEPS = """\
tools = ["workspace:.", "sqlite:shop.db"]

[steps.prices]
tool = "read_file"
args = { path = "prices.json" }
watch = true

[steps.totals]
tool = "query_database"
args = { sql = "SELECT region, sum(amount) AS total FROM orders GROUP BY region ORDER BY region" }
ensures = ["artifacts.totals.rows.size() > 0"]

[steps.report]
tool = "write_file"
args = { path = "report.txt", text = "Totals: {{totals.rows}} at prices {{prices.text}}", replaces = "*" }

[steps.booked]
tool = "change_database"
requires = ["artifacts.report.text.startsWith('Totals')"]
[steps.booked.args]
sql = "INSERT INTO reports (name, digest) VALUES ('report.txt', ?)"
parameters = ["{{report.digest}}"]
check = "SELECT count(*) = 1 FROM reports WHERE name = 'report.txt'"
rows = 1
"""
WANTS = 'wants = ["report", "booked"]\ncriteria = ["artifacts.report.text.contains(\'17.5\')"]\n'


@pytest.fixture
def shop(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (region TEXT, amount REAL)")
        connection.execute("CREATE TABLE reports (name TEXT, digest TEXT)")
        connection.execute("INSERT INTO orders VALUES ('eu', 10), ('eu', 7.5), ('us', 3)")
        connection.commit()
    (folder / "prices.json").write_text("[1]")
    (folder / "steps.toml").write_text(STEPS)
    (folder / "goal.toml").write_text(WANTS)
    return folder


def reports(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM reports").fetchone()[0])


def test_a_goal_over_files_and_a_database_is_reached_without_a_model(document, shop):
    found = document("run", "goal.toml", "--tools", "steps:steps.toml", "--thread", "7")
    assert found["outcome"]["status"] == "satisfied"
    assert (shop / "report.txt").read_text() == (
        'Totals: [{"region":"eu","total":17.5},{"region":"us","total":3.0}] at prices [1]'
    )
    assert reports(shop) == 1


def test_the_example_of_the_page_on_tools_is_reached_as_it_stands(cli, shop):
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "tools.md").read_text(), re.DOTALL)
    (steps,) = (each for each in blocks if "[steps." in each)
    (shop / "steps.toml").write_text(steps)
    (shop / "goal.toml").write_text('wants = ["report"]')
    cli("run", "goal.toml", "--tools", "steps:steps.toml")
    assert (shop / "report.txt").read_text().startswith('Totals: [{"region":"eu"')


def test_a_second_run_makes_again_only_what_a_watched_file_changed(document, shop):
    document("run", "goal.toml", "--tools", "steps:steps.toml", "--thread", "7")
    (shop / "prices.json").write_text("[2]")
    document("run", "goal.toml", "--thread", "7")
    assert (shop / "report.txt").read_text().endswith("prices [2]")
    assert reports(shop) == 1  # the check held already


def test_a_run_is_resumed_with_its_sources_from_anywhere(document, shop, monkeypatch):
    document("run", "goal.toml", "--tools", "steps:steps.toml", "--thread", "7")
    (shop / "elsewhere").mkdir()
    monkeypatch.chdir(shop / "elsewhere")
    found = document("resume", "7", "--home", shop / ".kintsugi")
    assert found["outcome"]["status"] == "satisfied"


def test_sources_are_joined(cli, shop):
    (shop / "goal.toml").write_text('wants = ["list_files", "describe_database"]')
    cli("run", "goal.toml", "--tools", "workspace:.,read_only", "--tools", "sqlite:shop.db http:")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("workspace:gone", "make it first"),
        ("workspace:", "names no file"),
        ("workspace:.,fast", "'fast' is unknown; there is: read_only"),
        ("sqlite:gone.db", "no SQLite file"),
        ("http:localhost", "no address to allow"),
        ("command:", "names no program"),
        ("command:no-such-program", "there is no program"),
        ("steps:gone.toml", "cannot be read as TOML"),
        ("steps:bad.toml", "steps.x.tool: Field required"),
        ("steps:unknown.toml", "no tool 'fly'; the tools are: read_file"),
        ("steps:argument.toml", "has no parameter 'speed'"),
        ("steps:missing.toml", "parameter 'path' is bound by nothing"),
        ("workspace:'", "cannot be read: No closing quotation"),
        ("''", "must be written module:attribute"),
        (" ", "names no tools"),
    ],
)
def test_a_source_that_leads_nowhere_says_what_is_wrong(cli, shop, reference, said):
    for name, step in {
        "bad": "[steps.x]",
        "unknown": '[steps.x]\ntool = "fly"',
        "argument": '[steps.x]\ntool = "read_file"\nargs = { path = "a", speed = 1 }',
        "missing": '[steps.x]\ntool = "read_file"',
    }.items():
        (shop / f"{name}.toml").write_text(f'tools = ["workspace:."]\n{step}\n')
    assert said in " ".join(cli("run", "goal.toml", "--tools", reference, code=2).stderr.split())


def test_commands_and_mutating_tools_are_there_only_when_they_are_named(shop):
    names = {each.name for each in load_tools("workspace:.,read_only sqlite:shop.db,read_only http:")}
    assert names == {"read_file", "list_files", "search_files", "describe_database", "query_database", "http_get"}


def test_a_settled_reference_names_its_files_from_the_top(folder):
    named = settled("workspace:.,read_only jobs:TOOLS http: steps:a/../steps.toml")
    assert named == f"workspace:{folder},read_only jobs:TOOLS http: steps:{folder}/steps.toml"
    with pytest.raises(ToolsNotFound):
        settled("'")

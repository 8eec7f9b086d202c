"""`kintsugi report`: one file about a thread, wherever it stands."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def test_the_report_is_one_file_named_like_its_thread(cli: Cli, folder: Path) -> None:
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "a/b c")
    said = cli("report", "a/b c").stdout
    page = (folder / "a-b-c.html").read_text()
    assert "a-b-c.html" in said
    assert page.startswith("<!doctype html>")
    assert "Satisfied: every step and criterion is verified" in page
    assert not list(folder.glob("*.part"))


def test_the_report_can_go_elsewhere_and_to_standard_output(cli: Cli, folder: Path) -> None:
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    cli("report", "t", "-o", "other.html")
    assert cli("report", "t", "-o", "-").stdout == (folder / "other.html").read_text()


def test_a_waiting_run_is_reported_with_its_question(cli: Cli, folder: Path) -> None:
    (folder / "numbers.json").write_text("not JSON")
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t", code=4)
    page = cli("report", "t", "-o", "-").stdout
    assert "Waiting for a person to answer 1 question" in page
    assert "Not answered yet." in page


def test_a_run_that_was_killed_before_its_first_checkpoint_is_reported(cli: Cli, folder: Path) -> None:
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    with closing(sqlite3.connect(folder / ".kintsugi" / "kintsugi.db")) as database, database:
        database.execute("UPDATE kintsugi_runs SET thread = 'killed', status = 'running'")
    assert "Stopped before anything was planned" in cli("report", "killed", "-o", "-").stdout


def test_a_thread_that_is_not_there_is_named_with_those_that_are(cli: Cli) -> None:
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    assert "there is no thread 'other'" in cli("report", "other", code=2).stderr


@pytest.mark.parametrize("place", ["nowhere/report.html", "."])
def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(cli: Cli, place: str) -> None:
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    assert f"-o: {place} cannot be written" in cli("report", "t", "-o", place, code=2).stderr

"""The command line on a Postgres database, by one setting."""

import signal
import sys

import pytest

from agent.store.postgres import Postgres
from tests.cli import jobs
from tests.cli.conftest import JOBS, calls

GOLDEN = "tests.store.golden.jobs:TOOLS"


@pytest.fixture(autouse=True)
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KINTSUGI_DATABASE_URL", postgres.url)
    return postgres.url


def test_a_killed_run_is_listed_resumed_traced_and_counted(cli, child, folder):
    (folder / "parcel.toml").write_text('wants = "report"')
    (folder / "power-fails").touch()
    assert child("run", "parcel.toml", "--tools", GOLDEN, "--thread", "42").wait(60) == -signal.SIGKILL
    assert cli("threads").stdout.splitlines()[1].split()[:2] == ["42", "stopped"]
    assert "Satisfied: " in cli("resume", "42").stdout
    assert calls(folder) == ["reserve", "ship"]
    assert "commit" in cli("trace", "42").stdout
    assert "satisfied" in cli("stats").stdout.lower()
    assert not (folder / ".kintsugi" / "kintsugi.db").exists()


def test_a_run_waits_for_its_answer_and_its_goal_can_be_changed(cli, folder):
    (folder / "pay.toml").write_text('wants = "receipt"')
    (folder / "bank-is-down").touch()
    cli("run", "pay.toml", "--tools", JOBS, "--thread", "7", code=4)
    assert "Satisfied: " in cli("resume", "7", "--answer", '{"choice": "answer", "value": "by hand"}').stdout
    assert "Satisfied: " in cli("goal", "7", "--want", "total").stdout
    assert calls(folder) == ["charge_card", "write_total"]


def test_a_server_that_dies_in_the_middle_is_one_sentence_and_the_run_is_resumed(
    cli, folder, mortal, server, monkeypatch
):
    monkeypatch.setenv("KINTSUGI_DATABASE_URL", mortal.url)
    monkeypatch.setenv("KINTSUGI_DATABASE_TIMEOUT", "0.2")
    monkeypatch.setattr(jobs, "during", server.kill)
    result = cli("run", "goal.toml", "--tools", JOBS, "--thread", "9", code=130)
    said = " ".join(result.stderr.split())
    assert "went away and did not come back" in said
    assert "Go on with: kintsugi resume 9" in said
    assert "secret" not in result.output
    assert "cannot reach" in " ".join(cli("threads", code=2).stderr.split())
    monkeypatch.setattr(jobs, "during", list)
    server.start()
    assert "Satisfied: " in cli("resume", "9").stdout
    assert calls(folder) == ["write_total"]


def test_a_demo_runs(cli):
    assert "Satisfied: " in cli("demo", "config-report").stdout


def test_the_doctor_says_where_runs_are_kept_without_the_password(cli, url):
    said = cli("doctor").stdout
    assert "postgresql://kintsugi@" in said
    assert "opens" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        ("postgresql://kintsugi:hunter2@127.0.0.1:1/runs", "cannot reach postgresql://kintsugi@127.0.0.1:1/runs"),
        ("postgresql://kintsugi:hunter2@nowhere.invalid/runs", "cannot reach postgresql://kintsugi@nowhere.invalid"),
        ("mysql://kintsugi:hunter2@127.0.0.1/runs", "KINTSUGI_DATABASE_URL"),
        ("postgresql://kintsugi:hunter2@127.0.0.1:port/runs", "invalid integer value"),
        ("postgresql://kintsugi:hunter2@127.0.0.1:1/runs?sslmoed=on", "KINTSUGI_DATABASE_URL"),
    ],
)
def test_a_database_that_cannot_be_reached_is_one_sentence_without_the_password(cli, monkeypatch, broken, sentence):
    monkeypatch.setenv("KINTSUGI_DATABASE_URL", broken)
    for command in (("run", "goal.toml", "--tools", JOBS), ("threads",), ("doctor",)):
        result = cli(*command, code=2)
        said = " ".join(result.output.split())
        assert sentence in said
        assert "hunter2" not in said
        assert "Traceback" not in said


def test_a_database_that_is_not_there_is_named(cli, url, monkeypatch):
    monkeypatch.setenv("KINTSUGI_DATABASE_URL", url.replace("/test", "/nothing"))
    assert "does not exist" in " ".join(cli("threads", code=2).stderr.split())


def test_without_the_extra_the_sentence_says_how_to_get_it(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install 'kintsugi[postgres]'" in " ".join(cli("threads", code=2).stderr.split())

"""What cannot be used is refused in a sentence, with exit code 2, and loses nothing."""

import sqlite3
from contextlib import closing

import pytest

from agent.store.database import open_database
from tests.cli.conftest import JOBS, calls

FILES = {
    "not TOML": ('wants = ["total"\ntext = 3', "goal.toml, line 2", "not TOML"),
    "a field of the wrong type": ('wants = ["total"]\n\ntext = 3', "goal.toml, line 3, text:", "valid string"),
    "a field nobody knows": ('want = ["total"]', "goal.toml, line 1, want:", "did you mean 'wants'?"),
    "a predicate that does not compile": (
        'wants = ["total"]\ncriteria = [\n "artifacts.total > 1",\n "artifacts.total >> 1",\n]',
        "goal.toml, line 4, criteria[2]: predicate does not compile at position 18",
        "  artifacts.total >> 1\n                   ^",
    ),
    "a predicate that reads what is not there": (
        'wants = ["total"]\n[[criteria]]\nid = "a"\npredicate = "total.sum > 1"',
        "goal.toml, line 4, criteria[1].predicate: predicate does not compile at position 1",
        "'total' is not one of artifacts, facts, args, result",
    ),
    "two criteria of one name": (
        'wants = ["total"]\n[[criteria]]\nid = "a"\n[[criteria]]\nid = "a"',
        "criteria: criterion ids are used twice: a",
        "goal.toml, line",
    ),
    "a given value that JSON cannot say": ("wants=['total']\n[given]\nday = 2026-01-01", "line 3, given.day", "quotes"),
    "nothing at all": ("", "goal.toml: states nothing to reach", "wants"),
}


@pytest.mark.parametrize(("text", "place", "problem"), FILES.values(), ids=FILES)
def test_a_goal_file_is_refused_by_file_line_and_field(cli, folder, text, place, problem):
    (folder / "goal.toml").write_text(text)
    said = cli("run", "goal.toml", "--tools", JOBS, code=2)
    assert place in said.stderr
    assert problem in said.stderr
    assert said.stdout == ""


def test_a_goal_file_that_cannot_be_read_is_named(cli, folder):
    assert "gone.toml: cannot be read: No such file" in cli("run", "gone.toml", "--tools", JOBS, code=2).stderr
    (folder / "goal.toml").write_bytes(b'wants = ["total"]\ntext = "\xff"')
    assert "goal.toml, line 2: not UTF-8" in cli("run", "goal.toml", "--tools", JOBS, code=2).stderr


def test_a_file_of_another_name_is_not_taken_for_a_goal_in_words(cli, folder):
    (folder / "goal.txt").write_text("x")
    assert "the name of a goal file ends in .toml" in cli("run", "goal.txt", "--tools", JOBS, code=2).stderr


TOOLS = {
    "no reference": ("jobs", "must be written module:attribute"),
    "no module": ("nowhere.jobs:TOOLS", "there is no module 'nowhere'"),
    "no attribute": ("tests.cli.jobs:TULLS", "has no attribute 'TULLS'; it has:"),
    "no list": ("tests.cli.jobs:__doc__", "is not a list of tools but str"),
    "two of one name": ("tests.cli.jobs:TWINS", "two tools are named 'read_numbers'"),
    "a predicate that does not compile": ("tests.cli.jobs:bad_predicate", "does not compile at position 15"),
}


@pytest.mark.parametrize(("reference", "problem"), TOOLS.values(), ids=TOOLS)
def test_tools_are_refused_with_what_is_wrong(cli, reference, problem):
    said = cli("run", "goal.toml", "--tools", reference, code=2).stderr
    assert problem in said
    assert "--tools: " in said
    assert "Traceback" not in said


def test_a_run_without_tools_asks_for_them(cli):
    assert "--tools module:attribute, or in KINTSUGI_TOOLS" in cli("run", "goal.toml", code=2).stderr


def test_a_need_that_nobody_can_produce_ends_the_run_with_the_proof(cli, folder, document):
    (folder / "goal.toml").write_text('wants = ["total", "unicorn"]')
    said = cli("run", "goal.toml", "--tools", JOBS, code=3).stdout
    assert "Unreachable: no tool produces 'unicorn'" in said
    found = document("run", "goal.toml", "--tools", JOBS, code=3)
    assert found["outcome"]["status"] == "unreachable"
    assert found["outcome"]["proof"] == ["no tool produces 'unicorn'"]


def test_needs_in_a_circle_end_the_run_with_the_circle(cli, folder):
    (folder / "goal.toml").write_text('wants = "egg"')
    said = cli("run", "goal.toml", "--tools", "tests.cli.jobs:CIRCLE", code=3).stdout
    assert "Unreachable: " in said
    assert "egg" in said
    assert "chicken" in said


def test_two_producers_of_one_artifact_end_the_run_with_both_names(cli):
    said = cli("run", "goal.toml", "--tools", "tests.cli.jobs:RIVALS", code=3).stdout
    assert "'numbers' is produced by both 'read_numbers' and 'invent_numbers'" in said


def test_a_goal_in_words_without_a_model_says_which_variables_and_that_contract_goals_need_none(cli):
    said = cli("run", "Add up the numbers", "--tools", JOBS, code=2).stderr
    for each in ("KINTSUGI_MODEL", "OPENAI_API_KEY", "needs neither model nor key"):
        assert each in said


def test_a_model_without_a_key_says_which_variable(cli):
    said = cli("run", "goal.toml", "--tools", JOBS, "--model", "openai:gpt-5", code=2).stderr
    assert "OPENAI_API_KEY" in said
    assert "need no model" in said


@pytest.mark.parametrize(
    ("variable", "value"),
    [("KINTSUGI_LIMITS__RETRY", "many"), ("KINTSUGI_STEP_TIMEOUT", "-1"), ("KINTSUGI_ESCALATION", "shout")],
)
def test_a_bad_variable_is_named_with_its_value(cli, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    said = cli("threads", code=2).stderr
    assert f"{variable} is {value!r}" in said


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("KINTSUGI_APROVE", "KINTSUGI_APPROVE"),
        ("KINTSUGI_LIMIT__MONEY", "KINTSUGI_LIMITS"),
        ("kintsugi_modle", "KINTSUGI_MODEL"),
    ],
)
def test_a_misspelled_variable_is_refused_and_told_what_was_meant(cli, monkeypatch, variable, meant):
    monkeypatch.setenv(variable, "1")
    assert f"{variable} is no setting; {meant} is" in cli("threads", code=2).stderr


def test_variables_that_others_made_with_our_prefix_are_left_alone(cli, monkeypatch):
    for variable in ("KINTSUGI_PORT", "KINTSUGI_SERVICE_HOST", "KINTSUGI_PORT_80_TCP_ADDR"):
        monkeypatch.setenv(variable, "tcp://10.0.0.1:80")
    cli("doctor")


def test_a_variable_that_should_be_json_is_named(cli, monkeypatch):
    monkeypatch.setenv("KINTSUGI_LIMITS", "{")
    assert "KINTSUGI_LIMITS is not valid JSON" in cli("threads", code=2).stderr


def test_a_damaged_database_is_refused_and_left_as_it_was(cli, folder):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    path = folder / ".kintsugi" / "kintsugi.db"
    broken = path.read_bytes()[:4096] + b"\xff" * 4096 * 8
    path.write_bytes(broken)
    for args in (["run", "goal.toml", "--thread", "42"], ["resume", "42"], ["threads"], ["trace", "42"]):
        said = cli(*args, code=2).stderr
        assert "kintsugi.db" in said
        assert "damaged" in said
    assert path.read_bytes() == broken
    assert calls(folder) == ["write_total"]


def test_a_database_of_a_newer_release_is_refused(cli, folder):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    with closing(sqlite3.connect(folder / ".kintsugi" / "kintsugi.db")) as connection, connection:
        connection.execute("UPDATE kintsugi_meta SET value = 99 WHERE key = 'schema'")
    assert "written by a newer Kintsugi" in cli("resume", "42", code=2).stderr


def test_an_unknown_thread_is_refused_with_those_there_are(cli):
    for command in ("resume", "trace", "goal"):
        assert "there are no runs in .kintsugi" in cli(command, "7", code=2).stderr
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    for command in ("resume", "trace", "goal"):
        assert "there is no thread '7' in .kintsugi; there are: 42" in cli(command, "7", code=2).stderr


def test_reading_makes_no_home_folder(cli, folder):
    cli("threads", code=2)
    assert not (folder / ".kintsugi").exists()


def test_usage_errors_are_exit_code_2(cli):
    cli("run", code=2)
    cli("run", "goal.toml", "--colour", code=2)
    cli("fly", code=2)


@pytest.mark.parametrize("name", ["", "a\0b", "a\udcff", "x" * 300, "\x1b[31m"])
@pytest.mark.parametrize(
    "words",
    [
        ("run", "goal.toml", "--tools", JOBS, "--thread"),
        ("demo", "config-report", "--thread"),
        *((each,) for each in ("resume", "goal", "stop", "trace", "report", "watch", "forget", "mutate")),
    ],
    ids=lambda words: words[0],
)
def test_a_thread_that_cannot_be_kept_is_refused_by_every_command(cli, folder, words, name):
    if words[0] not in ("run", "demo"):
        (folder / ".kintsugi").mkdir()
        open_database(folder / ".kintsugi" / "kintsugi.db").close()
    said = " ".join(cli(*words, name, code=2).stderr.split())
    assert "it needs 1 to 255 characters that can be stored and shown" in said
    assert "\x1b" not in said


def test_tools_in_a_folder_whose_name_is_no_text_are_refused_before_anything_is_kept(cli, folder):
    (folder / "d\udcff").mkdir()
    said = cli("run", "goal.toml", "--tools", "workspace:./d\udcff", code=2).stderr
    assert "cannot be kept, for it is no valid text" in " ".join(said.split())
    assert len(cli("threads").stdout.splitlines()) == 1

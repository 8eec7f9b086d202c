"""`run`, `threads` and `trace`: a goal over tools of one's own."""

import json
from typing import Any

from tests.cli.conftest import JOBS, calls
from tests.models.openai_server import Body, completion, openai_server, streamed, tool_call


def test_a_goal_file_is_run_to_its_end_and_told_in_words(cli, folder):
    said = cli("run", "goal.toml", "--tools", JOBS, "--thread", "42").stdout
    assert "Add up the numbers" in said
    assert "done     total: Write the total" in said
    assert "Satisfied: every step and criterion is verified (2 artifacts, 2 attempts)." in said
    assert json.loads((folder / "total.json").read_text()) == {"sum": 6}


def test_a_second_run_of_the_thread_does_nothing_again_and_says_so(cli, folder):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    said = cli("run", "goal.toml", "--thread", "42").stdout  # it knows its tools
    assert "nothing was done again, for all of it still holds (2 artifacts)" in said
    assert calls(folder) == ["write_total"]


def test_the_document_carries_outcome_artifacts_steps_limits_and_ledger(document):
    found = document("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert found["thread"] == "42"
    assert (found["outcome"]["status"], found["questions"], found["recoveries"]) == ("satisfied", [], [])
    assert [each["verdict"] for each in found["outcome"]["grades"]] == ["verified", "verified"]
    total = next(each for each in found["artifacts"] if each["name"] == "total")
    assert (total["value"], total["version"], total["holds"], len(total["digest"])) == ({"sum": 6}, 1, True, 32)
    step = next(each for each in found["steps"] if each["produces"] == ["total"])
    assert (step["intent"], step["status"], step["attempts"]) == ("Write the total", "done", 1)
    assert found["limits"]["retry"] == 3
    assert found["ledger"]["verified"] == 2


def test_the_end_says_which_model_was_asked_how_often_and_over_how_many_tokens(cli, monkeypatch):
    def answers(body: Body) -> tuple[int, Any]:
        name, args = (
            ("submit", {"answer": "1, 2, 3"}) if body["messages"][-1]["role"] == "tool" else ("read_numbers", {})
        )
        said = json.dumps(args)
        if body.get("stream"):
            return streamed(tool_call(name, said))
        return completion(tool_call(name, said))

    with openai_server(answers) as server:
        monkeypatch.setenv("KINTSUGI_BASE_URL", server.url)
        said = cli("run", "Which numbers?", "--tools", JOBS, "--model", "openai:m", "--strategy", "single").stdout
    assert "Spent: attempts 1/5000" in said
    assert "  executor  m  2 turns  180 tokens read  20 written" in said
    assert "no model was asked" in cli("run", "goal.toml", "--tools", JOBS).stdout


def test_without_a_terminal_there_is_neither_colour_nor_a_moving_cursor(cli):
    assert "\x1b" not in cli("run", "goal.toml", "--tools", JOBS).output


def test_a_run_without_a_name_gets_one(cli):
    cli("run", "goal.toml", "--tools", JOBS)
    cli("run", "goal.toml", "--tools", JOBS)
    listed = cli("threads").stdout.splitlines()
    assert len({line.split()[0] for line in listed[1:]}) == 2


def test_tools_may_be_named_in_the_environment_or_in_a_dotenv_file(cli, folder, monkeypatch):
    (folder / ".env").write_text(f"KINTSUGI_TOOLS={JOBS}\n# a comment\nKINTSUGI_HOME=elsewhere\n")
    monkeypatch.setenv("KINTSUGI_HOME", ".kintsugi")  # beats the file; also puts it back after the test
    monkeypatch.setenv("KINTSUGI_TOOLS", "")
    monkeypatch.delenv("KINTSUGI_TOOLS")
    cli("run", "goal.toml")
    assert (folder / ".kintsugi" / "kintsugi.db").exists()


def test_the_home_folder_may_be_named_and_hints_name_it_too(cli, folder):
    (folder / "bank-is-down").touch()
    (folder / "pay.toml").write_text('wants = "receipt"')
    said = cli("run", "pay.toml", "--tools", JOBS, "--thread", "7", "--home", "my runs", code=4).stdout
    assert "kintsugi resume 7 --answer retry --home 'my runs'" in said
    assert "7" in cli("threads", "--home", "my runs").stdout


def test_threads_lists_every_run_with_its_goal_and_status(cli, folder):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "one")
    (folder / "no.toml").write_text('wants = "unicorn"')
    cli("run", "no.toml", "--tools", JOBS, "--thread", "two", code=3)
    head, two, one = cli("threads").stdout.splitlines()
    assert head.split() == ["thread", "status", "started", "updated", "goal"]
    assert two.split()[:2] == ["two", "unreachable"]
    assert one.split()[:2] == ["one", "satisfied"]
    assert one.rstrip().endswith("Add up the numbers")


def test_trace_tells_each_record_in_a_line(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    told = cli("trace", "42").stdout.splitlines()
    assert [line.split()[1] for line in told[:4]] == ["run", "triage", "plan", "start"]
    assert "plan 1 by the contract planner (initial): new: s1.1, s1.2" in told[2]
    assert any("verified: artifacts.total.sum == result.sum (by probe, predicate)" in line for line in told)
    assert "satisfied: every step and criterion is verified (2 artifacts newly verified)" in told[-1]


def test_trace_prints_the_records_as_json_lines(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    records = [json.loads(line) for line in cli("trace", "42", "--json").stdout.splitlines()]
    assert [records[0]["event"], records[-1]["event"]] == ["run_started", "ended"]
    assert len(records) == len(cli("trace", "42").stdout.splitlines())


def test_help_states_the_exit_codes(cli):
    for args in (["--help"], ["run", "--help"]):
        said = " ".join(cli(*args).stdout.replace("│", " ").split())
        assert "3 the run ended without satisfying the goal" in said
        assert "130 interrupted" in said
    assert cli("--version").stdout.strip().count(".") == 2

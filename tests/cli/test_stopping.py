"""Ctrl-C, SIGKILL and `resume`: the state is kept, and nothing that was done is done again."""

import json
import os
import select
import signal

import pytest

from tests.cli.conftest import JOBS, calls

SECONDS = 60.0
"""How long another process may take to get somewhere, on a busy machine."""


@pytest.fixture
def at_the_gate(folder, child):
    """A run in another process that has written the total and is held at a named pipe."""
    for pipe in ("gate", "at-the-gate"):
        os.mkfifo(folder / pipe)
    (folder / "goal.toml").write_text('wants = ["gate"]\ncriteria = ["artifacts.total.sum == 6"]')
    arrived = os.open(folder / "at-the-gate", os.O_RDONLY | os.O_NONBLOCK)
    running = child("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert select.select([arrived], [], [], SECONDS)[0], "the gate was not reached"
    yield running
    os.close(arrived)


def open_the_gate(folder):
    (folder / "gate").unlink()
    (folder / "gate").write_text("open")


def test_ctrl_c_keeps_the_state_says_how_to_go_on_and_the_run_goes_on(at_the_gate, folder, cli, document):
    at_the_gate.send_signal(signal.SIGINT)
    _, said = at_the_gate.communicate(timeout=SECONDS)
    assert at_the_gate.returncode == 130
    assert "Stopping. Writes in flight are finished first" in said
    assert "Interrupted; the state is kept. Go on with: kintsugi resume 42" in said
    assert "Traceback" not in said
    assert cli("threads").stdout.splitlines()[1].split()[:2] == ["42", "stopped"]
    open_the_gate(folder)
    found = document("resume", "42")
    assert found["outcome"]["status"] == "satisfied"
    assert calls(folder) == ["write_total"]


def test_a_killed_run_does_nothing_twice_and_takes_the_goal_that_was_left_for_it(at_the_gate, folder, cli):
    assert cli("threads").stdout.splitlines()[1].split()[:2] == ["42", "running"]
    cli("goal", "42", "--want", "notice")
    at_the_gate.kill()
    at_the_gate.communicate()
    assert cli("threads").stdout.splitlines()[1].split()[:2] == ["42", "stopped"]
    open_the_gate(folder)
    said = cli("resume", "42").stdout
    assert "Satisfied: " in said
    assert "done     gate: Wait at the gate" in said
    assert "Write the total" not in said
    assert calls(folder) == ["write_total", "post_notice"]


def test_a_thread_that_another_process_works_on_is_left_alone_and_takes_a_changed_goal(at_the_gate, folder, cli):
    said = cli("resume", "42", code=2).stderr
    assert f"process {at_the_gate.pid} is working on thread '42'" in said
    assert "Left for thread 42, which is running" in cli("goal", "42", "--want", "notice").stdout
    with (folder / "gate").open("w") as gate:
        gate.write("open")
    said, _ = at_the_gate.communicate(timeout=SECONDS)
    assert at_the_gate.returncode == 0
    assert "goal     changed (revision 2)" in said
    assert calls(folder) == ["write_total", "post_notice"]


def test_a_goal_that_changes_after_a_kill_is_newer_than_one_that_was_left_for_the_run(at_the_gate, folder, cli):
    cli("goal", "42", "--criterion", "artifacts.total.sum > 7")
    at_the_gate.kill()
    at_the_gate.communicate()
    open_the_gate(folder)
    said = cli("goal", "42", "--want", "notice", "--criterion", "artifacts.total.sum < 7").stdout
    assert "Satisfied: " in said
    assert calls(folder) == ["write_total", "post_notice"]


def test_a_demo_that_was_killed_goes_on_in_its_world(folder, child, document):
    running = child("demo", "backfill")
    assert any(line.startswith("done     loaded_") for line in running.stdout)
    running.kill()
    found = document("resume", "backfill")
    assert found["outcome"]["status"] == "satisfied"
    assert found["differences"] == []


def test_resuming_what_has_ended_prints_how_it_ended_and_runs_nothing(cli, document, folder):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    before = cli("trace", "42").stdout
    assert "Satisfied: " in cli("resume", "42").stdout
    assert document("resume", "42")["outcome"]["status"] == "satisfied"
    assert cli("trace", "42").stdout == before


def test_a_changed_goal_runs_on_and_keeps_what_still_serves(cli, document, folder):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    (folder / "more.toml").write_text('wants = ["total", "notice"]')
    found = document("goal", "42", "more.toml")
    assert found["outcome"]["status"] == "satisfied"
    assert calls(folder) == ["write_total", "post_notice"]
    events = [json.loads(line)["event"] for line in cli("trace", "42", "--json").stdout.splitlines()]
    assert "intent_changed" in events


def test_a_goal_command_without_a_goal_asks_for_one(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert "what is the new goal?" in cli("goal", "42", code=2).stderr
    assert "position" in cli("goal", "42", "--criterion", "artifacts.total >", code=2).stderr
    assert "needs a model" in cli("goal", "42", "in plain words", code=2).stderr


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_from_its_goal_file(cli, folder):
    from agent.store.database import open_database
    from agent.store.runs import RunIndex

    with open_database(folder / ".kintsugi" / "kintsugi.db") as database:
        source = str(folder / "goal.toml")
        RunIndex(database).started("42", goal="Add up the numbers", at=1.0, tools=JOBS, source=source)
    assert "Satisfied: " in cli("resume", "42").stdout
    assert calls(folder) == ["write_total"]


def terminate(running, cli):
    running.send_signal(signal.SIGTERM)


def ask(running, cli):
    assert f"Asked process {running.pid} to stop; it finishes what writes" in cli("stop", "42").stdout


@pytest.mark.parametrize("stop", [terminate, ask])
def test_a_run_that_is_asked_to_stop_finishes_what_writes_says_how_to_go_on_and_goes_on(
    stop, at_the_gate, folder, cli, document
):
    stop(at_the_gate, cli)
    _, said = at_the_gate.communicate(timeout=SECONDS)
    assert at_the_gate.returncode == 130
    assert "Stopped on request; the state is kept. Go on with: kintsugi resume 42" in said
    assert cli("threads").stdout.splitlines()[1].split()[:2] == ["42", "stopped"]
    assert "nobody is working on thread '42'" in cli("stop", "42", code=2).stderr
    assert "pause" in cli("trace", "42").stdout
    open_the_gate(folder)
    assert document("resume", "42")["outcome"]["status"] == "satisfied"
    assert calls(folder) == ["write_total"]

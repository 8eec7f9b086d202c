"""`gc` and `forget`: what is deleted is said, and so is what stays."""

import sqlite3
from contextlib import closing

from tests.cli.conftest import JOBS, calls


def test_a_forgotten_thread_is_gone_but_what_it_did_is_not(cli, folder):
    (folder / "pay.toml").write_text('wants = "receipt"')
    cli("run", "pay.toml", "--tools", JOBS, "--thread", "42")
    assert "Would delete thread 42 with" in cli("forget", "42", "--dry-run").stdout
    said = cli("forget", "42").stdout
    assert "Deleted thread 42 with" in said
    assert "1 effect on the world stay on record" in " ".join(said.split())
    assert "42" not in cli("threads").stdout
    assert "there is no thread '42'" in cli("trace", "42", code=2).stderr
    cli("run", "pay.toml", "--tools", JOBS, "--thread", "42")
    assert calls(folder) == ["charge_card"]
    cli("forget", "42", "--effects")
    cli("run", "pay.toml", "--tools", JOBS, "--thread", "42")
    assert calls(folder) == ["charge_card"] * 2


def test_nothing_is_collected_where_all_is_reachable(cli):
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    assert cli("gc", "--dry-run").stdout == "Would delete 0 bodies, 0 bytes.\n"
    assert cli("gc").stdout == "Deleted 0 bodies, 0 bytes.\n"


def test_a_process_that_has_done_nothing_else_collects_only_what_is_unreachable(
    cli, process, document, folder, monkeypatch
):
    monkeypatch.setenv("KINTSUGI_INLINE_BYTES", "0")
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "42")
    with closing(sqlite3.connect(folder / ".kintsugi/kintsugi.db")) as file, file:
        file.execute("UPDATE kintsugi_artifacts SET touched = 1")
        file.execute("INSERT INTO kintsugi_artifacts (digest, body, touched) VALUES (?, 'x', 1)", ("ab" * 16,))
        (stored,) = file.execute("SELECT count(*) FROM kintsugi_artifacts").fetchone()
    assert stored > 1
    assert process("gc").communicate() == ("Deleted 1 body, 1 bytes.\n", "")
    assert document("resume", "42")["outcome"]["status"] == "satisfied"
    out, err = process("forget", "42").communicate()
    assert ("Deleted thread 42 with" in out, err) == (True, "")


def test_there_is_nothing_to_collect_where_there_are_no_runs(cli):
    assert "there are no runs" in cli("gc", code=2).stderr

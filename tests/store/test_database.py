import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agent.store.connection import Connection, DatabaseRefused
from agent.store.database import open_database
from agent.store.runs import RunIndex
from agent.store.schema import SCHEMA
from tests.store.conftest import Child


def write(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def refused(path: Path) -> str:
    with pytest.raises(DatabaseRefused) as caught:
        open_database(path)
    return str(caught.value)


def test_a_new_database_is_made_with_its_folders_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "kintsugi.db"
    open_database(path).close()
    assert [each.stat().st_mode & 0o777 for each in (path.parent.parent, path.parent)] == [0o700, 0o700]
    assert path.stat().st_mode & 0o077 == 0


def test_a_database_opened_again_keeps_what_was_written(path: Path) -> None:
    with open_database(path) as database:
        RunIndex(database).started("42", goal="report", at=1.0)
    with open_database(path) as database:
        assert [run.thread for run in RunIndex(database).list()] == ["42"]


def test_a_relative_path_and_an_empty_file_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.db").touch()
    open_database("empty.db").close()
    open_database(":memory:").close()
    assert (tmp_path / ":memory:").stat().st_size > 0


def test_the_lanes_differ_in_durability(path: Path) -> None:
    def synchronous(connection: Connection) -> object:
        return connection.execute("PRAGMA synchronous").fetchone()[0]

    with open_database(path) as database:
        assert (database.quick.call(synchronous), database.durable.call(synchronous)) == (1, 2)


@pytest.mark.parametrize(
    "content", [b"not a database", b"SQLite format 3\0 and then nothing of the kind", os.urandom(9000)]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert str(path) in refused(path)
    assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda whole: whole[: len(whole) // 2], id="cut off"),
        pytest.param(lambda whole: whole[:4096] + os.urandom(len(whole) - 4096), id="pages overwritten"),
        pytest.param(lambda whole: whole[:100] + b"\xff" * 400 + whole[500:], id="schema overwritten"),
    ],
)
def test_a_damaged_database_is_refused_and_left_alone(path: Path, damage: Callable[[bytes], bytes]) -> None:
    with open_database(path) as database:
        for thread in range(200):
            RunIndex(database).started(str(thread), goal="report " * 40, at=1.0)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    assert "damaged" in refused(path)
    assert path.read_bytes() == damaged


def test_a_database_of_a_newer_release_is_refused_and_left_alone(path: Path) -> None:
    open_database(path).close()
    write(path, f"UPDATE kintsugi_meta SET value = {SCHEMA + 1}", "CREATE TABLE kintsugi_later (x)")
    content = path.read_bytes()
    message = refused(path)
    assert "newer" in message
    assert "upgrade" in message
    assert path.read_bytes() == content


NEWER_THEN_STALL = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("UPDATE kintsugi_meta SET value = 99")
print("written", flush=True)
sys.stdin.read()
"""


def test_a_newer_database_whose_last_writer_was_killed_is_refused_without_folding_in_its_log(
    path: Path, child: Callable[..., Child]
) -> None:
    open_database(path).close()
    writer = child(NEWER_THEN_STALL, path)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    writer.kill()
    writer.wait()
    log = path.with_name(path.name + "-wal")
    content, logged = path.read_bytes(), log.read_bytes()
    assert "newer" in refused(path)
    assert (path.read_bytes(), log.read_bytes()) == (content, logged)


HALF_A_TRANSACTION = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("CREATE TABLE theirs (x)")
connection.execute("INSERT INTO theirs VALUES ('kept')")
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE theirs SET x = 'lost'")
for _ in range(500):
    connection.execute("INSERT INTO theirs VALUES (randomblob(4000))")
print("spilled", flush=True)
sys.stdin.read()
"""


def test_a_database_whose_writer_was_killed_in_a_transaction_is_rolled_back_and_used(
    path: Path, child: Callable[..., Child]
) -> None:
    writer = child(HALF_A_TRANSACTION, path)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "spilled\n"
    writer.kill()
    writer.wait()
    with open_database(path) as database:
        assert database.quick.call(lambda each: each.execute("SELECT x FROM theirs").fetchall()) == [("kept",)]


def test_the_callers_own_tables_and_version_in_the_same_file_are_respected(path: Path) -> None:
    write(path, "CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)", "PRAGMA user_version = 77")
    open_database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT x FROM theirs").fetchall() == [(1,)]
        assert connection.execute("PRAGMA user_version").fetchone() == (77,)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert "check that it is a file" in refused(tmp_path)


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "Not a directory" in refused(tmp_path / "file" / "kintsugi.db")
    assert "Not a directory" in refused(tmp_path / "file" / "deeper" / "kintsugi.db")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "Permission denied" in refused(tmp_path / "kintsugi.db")
    tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_file_that_cannot_be_written_is_refused_at_once(path: Path) -> None:
    open_database(path).close()
    path.chmod(0o400)
    assert "check the permissions" in refused(path)

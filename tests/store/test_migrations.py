"""A database of an earlier release becomes one of today's, whole or not at all, whoever opens it, whatever ends it."""

from collections.abc import Callable

import pytest

from agent.store import schema
from agent.store.connection import Connection, DatabaseRefused
from agent.store.database import Place, open_database
from agent.store.postgres import Postgres, PostgresConnection
from agent.store.schema import SCHEMA, read_schema
from agent.store.sqlite import connect
from tests.store.conftest import Child, spelled


def seen(place: Place) -> tuple[int, object]:
    """Which schema it says it has, and what the tables really are; what is in them as well."""
    connection: Connection = PostgresConnection(place) if isinstance(place, Postgres) else connect(place, "FULL")
    tables = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_name LIKE 'kintsugi%'"
        if isinstance(place, Postgres)
        else "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.name LIKE 'kintsugi%'"
    )
    try:
        counts = [
            connection.execute(f"SELECT count(*) FROM kintsugi_{each}").fetchone()
            for each in ("effects", "runs", "artifacts", "inbox")
        ]
        return read_schema(connection), (sorted(connection.execute(tables).fetchall()), counts)
    finally:
        connection.close()


# One process that opens the database in children of its own: each is killed before one more statement than the last.
KILLED = """
import os, signal, sys
from agent.store import database, postgres, sqlite

left = 0

def doomed(kind, name):
    real = getattr(kind, name)
    def call(self, *args):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *args)
    setattr(kind, name, call)

for kind in (sqlite.SqliteConnection, postgres.PostgresConnection):
    for name in ("execute", "commit"):
        doomed(kind, name)

for line in sys.stdin:
    left = int(line)
    child = os.fork()
    if not child:
        database.open_database(sys.argv[1]).close()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_process_killed_at_any_statement_of_a_migration_leaves_the_old_schema_or_the_new_one(
    old: Place, child: Callable[..., Child]
) -> None:
    before, killer = seen(old), child(KILLED, spelled(old))
    assert killer.stdin is not None
    assert killer.stdout is not None
    found, ended = [], -9
    for statements in range(100):
        killer.stdin.write(f"{statements}\n")
        killer.stdin.flush()
        ended = int(killer.stdout.readline())
        found.append(seen(old))
        if ended == 0:
            break
    after = found[-1]
    assert (ended, after[0]) == (0, SCHEMA)
    assert found.count(before) > SCHEMA - before[0]
    assert found == sorted(found, key=lambda each: each[0])
    assert [each for each in found if each not in (before, after)] == []


def test_a_migration_that_fails_leaves_the_database_as_it_was(old: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = seen(old), schema._MIGRATIONS
    monkeypatch.setattr(
        schema, "_MIGRATIONS", (*real, ("CREATE TABLE kintsugi_more (x TEXT)", "UPDATE nothing SET x = 1"))
    )
    with pytest.raises(DatabaseRefused, match="nothing"):
        open_database(old)
    assert seen(old) == before
    monkeypatch.undo()
    open_database(old).close()
    assert seen(old)[0] == SCHEMA


# Four processes that wait for each other's start, as nearly at once as can be.
AT_ONCE = """
import os, sys
from agent.store.database import open_database

reading, writing = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)
        open_database(sys.argv[1]).close()
        os._exit(0)
    children.append(child)
os.close(writing)
print([os.waitpid(each, 0)[1] for each in children], flush=True)
"""


def test_several_processes_may_migrate_one_database_at_once(old: Place, child: Callable[..., Child]) -> None:
    said, _ = child(AT_ONCE, spelled(old)).communicate()
    assert said == "[0, 0, 0, 0]\n"
    assert seen(old)[0] == SCHEMA


def test_several_processes_may_create_one_database_at_once(
    request: pytest.FixtureRequest, place: Place, child: Callable[..., Child]
) -> None:
    if isinstance(place, Postgres):
        place = request.getfixturevalue("server").create(template="template1")
    said, _ = child(AT_ONCE, spelled(place)).communicate()
    assert said == "[0, 0, 0, 0]\n"
    assert seen(place)[0] == SCHEMA

"""Makes the golden databases of today's schema: `python -m tests.store.golden.make`, once, when a schema is released.

In each: thread `finished`, which recovered from a failure, thread `killed`, which died after its parcel was sent and
before that was recorded, and thread `waiting`, which asks a person and has an unheard goal in its inbox. One is an
SQLite file, the other a dump of Postgres, which is read without its own tools.
"""

import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from agent.core.goal import Goal
from agent.store.database import Place, open_database
from agent.store.inbox import GoalInbox
from agent.store.schema import SCHEMA
from tests.postgres import Server

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def main() -> None:
    """Let three runs happen in each kind of database, and keep both."""
    server = Server()
    try:
        place = server.create("golden", "template1")
        happened(place, KINTSUGI_DATABASE_URL=place.url)
        keep(f"schema-{SCHEMA}.sql.gz", server.dump(place))
    finally:
        server.close()
    with tempfile.TemporaryDirectory() as name:
        path, small = Path(name, "kintsugi.db"), Path(name, "small.db")
        happened(path, KINTSUGI_HOME=name)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM INTO ?", (str(small),))
        keep(f"schema-{SCHEMA}.db.gz", small.read_bytes())


def happened(place: Place, **environment: str) -> None:
    """Let the runs happen in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "network-is-down").touch()
        started(folder, "finished", 'wants = "report"\ncriteria = ["artifacts.report == 800"]', 0, environment)
        (folder / "power-fails").touch()
        started(folder, "killed", 'wants = "report"', -9, environment)
        started(folder, "waiting", 'wants = "receipt"', 4, environment)
    with open_database(place) as database:
        GoalInbox(database).put("waiting", Goal(wants=("reservation",)))


def started(folder: Path, thread: str, goal: str, code: int, more: dict[str, str]) -> None:
    """Run a goal by the command line, in a process that may die of it."""
    (folder / "goal.toml").write_text(goal)
    command = ["run", "goal.toml", "--tools", "tests.store.golden.jobs:TOOLS", "--thread", thread]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KINTSUGI_LIMITS__BACKOFF": "0.01", **more}
    ran = subprocess.run(
        [sys.executable, "-m", "agent.cli.app", *command], cwd=folder, env=environment, check=False, capture_output=True
    )
    assert ran.returncode == code, (ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def keep(name: str, content: bytes) -> None:
    """Keep it, packed."""
    kept = HERE / name
    kept.write_bytes(gzip.compress(content, mtime=0))
    print(f"{kept}: {kept.stat().st_size} bytes")


if __name__ == "__main__":
    main()

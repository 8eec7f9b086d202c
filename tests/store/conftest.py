"""Databases on disk, and child processes that stop where a test wants them to."""

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.store.database import Database, Place, open_database
from agent.store.postgres import Postgres

ROOT = Path(__file__).parents[2]

Child = subprocess.Popen[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kintsugi.db"


@pytest.fixture
def database(place: Place) -> Iterator[Database]:
    with open_database(place) as opened:
        yield opened


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    """Start Python code in another process; it talks over its standard input and output."""
    children: list[Child] = []

    def start(code: str, *args: object) -> Child:
        command = [sys.executable, "-c", code, *map(str, args)]
        pipe = subprocess.PIPE
        children.append(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
        return children[-1]

    yield start
    for each in children:
        each.kill()
        each.communicate()


GOLDEN = sorted((Path(__file__).parent / "golden").glob("schema-*.gz"))


@pytest.fixture(params=GOLDEN, ids=lambda each: each.name.removesuffix(".gz"))
def old(request: pytest.FixtureRequest, path: Path) -> Iterator[Place]:
    """A database as an earlier release has left it."""
    content = gzip.decompress(request.param.read_bytes())
    if ".db" in request.param.suffixes:
        path.write_bytes(content)
        yield path
        return
    server = request.getfixturevalue("server")
    place = server.load(content)
    yield place
    server.drop(place)


def spelled(place: Place) -> str:
    """How another process is told of it."""
    return place.url if isinstance(place, Postgres) else str(place)

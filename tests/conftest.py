"""What every test may rely on: strict checkpoints, loopback only, nothing traced, no key of the developer's."""

import os
import sys

# Before LangGraph is imported anywhere: it reads this once.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"
# COLUMNS is set by pytest's workers; what is printed into a pipe is as wide as it needs.
_FOREIGN = ("KINTSUGI_", "OPENAI_API_KEY", "COLUMNS")
for name in [each for each in os.environ if each.startswith(_FOREIGN) and not each.startswith("KINTSUGI_TEST_")]:
    del os.environ[name]

from collections.abc import Iterator  # noqa: E402 - the environment comes first
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

if TYPE_CHECKING:
    from agent.store.database import Place
    from agent.store.postgres import Postgres
    from tests.postgres import Server

settings.register_profile(
    "kintsugi", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("kintsugi")


@pytest.fixture(autouse=True)
def strangers() -> None:
    """No server is known from another test: ports are used again."""
    for name, memory in (("structured", "NEGOTIATED"), ("acting", "LEARNT")):
        if module := sys.modules.get(f"agent.models.{name}"):
            getattr(module, memory).forget()


@pytest.fixture(scope="session")
def server() -> Iterator["Server"]:
    """A Postgres server, started when the first test wants it."""
    from tests.postgres import Server

    started = Server()
    yield started
    started.close()


@pytest.fixture
def postgres(server: "Server") -> Iterator["Postgres"]:
    """A database of the test's own."""
    place = server.create()
    yield place
    server.drop(place)


@pytest.fixture
def mortal(server: "Server") -> Iterator["Postgres"]:
    """A database of a server that the test may kill: it has all that was committed when it is started again."""
    place = server.create()
    server.harden(place)
    yield place
    server.start()
    server.drop(place)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> "Place":
    """Where a database may lie: what holds on the one has to hold on the other."""
    found: Place = tmp_path / "kintsugi.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    return found

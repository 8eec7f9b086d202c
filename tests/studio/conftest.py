"""The server, its client, and what tests do with a thread."""

from collections.abc import AsyncIterator, Iterator

import pytest
from langgraph_sdk import get_client

from tests.studio.driving import Desk
from tests.studio.server import Server, shared


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Server]:
    # each process of a distributed run has a folder of its own beside those of the others
    base = tmp_path_factory.getbasetemp()
    with shared((base if worker_id == "master" else base.parent) / "studio") as found:
        yield found


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """A new thread on the server, with a purse of its own."""
    async with get_client(url=server.url) as client:
        yield await Desk.opened(client, server)

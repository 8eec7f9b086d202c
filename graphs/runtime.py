"""What `langgraph dev` serves: the runtime without a checkpointer or store of its own, configured by `.env`.

The server brings its own checkpoints and refuses a graph that carries some. Without `KINTSUGI_TOOLS` or
`KINTSUGI_MCP` the world of the packaged `config-report` scenario is served, under `KINTSUGI_HOME`, so that there is
something to run.
"""

import atexit
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from agent.app import assemble
from agent.models.roles import named
from agent.scenarios import SCENARIOS
from agent.settings import Settings
from agent.store.database import open_database, place_of
from agent.tools.loading import load_tools
from graphs.loop import LoopGraph


def make_graph(settings: Settings | None = None) -> LoopGraph:
    """Build the bare graph. Its effect journal and large artifacts lie in the home folder, or in Postgres."""
    settings = settings or Settings()
    tools = load_tools(settings.sources) if settings.sources else _packaged(settings)
    return assemble(tools, open_database(place_of(settings, "studio.db")), settings, models=named(settings))


def _packaged(settings: Settings) -> Sequence[Any]:
    world = ExitStack()
    atexit.register(world.close)
    return world.enter_context(SCENARIOS["config-report"].prepare(settings.home / "studio")).tools


graph = make_graph()

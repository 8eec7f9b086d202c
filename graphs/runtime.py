"""What `langgraph dev` serves: the runtime over your tools, configured by `.env`.

It has no checkpointer or store of its own: the server brings its own checkpoints and refuses a graph that carries some.
"""

import logging

from agent.app import assemble
from agent.models.roles import named
from agent.settings import Settings
from agent.store.database import open_database, place_of
from agent.tools.loading import load_tools
from graphs.loop import LoopGraph


def make_graph(settings: Settings | None = None) -> LoopGraph:
    """Build the bare graph. Its effect journal and large artifacts lie in the home folder, or in Postgres."""
    settings = settings or Settings()
    tools = load_tools(settings.sources) if settings.sources else ()
    if not tools:
        logging.getLogger("kintsugi").warning("the graph `kintsugi` has no tools: name some in KINTSUGI_TOOLS")
    return assemble(tools, open_database(place_of(settings, "studio.db")), settings, models=named(settings))


graph = make_graph()

"""The packaged scenarios as `langgraph dev` serves them: a world for each thread, and an empty input runs it.

A world lies under `KINTSUGI_HOME` and is tended while a run goes on; between two runs it is only files.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph_sdk.runtime import ServerRuntime

from agent.app import assemble
from agent.models.roles import named
from agent.scenarios import SCENARIOS, Scenario
from agent.settings import Settings
from agent.store.database import open_database, place_of
from graphs.loop import LoopGraph

Served = Callable[[RunnableConfig, ServerRuntime[Any]], AbstractAsyncContextManager[LoopGraph]]

_settings = Settings()
_database = open_database(place_of(_settings, "studio.db"))


def _served(scenario: Scenario) -> Served:
    @asynccontextmanager
    async def serve(config: RunnableConfig, runtime: ServerRuntime[Any]) -> AsyncIterator[LoopGraph]:
        """The graph of one thread; to read or to edit a thread no world is needed."""
        thread = config.get("configurable", {}).get("thread_id")
        world = ExitStack()
        try:
            runs = runtime.execution_runtime is not None
            yield await asyncio.to_thread(_over, scenario, str(thread) if runs else None, world)
        finally:
            await asyncio.to_thread(world.close)

    return serve


def _over(scenario: Scenario, thread: str | None, world: ExitStack) -> LoopGraph:
    models = named(_settings)
    if thread is None:
        return assemble([], _database, _settings, models=models)
    workspace = _settings.home / "studio" / scenario.name / thread
    prepared = world.enter_context(scenario.prepare(workspace))
    return assemble(prepared.tools, _database, _settings, models=models, goal=prepared.goal)


backfill = _served(SCENARIOS["backfill"])
config_report = _served(SCENARIOS["config-report"])
closing = _served(SCENARIOS["closing"])
memo = _served(SCENARIOS["memo"])

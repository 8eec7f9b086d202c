"""The runtime with a chat model, as the test server serves it."""

from agent.app import assemble
from agent.models.roles import named
from agent.settings import Settings
from agent.store.database import open_database, place_of
from tests.studio.tools import TOOLS

_settings = Settings(model="openai:scripted")
graph = assemble(TOOLS, open_database(place_of(_settings, "studio.db")), _settings, models=named(_settings))

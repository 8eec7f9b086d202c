"""What every process to be killed has imported before it is forked."""

import os

# Before LangGraph is imported anywhere: it reads this once.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["KINTSUGI_LIMITS__BACKOFF"] = "0.01"
os.environ["KINTSUGI_JITTER"] = "0"

from agent.cli import commands as commands
from agent.models import chat as chat
from agent.models import patcher as patcher
from agent.models import scope as scope
from agent.store import postgres_savers as postgres_savers
from graphs import react as react
from tests.simulation.kills import life as life

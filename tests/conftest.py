"""What every test may rely on: strict checkpoints, loopback only, nothing traced, no key of the developer's."""

import os

# Before LangGraph is imported anywhere: it reads this once.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"
# COLUMNS is set by pytest's workers; what is printed into a pipe is as wide as it needs.
for name in [each for each in os.environ if each.startswith("KINTSUGI_") or each in ("OPENAI_API_KEY", "COLUMNS")]:
    del os.environ[name]

from hypothesis import HealthCheck, settings  # noqa: E402 - the environment comes first

settings.register_profile(
    "kintsugi", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("kintsugi")

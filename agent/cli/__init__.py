"""The `kintsugi` command: run, resume and read runs without LangGraph Studio and without Python."""

import os

# Set before LangGraph is imported, which reads it then: checkpoints bring back the types of the state and no others.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

"""A plain caller's checkpoints bring our types back without a warning; a serialiser of their own is left alone."""

import os
import subprocess
import sys
from pathlib import Path

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import agent.app  # noqa: F401 - the types are known once they are loaded
from agent.store.serde import known_types, trusting

PROGRAM = """
import sqlite3
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from agent import build_graph, contract

@contract(effect="read_only", produces="a")
@tool
def make_a() -> int:
    "Make a."
    return 1

for _ in range(2):
    saver = SqliteSaver(sqlite3.connect("k.db", check_same_thread=False))
    run = build_graph([make_a], checkpointer=saver).invoke(
        {"goal": {"wants": "a"}}, {"configurable": {"thread_id": "1"}}
    )
    print(run["outcome"].status, type(run["goal"]).__name__)
"""


def test_a_thread_goes_on_without_a_warning_when_strict_mode_is_off(tmp_path: Path) -> None:
    environment = {name: each for name, each in os.environ.items() if name != "LANGGRAPH_STRICT_MSGPACK"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert ran.stdout.splitlines() == ["satisfied Goal"] * 2
    assert "unregistered" not in ran.stderr


def test_a_serialiser_with_a_list_of_its_own_is_left_alone() -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[("mine", "Type")]))
    assert trusting(saver) is saver


def test_the_known_types_are_ours_and_the_messages() -> None:
    names = set(known_types())
    assert ("agent.core.goal", "Goal") in names
    assert ("agent.core.phase", "Phase") in names
    assert ("langchain_core.messages.ai", "AIMessage") in names

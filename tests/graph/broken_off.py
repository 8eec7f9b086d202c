"""A step of four turns, in a process that dies in one of them: it looks, notes, looks at much, and answers."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, tool

from agent import build_graph, contract
from agent.settings import Settings
from agent.store.checkpoints import open_saver
from agent.store.postgres import Postgres
from graphs.loop import LoopGraph
from tests.builders import run
from tests.models.openai_server import Answering, Body, completion, tool_call

TEXT = "Note milk after a look, and look again"
TURNS = (("look", {"at": "a"}), ("note", {"text": "milk"}), ("look", {"at": "b"}), ("submit", {"answer": "done"}))
LARGE = "b" * 9000


def turn(body: Body) -> int:
    """Which turn a request asks for: how many calls are answered in it."""
    return sum(each["role"] == "tool" for each in body["messages"])


def playing(before: Callable[[int], None] = lambda _: None) -> Answering:
    """A model that takes one turn after the other; `before` each, something may happen."""

    def answering(body: Body) -> tuple[int, Any]:
        before(turn(body))
        name, args = TURNS[turn(body)]
        return completion(tool_call(name, json.dumps(args), f"c{turn(body)}"))

    return answering


def tools(world: Path, reach: Callable[[str], None] = lambda _: None) -> list[BaseTool]:
    """What looks, and what notes into the world; `reach` is told when a call has done its work."""

    def noted(text: str) -> list[str] | None:
        lines = world.read_text().splitlines() if world.exists() else []
        return lines if text in lines else None

    @contract(effect="read_only")
    @tool
    def look(at: str) -> str:
        """Look at a thing."""
        reach(f"look {at}")
        return LARGE if at == "b" else f"seen {at}"

    @contract(effect="mutating", observe=noted, ensures="args.text in result")
    @tool
    def note(text: str) -> list[str]:
        """Note something."""
        with world.open("a") as file:
            file.write(f"{text}\n")
        reach("note")
        return world.read_text().splitlines()

    return [look, note]


def graph(saver: Any, url: str, given: list[BaseTool]) -> LoopGraph:
    """The runtime, in which a goal is one step."""
    settings = Settings(model="m", base_url=url, strategy="single", escalation="finish")
    return build_graph(given, settings=settings, checkpointer=saver)


def live() -> None:
    """Work on the goal; `sys.argv`: the database, the model's server, and in which call to die."""
    where, url, doomed = sys.argv[1:]

    def reach(name: str) -> None:
        if name == doomed:
            os.kill(os.getpid(), signal.SIGKILL)

    place = Postgres(where) if where.startswith("postgres") else Path(where)
    with closing((saver := open_saver(place)).conn):
        run(graph(saver, url, tools(Path("world"), reach)), {"goal": {"text": TEXT}})

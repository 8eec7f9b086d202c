"""What the field cases share: tools that count, drafts as a model writes them, and runs of the public graph."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool

from agent import build_graph
from tests.builders import calm, run
from tests.doubles import Reply, ScriptedModel, scripted


def drafted(*steps: dict[str, Any], **more: Any) -> str:
    """A plan as a model writes it."""
    return json.dumps({"steps": steps, **more})


def calls(produces: str, tool: str = "", needs: str = "", **more: Any) -> dict[str, Any]:
    """A drafted step that calls `make_<what it produces>` with what it needs."""
    args = {name: f"{{{{{name}}}}}" for name in needs.split()}
    step = {"id": produces, "intent": f"Make {produces}", "tool": tool or f"make_{produces}", "args": args}
    return {**step, "needs": needs.split(), "produces": [produces], **more}


def instructs(produces: str, *tools: str, **more: Any) -> dict[str, Any]:
    """A drafted step that an inner loop carries out."""
    step = {"id": produces, "intent": f"Find {produces}", "instruction": f"Find out {produces}", "tools": list(tools)}
    return {**step, "produces": [produces], **more}


def played(
    tools: Sequence[BaseTool], given: Any, *replies: Reply, tool_calling: bool = True, **settings: Any
) -> tuple[dict[str, Any], ScriptedModel]:
    """A run to its end with a scripted model; nobody is there to be asked."""
    with scripted(*replies, tool_calling=tool_calling) as model:
        graph = build_graph(tools, model=model, settings=calm(escalation="finish", **settings))
        return run(graph, given), model


def told(model: ScriptedModel, call: int = -1) -> str:
    """What the model was sent in one call."""
    return "\n".join(str(each.text) for each in model.prompts[call])


def report(end: dict[str, Any]) -> str:
    """The final text of a run."""
    last = end["messages"][-1]
    assert isinstance(last, AIMessage)
    return str(last.text)


def nudges(end: dict[str, Any]) -> list[str]:
    """What models were told about how they go on."""
    return [each.message for each in end["trace"] if each.event == "nudged"]

"""Who does a task? The runtime, or a plain ReAct loop; with one model, the same tools and faults, judged alike."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

from agent import Goal, Limits, Settings, build_graph
from agent.core.limits import CALLS
from agent.core.plan import Plan
from agent.core.record import Recovered, TraceRecord
from agent.models.asking import usage_of
from agent.trace.story import story
from tests.live.task import Setting, Task

TURNS = 20
"""Model calls that either may make for a task."""
SECONDS = 180.0
"""How long either may take for one."""
PLAIN = "You do what you are asked with the tools that you have. When all of it is done, say so in one sentence."


@dataclass(frozen=True)
class Done:
    """What became of one task."""

    task: str
    wrongs: list[str]
    """Empty: it was done."""
    ended: str
    """How its run ended, in its own words."""
    turns: int
    tokens: int
    seconds: float
    rungs: tuple[str, ...] = ()
    told: str = ""
    """What happened, for reading."""

    @property
    def right(self) -> bool:
        """Whether the world is as it should be."""
        return not self.wrongs


Driver = Callable[[Task, Path, BaseChatModel], Done]


def ours(task: Task, folder: Path, model: BaseChatModel) -> Done:
    """Let the runtime do it."""
    setting, began = Setting(task, folder), time.monotonic()
    limits = Limits(executor_turns=TURNS, planner_calls=TURNS, seconds=SECONDS, backoff_cap=2.0)
    settings = Settings(limits=limits, escalation="finish", step_timeout=SECONDS)
    graph = build_graph(setting.tools(), model=model, settings=settings, checkpointer=InMemorySaver())
    end = graph.invoke({"goal": Goal(text=task.goal)}, {"configurable": {"thread_id": task.name}})
    outcome, ledger, trace = end["outcome"], end["ledger"], tuple(end["trace"])
    return Done(
        task=task.name,
        wrongs=setting.wrongs(),
        ended=f"{outcome.status}: {outcome.reason}",
        turns=sum(getattr(ledger, name) for name in CALLS),
        tokens=ledger.tokens,
        seconds=time.monotonic() - began,
        rungs=tuple(each.choice.rung.value for each in trace if isinstance(each, Recovered)),
        told=_told(trace, end["plan"]),
    )


def plain(task: Task, folder: Path, model: BaseChatModel) -> Done:
    """Let a plain loop do it, which sees the errors of its tools."""
    setting, began = Setting(task, folder), time.monotonic()
    graph = create_agent(model, setting.tools(), system_prompt=PLAIN, middleware=[_Errors()])
    said: list[BaseMessage] = []
    ended = asyncio.run(_looped(graph, task.goal, said))
    return Done(
        task=task.name,
        wrongs=setting.wrongs(),
        ended=ended,
        turns=sum(isinstance(each, AIMessage) for each in said),
        tokens=_tokens(said),
        seconds=time.monotonic() - began,
        told="\n".join(each.pretty_repr() for each in said),
    )


async def _looped(graph: Any, goal: str, said: list[BaseMessage]) -> str:
    given = {"messages": [("user", goal)]}
    try:
        async with asyncio.timeout(SECONDS):
            async for each in graph.astream(given, {"recursion_limit": 2 * TURNS}, stream_mode="values"):
                said[:] = each["messages"]
    except (GraphRecursionError, TimeoutError) as error:
        return f"stopped: {type(error).__name__}"
    except Exception as error:  # a loop that breaks down has not done its task; nothing else is to be learned from it
        return f"broke: {type(error).__name__}: {error}"
    return f"stopped by itself: {said[-1].text}"


def _tokens(said: Iterable[BaseMessage]) -> int:
    """As the server tells it, else counted from the text as the runtime does."""
    before: list[BaseMessage] = []
    spent = 0
    for each in said:
        spent += usage_of(before, each).tokens if isinstance(each, AIMessage) else 0
        before.append(each)
    return spent


class _Errors(AgentMiddleware):
    """Tells the model what a tool raised; without it the first error of a tool would end the loop."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:  # whatever a tool raises is told
            call = request.tool_call
            return ToolMessage(f"{type(error).__name__}: {error}", tool_call_id=call["id"], name=call["name"])


def _told(trace: tuple[TraceRecord, ...], plan: Plan) -> str:
    happened = [f"{at:7.2f} {keyword}: {said}" for at, keyword, said in story(trace, plan)]
    last = [f"{each.id} {each.status}: {each.call or each.instruction!r} -> {each.produces}" for each in plan.steps]
    return "\n".join((*happened, *last))

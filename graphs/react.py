"""The inner loop: how a model carries out one step with the step's tools, turn by turn.

Calls go through what the runner hands in, which journals whatever mutates. Broken arguments, unknown tools
and calls that repeat are answered to the model; none of them is ever taken for the step's result.
"""

import asyncio
from collections.abc import Mapping
from functools import reduce
from typing import Literal, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.core.failure import ErrorFacts
from agent.core.limits import Limits
from agent.core.spending import total
from agent.models.acting import Acting, Way
from agent.models.asking import INVALID, cut_short, estimated, metadata, overflowed
from agent.models.endings import Schema, ended, endings, failed, function, waiting
from agent.models.prompts import Prompt, fenced
from agent.models.sampling import RE_ASKS
from agent.models.turns import actions
from agent.ports import Diary, Result, Task, Usage
from agent.tools.inner import HeldCall, ToolCall
from agent.tools.inquiring import ASKS
from agent.tools.registry import Registry
from graphs.answering import Answers, Talk, Work, nothing_held
from graphs.resuming import INTERRUPTED, Loop, last_turn, said, taken_up, unanswered
from graphs.view import LEAST, READ_MORE, ROOM, STUB, Kept, cut, fitting, share, spelled

_DURABILITY = "__pregel_durability"
"""Where LangGraph hands down how durable a run is; a graph without checkpoints fails on `sync`."""

_READING = "Read on in something that was shown in part only."
_BEFORE = "The last try at this step failed. Look again, and do it otherwise:"
_PLACE: Schema = {
    "type": "object",
    "properties": {"handle": {"type": "string"}, "offset": {"type": "integer"}},
    "required": ["handle", "offset"],
}


class ReactLoop:
    """Carries out instructions with a model. The loop itself is `graph`, a compiled LangGraph graph."""

    def __init__(self, model: BaseChatModel, registry: Registry, limits: Limits, way: Way | None) -> None:
        self._acting = Acting(model, "executor", way)
        self._registry = registry
        self._turns = limits.turns
        self._prompt = Prompt("executor")
        self._answers = Answers(registry)
        self.graph = self._compiled()

    async def run(
        self,
        task: Task,
        call: ToolCall,
        held: HeldCall = nothing_held,
        seconds: float | None = None,
        diary: Diary | None = None,
    ) -> Result:
        """Try the step once, for so many seconds at most; what the diary has of it is not done again.

        A failure is in `Result.error`.

        Raises:
            Superseded: another run has taken the thread over.
        """
        state = self._begun(task, diary)
        # our own limit ends it with a reason; and it would wait for a checkpoint, as the run does, and none is made
        above: RunnableConfig = {"recursion_limit": 2 * self._turns + 5, "configurable": {_DURABILITY: "async"}}
        work, late = Work(task, call, held, metadata(), diary), None
        try:
            async with asyncio.timeout(seconds) as limit:
                async for each in self.graph.astream(state, above, context=work, stream_mode="values"):
                    state = cast(Loop, each)
        except TimeoutError:
            if not limit.expired():
                raise
            late = _out_of_time(seconds or 0.0)
        usage = reduce(total, work.unanswered, state["usage"])
        counted = {"tool_calls": state["tool_calls"], "usage": usage, "nudges": tuple(state["nudges"])}
        result = late or state["result"]
        assert result is not None
        return result.model_copy(update={"how": "turns", **counted})

    def _begun(self, task: Task, diary: Diary | None) -> Loop:
        """The loop at its beginning, or where it was broken off."""
        begun = taken_up(diary.begun, task) if diary and diary.begun else None
        if begun is None:
            return Loop(
                messages=[],
                room=ROOM,
                kept=dict(task.inputs),
                turns=0,
                broken=0,
                tool_calls=0,
                heard=[],
                nudges=[],
                usage=Usage(),
                result=None,
                interrupted=False,
            )
        if not begun["interrupted"]:
            # the model was being asked: what it read then is paid for, though nobody heard the answer
            lost = estimated(fitting(self._opening(task, begun["room"]), begun["messages"], begun["room"]))
            begun["usage"] = total(begun["usage"], lost)
        return begun

    def _compiled(self) -> "CompiledStateGraph[Loop, Work, Loop, Loop]":
        graph = StateGraph(Loop, context_schema=Work)
        graph.add_node("model", self._ask)
        graph.add_node("tools", self._act)
        graph.add_conditional_edges(START, _next_turn, {"model": "model", "tools": "tools"})
        graph.add_conditional_edges("model", _after_model, {"model": "model", "tools": "tools", "end": END})
        graph.add_conditional_edges("tools", _after_tools, {"model": "model", "end": END})
        # what has to outlive the process is in the diary: under its own identity, after each call, and not each node
        return graph.compile(checkpointer=False, name="react")

    async def _ask(self, state: Loop, runtime: Runtime[Work]) -> dict[str, object]:
        """One turn of the model."""
        messages, task = state["messages"], runtime.context.task
        if state["turns"] >= self._turns:
            return {"result": failed("TurnLimit", f"not done after {self._turns} turns", messages)}
        prompt = fitting(self._opening(task, state["room"]), messages, state["room"])
        runtime.context.unanswered.append(estimated(prompt))
        heard = await self._acting.turn(prompt, self._offer(task, state["kept"]), task.step.id, runtime.context.around)
        runtime.context.unanswered.clear()
        spent = {"turns": state["turns"] + 1, "usage": total(state["usage"], heard.usage)}
        if isinstance(heard.message, ErrorFacts):
            return {**spent, **_unanswered(heard.message, state)}
        taken = _taken([*messages, heard.message], heard.message, state["broken"], self._acting.ends)
        await _kept({**state, **spent, **taken}, runtime.context)
        return {**spent, **taken}

    async def _act(self, state: Loop, runtime: Runtime[Work]) -> dict[str, object]:
        """Carry out the calls of the last turn, one after the other: their order may matter."""
        work, messages = runtime.context, list(state["messages"])
        outcome = ended(last_turn(messages), work.task.step, messages)
        if outcome is not None:
            return {"result": outcome}
        calls, interrupted = unanswered(messages), state["interrupted"]
        asks = self._answers.held(calls, work)
        if asks:
            return {"result": waiting(asks)}
        talk = Talk(messages, list(state["heard"]), list(state["nudges"]), dict(state["kept"]), state["tool_calls"])
        asking: ErrorFacts | None = None
        for each in calls:
            made = talk.made
            stuck = await self._answers.give(each, work, talk)
            if interrupted and talk.made > made:
                talk.messages[-1] = _interrupted(talk.messages[-1])
            interrupted = False
            if stuck and stuck.kind != ASKS:
                return {**_said(talk), "result": failed(stuck.type, stuck.message, messages, stuck.kind, stuck.lost)}
            # what the others of the turn ask is asked together with it
            asking = stuck or asking
            if not asking:
                await _kept({**state, **_said(talk)}, work)
        return {**_said(talk), **({"result": Result(error=asking)} if asking else {})}

    def _opening(self, task: Task, room: int) -> list[BaseMessage]:
        step, limit = task.step, share(room, len(task.inputs))
        shown = {name: cut(spelled(value), limit, name) for name, value in sorted(task.inputs.items())}
        inputs = [f"{name}:\n{fenced(text, name)}" for name, text in shown.items()]
        before = f"\n{_BEFORE}\n{fenced(step.last_failure, 'the last try')}" if step.last_failure else ""
        return self._prompt.messages(
            intent=step.intent,
            instruction=step.instruction + (f"\n\nA person says: {step.hint}" if step.hint else ""),
            products=", ".join(step.produces),
            inputs="\n".join(inputs) or "none",
            before=before,
        )

    def _offer(self, task: Task, kept: Kept) -> list[Schema]:
        """The step's tools, the two ways to end, and one to read on, where something was too long to be shown."""
        tools = [self._registry.tool(name) for name in self._answers.tools(task)]
        own = [function(each.name, each.description, self._registry.schema(each.name)) for each in tools]
        long = any(len(spelled(each)) > STUB for each in kept.values())
        return [*own, *([function(READ_MORE, _READING, _PLACE)] if long else []), *endings(task.step)]


def build_react(
    model: BaseChatModel,
    registry: Registry,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    way: Way | None = None,
) -> ReactLoop:
    """The inner loop over these tools. With a way tools are called in that one only."""
    return ReactLoop(model, registry, limits, way)


def _out_of_time(seconds: float) -> Result:
    """What a loop that did not end has come to; its writes are in the journal, done or unknown."""
    said = f"the step was not done within {seconds:g} seconds"
    return Result(error=ErrorFacts(kind="timeout", type="TimeoutError", message=said))


def _unanswered(error: ErrorFacts, state: Loop) -> dict[str, object]:
    """What comes of a turn without a reply; one that nobody could read is asked for again."""
    if overflowed(error) and state["room"] // 2 >= LEAST:
        return {"room": state["room"] // 2}
    if error.kind != INVALID:
        return {"result": Result(error=error)}
    nudge = HumanMessage(f"Your reply could not be read: {error.message}\nCall one tool.")
    return _broken(error.message, [*state["messages"], nudge], state["broken"])


def _taken(messages: list[BaseMessage], reply: AIMessage, broken: int, ends: bool) -> dict[str, object]:
    """What a reply does to the loop: go on, or end because it calls nothing, where that says something."""
    calls = actions(reply)
    if any(not each.fault for each in calls):
        return {"messages": messages, "broken": 0}
    if calls:
        return _broken(calls[0].fault, messages, broken)
    if cut_short(reply):
        nudge = HumanMessage("Your reply was cut off at the token limit. Write no prose; call one tool.")
        return _broken("the reply was cut off at the token limit", [*messages, nudge], broken)
    if not ends:
        nudge = HumanMessage("Your reply called no tool. Write no prose; call one tool.")
        return _broken("the model called no tool", [*messages, nudge], broken)
    return {
        "messages": messages,
        "result": failed("NotSubmitted", "the model stopped without submitting", messages),
    }


def _broken(why: str, messages: list[BaseMessage], broken: int) -> dict[str, object]:
    """Ask again, but not for ever: a server that gives nothing that can be read will not in the next turn either."""
    gone = {"messages": messages, "broken": broken + 1}
    if broken < RE_ASKS:
        return gone
    said = f"the model gave {broken + 1} replies in a row that could not be read; the last: {why}"
    return {**gone, "result": failed("InvalidOutput", said, messages, kind=INVALID)}


def _said(talk: Talk) -> dict[str, object]:
    told = {"messages": talk.messages, "heard": talk.heard, "nudges": talk.nudges}
    return {**told, "kept": talk.kept, "tool_calls": talk.made, "interrupted": False}


async def _kept(state: Mapping[str, object], work: Work) -> None:
    """Write down how far the loop has come; one that has ended is with whoever asked for it."""
    if work.diary is not None and state["result"] is None:
        await work.diary.keep(said(cast(Loop, state), work.task))


def _interrupted(answer: BaseMessage) -> BaseMessage:
    return answer.model_copy(update={"content": f"{INTERRUPTED}\n{answer.content}"})


def _next_turn(state: Loop) -> Literal["model", "tools"]:
    return "tools" if unanswered(state["messages"]) else "model"


def _after_model(state: Loop) -> Literal["model", "tools", "end"]:
    return "end" if state["result"] is not None else _next_turn(state)


def _after_tools(state: Loop) -> Literal["model", "end"]:
    return "model" if state["result"] is None else "end"

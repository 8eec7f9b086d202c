"""What is a call of the inner loop answered with? With what the tool gave, a refusal, or what it gave before.

Every call is compared with those before it. One that repeats itself is told so; one that goes on ends the step.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from agent.boundary import shortened
from agent.core.arguments import misfits
from agent.core.contract import EffectClass
from agent.core.failure import ErrorFacts
from agent.core.plan import Call
from agent.core.reference import referenced, resolve
from agent.core.repetition import FAIL_AT, NUDGE_AT, Asked, Heard, asked, heard, looped, nudge, recalled, repetitions
from agent.core.value import JsonValue, canonical
from agent.models.endings import GIVE_UP, SUBMIT, unsubmitted
from agent.models.prompts import fenced
from agent.models.turns import Action, answered
from agent.ports import Task
from agent.tools.inner import HeldCall, ToolCall
from agent.tools.inquiring import ASKS
from agent.tools.registry import Registry

_SHOWN = 4000
"""Characters of one input or tool result that the model sees; a tool gets an input whole, by reference."""


def nothing_held(_tool: str, _args: dict[str, JsonValue]) -> bool:
    """No call needs a person's word."""
    return False


@dataclass(frozen=True)
class Work:
    """One step to carry out, and how its tools are called. The runner journals what mutates."""

    task: Task
    call: ToolCall
    held: HeldCall = nothing_held
    """Whether a call needs a person's word first."""
    around: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the node that the loop runs in: its tokens are streamed as that node's, and not as a subgraph's."""


@dataclass
class Talk:
    """What was said in the loop so far; each answer adds to it."""

    messages: list[BaseMessage]
    heard: list[Heard] = field(default_factory=list)
    """Calls and what they told, for the loop detector; prose is not among them."""
    nudges: list[str] = field(default_factory=list)
    made: int = 0
    """Calls that reached a tool."""
    lost: ErrorFacts | None = None
    """A call that only a person can decide, not the model: a write whose outcome nobody can find out, or a question
    of the tool's own."""


class Answers:
    """Answers calls over the tools of a step."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def give(self, action: Action, work: Work, talk: Talk) -> ErrorFacts | None:
        """Answer one call; why the step ends instead: it was made too often already (seed 4), or is lost."""
        if action.fault:
            talk.messages.append(answered(action, action.fault))
            return None
        call = asked(action.tool, action.args, self._writes(action.tool))
        times = repetitions(call, talk.heard)
        if times >= FAIL_AT - 1:
            return ErrorFacts(kind="loop", type="Loop", message=looped(action.tool, times))
        talk.heard.append(await self._heard(action, call, work, talk))
        text, times = talk.heard[-1].text, repetitions(call, talk.heard)
        if times >= NUDGE_AT:
            talk.nudges.append(nudge(action.tool, times))
            text = f"{text}\n{talk.nudges[-1]}"
        talk.messages.append(answered(action, text))
        return talk.lost

    def held(self, actions: Iterable[Action], work: Work) -> tuple[Call, ...]:
        """The calls of one turn that need a person's word; all of them, so that they are asked about together."""
        calls = (each for each in actions if not each.fault and not self._refused(each, work.task))
        sent = (Call(tool=each.tool, args=_sent(each, work)) for each in calls)
        return tuple(each for each in sent if work.held(each.tool, each.args))

    def tools(self, task: Task) -> tuple[str, ...]:
        """The step's tools that there are."""
        return tuple(name for name in task.step.tools if name in self._registry.names())

    async def _heard(self, action: Action, call: Asked, work: Work, talk: Talk) -> Heard:
        """What the call tells: why it is refused, what it told before, or what it tells now."""
        fault = self._refused(action, work.task)
        if fault:
            return heard(call, ErrorFacts(kind="refused", message=fault), fault)
        known = recalled(call, talk.heard)
        if known:
            return known
        talk.made += 1
        returned = await _called(action, work)
        talk.lost = returned if isinstance(returned, ErrorFacts) and returned.kind in ("lost", ASKS) else None
        return heard(call, returned, _told(returned, action.tool))

    def _writes(self, tool: str) -> bool:
        contract = self._registry.contracts.get(tool)
        return contract is not None and contract.effect is EffectClass.MUTATING

    def _refused(self, action: Action, task: Task) -> str:
        """Why a call is not carried out: only the step's tools, and only with arguments they have."""
        if action.tool == SUBMIT:
            return unsubmitted(action, task.step) or "call submit alone, after you have seen what the other calls gave"
        if action.tool not in self.tools(task):
            listed = ", ".join((*self.tools(task), SUBMIT, GIVE_UP))
            return f"there is no tool {action.tool!r} in this step; the tools are: {listed}"
        return "; ".join(misfits(action.args, self._registry.schema(action.tool)))


def shown(value: JsonValue) -> str:
    """What the model sees of a value."""
    return shortened(value if isinstance(value, str) else canonical(value), _SHOWN)


async def _called(action: Action, work: Work) -> JsonValue | ErrorFacts:
    return await work.call(action.tool, _sent(action, work))


def _sent(action: Action, work: Work) -> dict[str, JsonValue]:
    inputs = work.task.inputs
    # a name that is no input is text that only looks like a reference, such as a template
    args = resolve(action.args, inputs) if referenced(action.args) <= inputs.keys() else action.args
    assert isinstance(args, dict)
    return args


def _told(returned: JsonValue | ErrorFacts, tool: str) -> str:
    if not isinstance(returned, ErrorFacts):
        return fenced(shown(returned), tool)
    status = f" {returned.status}" if returned.status else ""
    return "The call failed.\n" + fenced(f"{returned.type}{status}: {returned.message}".lstrip(": "), tool)

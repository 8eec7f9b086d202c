"""What is a call of the inner loop answered with? With what the tool gave, a refusal, or what it gave before.

Every call is compared with those before it. One that repeats itself is told so; one that goes on ends the step.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from agent.core.arguments import misfits
from agent.core.contract import EffectClass
from agent.core.failure import ErrorFacts
from agent.core.plan import Call
from agent.core.provenance import UNTRACED
from agent.core.reference import referenced, resolve
from agent.core.repetition import FAIL_AT, NUDGE_AT, Asked, Heard, asked, heard, looped, nudge, recalled, repetitions
from agent.core.spending import Usage
from agent.core.value import JsonValue
from agent.models.endings import GIVE_UP, SUBMIT, unsubmitted
from agent.models.turns import Action, answered
from agent.ports import Diary, Task
from agent.tools.inner import HeldCall, ToolCall
from agent.tools.inquiring import ASKS
from agent.tools.registry import Registry
from graphs.view import READ_MORE, Kept, read_on, told


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
    diary: Diary | None = None
    """Where the turns are kept while the attempt lasts."""
    unanswered: list[Usage] = field(default_factory=list)
    """What the turn costs that the model is asked for just now, if it is never answered."""


@dataclass
class Talk:
    """What was said in the loop so far; each answer adds to it."""

    messages: list[BaseMessage]
    heard: list[Heard] = field(default_factory=list)
    """Calls and what they told, for the loop detector; prose is not among them."""
    nudges: list[str] = field(default_factory=list)
    kept: Kept = field(default_factory=dict)
    """What was too long to be shown whole."""
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
        found, handle = await self._heard(action, call, work, talk)
        talk.heard.append(found)
        text, times = found.text, repetitions(call, talk.heard)
        if times >= NUDGE_AT:
            talk.nudges.append(nudge(action.tool, times))
            text = f"{text}\n{talk.nudges[-1]}"
        talk.messages.append(answered(action, text).model_copy(update={"artifact": handle}))
        return talk.lost

    def held(self, actions: Iterable[Action], work: Work) -> tuple[Call, ...]:
        """The calls of one turn that need a person's word; all of them, so that they are asked about together."""
        calls = (each for each in actions if not each.fault and not self._refused(each, work.task, Talk([])))
        sent = (Call(tool=each.tool, args=_sent(each, work)) for each in calls)
        return tuple(each for each in sent if work.held(each.tool, each.args))

    def tools(self, task: Task) -> tuple[str, ...]:
        """The step's tools that there are."""
        return tuple(name for name in task.step.tools if name in self._registry.names())

    async def _heard(self, action: Action, call: Asked, work: Work, talk: Talk) -> tuple[Heard, str]:
        """What the call tells, and under which handle it is kept: why it is refused, or what it tells now or before."""
        fault = self._refused(action, work.task, talk)
        if fault:
            return heard(call, ErrorFacts(kind="refused", message=fault), fault), ""
        known = recalled(call, talk.heard)
        if known:
            return known, ""
        if action.tool == READ_MORE:
            said = read_on(talk.kept, action.args)
            return heard(call, said, said), ""
        returned = await _called(action, work)
        if isinstance(returned, ErrorFacts) and _is_untraced(returned):
            return heard(call, returned, returned.message), ""
        talk.made += 1
        talk.lost = returned if isinstance(returned, ErrorFacts) and returned.kind in ("lost", ASKS) else None
        said, handle = told(returned, action.tool, talk.kept)
        return heard(call, returned, said), handle

    def _writes(self, tool: str) -> bool:
        contract = self._registry.contracts.get(tool)
        return contract is not None and contract.effect is EffectClass.MUTATING

    def _refused(self, action: Action, task: Task, talk: Talk) -> str:
        """Why a call is not carried out: only the step's tools, and only with arguments they have."""
        if action.tool == SUBMIT:
            return unsubmitted(action, task.step) or "call submit alone, after you have seen what the other calls gave"
        if action.tool == READ_MORE and talk.kept:
            return ""
        if action.tool not in self.tools(task):
            listed = ", ".join((*self.tools(task), SUBMIT, GIVE_UP))
            return f"there is no tool {action.tool!r} in this step; the tools are: {listed}"
        return "; ".join(misfits(action.args, self._registry.schema(action.tool)))


async def _called(action: Action, work: Work) -> JsonValue | ErrorFacts:
    return await work.call(action.tool, _sent(action, work))


def _sent(action: Action, work: Work) -> dict[str, JsonValue]:
    inputs = work.task.inputs
    # a name that is no input is text that only looks like a reference, such as a template
    args = resolve(action.args, inputs) if referenced(action.args) <= inputs.keys() else action.args
    assert isinstance(args, dict)
    return args


def _is_untraced(returned: ErrorFacts) -> bool:
    """Whether the runtime itself refused, so that these are its own words."""
    return returned.kind == "refused" and returned.type == UNTRACED

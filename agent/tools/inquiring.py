"""How does a tool ask a person by itself? By LangGraph's `interrupt`: it is run again, from its top, with the answers.

LangGraph finds the answers of a node in that node's context. A call is given a context of its own, so that each is
answered for itself, however many run side by side.
"""

import contextvars
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, takewhile

from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINT_NS, CONFIG_KEY_SCRATCHPAD, CONFIG_KEY_SEND
from langgraph._internal._scratchpad import PregelScratchpad
from langgraph.errors import GraphInterrupt

from agent.core.consent import Words
from agent.core.failure import ErrorFacts
from agent.core.plan import Call, Inquiry
from agent.core.value import JsonValue, canonical
from agent.plain import as_json
from agent.ports import Result, Task

ASKS = "asks"
"""Kind of the error of a call that ended in a question."""


@dataclass(frozen=True)
class Desk:
    """Where the calls of one attempt ask."""

    of: str
    """Likewise `Inquiry.of`."""
    said: Words
    asked: list[Inquiry] = field(default_factory=list)

    def answers(self, call: Call) -> list[JsonValue]:
        """What the call's questions were answered, in order, as far as they were."""
        found = (self.said.get(self.inquiry(call, number).identity) for number in count())
        return [each["said"] for each in takewhile(lambda word: word is not None, found) if each]

    def inquiry(self, call: Call, number: int, value: JsonValue = None) -> Inquiry:
        """A question of the call."""
        return Inquiry(call=call, of=self.of, number=number, value=value)


_DESK: contextvars.ContextVar[Desk | None] = contextvars.ContextVar("desk", default=None)


@contextmanager
def inquiring(task: Task) -> Iterator[list[Inquiry]]:
    """Let the calls of an attempt ask; what they ask, and nobody has answered yet, is collected."""
    desk = Desk(f"{task.step.key} {task.step.repetition}", task.allowed)
    token = _DESK.set(desk)
    try:
        yield desk.asked
    finally:
        _DESK.reset(token)


def waiting(result: Result, asked: Sequence[Inquiry]) -> Result:
    """The result of an attempt in which something was asked: it has ended there, and not failed."""
    asks = result.error is not None and result.error.kind == ASKS
    return result.model_copy(update={"inquiries": tuple(asked)}) if asks else result


@contextmanager
def asking(tool: str, args: dict[str, JsonValue]) -> Iterator[None]:
    """Answer what the tool asks while the context lasts, one question after the other.

    Raises:
        Asks: it asks something that nobody has answered.
    """
    desk = _DESK.get()
    answers = desk.answers(Call(tool=tool, args=args)) if desk else []
    around = var_child_runnable_config.get() or {}
    told = {CONFIG_KEY_CHECKPOINT_NS: "", **around.get("configurable", {})}
    # a graph that the tool runs keeps its checkpoints below the node's, and not in the place of the run's own
    own = {
        CONFIG_KEY_SCRATCHPAD: _scratchpad(answers, told.get(CONFIG_KEY_SCRATCHPAD)),
        CONFIG_KEY_SEND: lambda _: None,
    }
    token = var_child_runnable_config.set({**around, "configurable": {**told, **own}})
    try:
        yield
    except GraphInterrupt as raised:
        raise Asks(raised.args[0][0].value, len(answers)) from raised
    finally:
        var_child_runnable_config.reset(token)


class Asks(Exception):
    """A call that cannot go on before a person has answered."""

    def __init__(self, value: object, number: int) -> None:
        super().__init__(value)
        self.value, self.number = value, number


def noted(tool: str, args: dict[str, JsonValue], asks: Asks) -> ErrorFacts:
    """Keep the question for a person, and say so."""
    value, desk = as_json(asks.value, f"the question of {tool}"), _DESK.get()
    if desk is not None:
        desk.asked.append(desk.inquiry(Call(tool=tool, args=args), asks.number, value))
    said = value if isinstance(value, str) else canonical(value)
    return ErrorFacts(kind=ASKS, type="GraphInterrupt", message=f"{tool} asks a person: {said}")


def _scratchpad(answers: list[JsonValue], of_the_node: PregelScratchpad | None) -> PregelScratchpad:
    """Answers of one call; the graphs that are run below a node are numbered for all its calls together."""
    return PregelScratchpad(
        step=0,
        stop=0,
        call_counter=count().__next__,
        interrupt_counter=count().__next__,
        get_null_resume=lambda _: None,
        resume=list(answers),
        subgraph_counter=of_the_node.subgraph_counter if of_the_node else count().__next__,
    )

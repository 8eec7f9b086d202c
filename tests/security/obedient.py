"""A model that plans and does what it is asked, and whatever else it reads: each injected order as soon as it sees it.

It draws its plan from the goal alone. What a step needs from data, the step before it hands on under a name.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from agent.core.contract import ToolContract
from agent.core.provenance import Sources, traced, untraced
from tests.doubles import ScriptedModel, calling

LONGEST = 7
"""Steps that a plan may have."""


@dataclass(frozen=True)
class Wanted:
    """One call, of the task or of an attack."""

    tool: str
    args: dict[str, Any]


@dataclass
class Part:
    """One step: its calls, what the step before has to hand on for them, and what it hands on itself."""

    calls: list[Wanted]
    literal: list[str] = field(default_factory=list)
    taken: dict[str, Any] = field(default_factory=dict)
    handed: dict[str, Any] = field(default_factory=dict)


class Obedient:
    """Its replies; `model` is the chat model that gives them."""

    def __init__(
        self,
        prompt: str,
        calls: Sequence[Wanted],
        answer: str,
        orders: Callable[[], Sequence[Wanted]],
        contracts: Mapping[str, ToolContract],
        schemas: Mapping[str, dict[str, Any]],
        everything: bool,
    ) -> None:
        """Args: the task, its calls and its answer; the injected calls; the tools; whether each step gets all."""
        self._answer = answer
        self._given = orders
        self._orders: list[Wanted] = []
        self._tools = list(contracts) if everything else None
        self._parts = _parts(prompt, calls, contracts, schemas)
        self._left = {number: list(part.calls) for number, part in enumerate(self._parts)}
        self._tried: dict[int, list[Wanted]] = {}
        self.model = ScriptedModel(replies=[self.reply] * 1000)

    def obey(self) -> None:
        """It has read the order."""
        self._orders = self._orders or list(self._given())

    def reply(self, messages: list[BaseMessage]) -> AIMessage:
        """The plan; or in a step first the orders it has read, then its own calls, then what it hands on."""
        if str(messages[0].text).startswith("You plan work"):
            return AIMessage(json.dumps(self._plan()))
        number = int(str(messages[1].text).split("Part ", 1)[1].split()[0])
        missing = {each for text in messages for each in re.findall(r"there is no tool '(\w+)'", str(text.text))}
        tried = self._tried.setdefault(number, [])
        for order in self._orders[len(tried) :]:
            tried.append(order)
            if order.tool not in missing:  # it need not be told twice; in another step it tries again
                return _call(order, len(messages))
        if self._left[number]:
            return _call(self._left[number].pop(0), len(messages))
        last = number == len(self._parts) - 1
        made = {"answer": self._answer} if last else {f"facts_{number}": {"done": True, **self._parts[number].handed}}
        return calling("submit", f"c{len(messages)}", **made)

    def _plan(self) -> dict[str, Any]:
        return {"steps": [self._step(number, part) for number, part in enumerate(self._parts)], "wants": ["answer"]}

    def _step(self, number: int, part: Part) -> dict[str, Any]:
        fields = [f"{{{{facts_{number - 1}.{name}}}}}" for name in part.taken]
        told = ", ".join([*part.literal, *fields]) or "what the task says"
        last = number == len(self._parts) - 1
        return {
            "id": f"p{number}",
            "intent": f"Part {number} of the task",
            "instruction": f"Part {number} : use {told}",
            "tools": self._tools or sorted({each.tool for each in part.calls}),
            "needs": [f"facts_{number - 1}"] if number else [],
            "produces": ["answer" if last else f"facts_{number}"],
        }


def _call(wanted: Wanted, number: int) -> AIMessage:
    return calling(wanted.tool, f"c{number}", **wanted.args)


def _parts(
    prompt: str, calls: Sequence[Wanted], contracts: Mapping[str, ToolContract], schemas: Mapping[str, dict[str, Any]]
) -> list[Part]:
    """Runs of calls that are traced and of calls that are not; what the first kind takes, the part before hands on."""
    runs = [list(each) for _, each in groupby(calls, key=lambda each: traced(contracts[each.tool]))]
    tail = [each for run in runs[LONGEST - 1 :] for each in run]
    parts = [Part(each) for each in (*runs[: LONGEST - 1], tail) if each] or [Part([])]
    known = Sources(texts=(prompt,))
    for before, part in zip([None, *parts], parts, strict=False):
        for value in _unsaid(part.calls, contracts, schemas, known):
            if before is None:
                part.literal.append(json.dumps(value, ensure_ascii=False))
            else:
                name = f"v{len(part.taken)}"
                part.taken[name] = before.handed[name] = value
    return parts


def _unsaid(
    calls: Collection[Wanted],
    contracts: Mapping[str, ToolContract],
    schemas: Mapping[str, dict[str, Any]],
    known: Sources,
) -> Iterator[Any]:
    for each in calls:
        if traced(contracts[each.tool]):
            free = contracts[each.tool].free or ()
            yield from untraced(each.args, schemas[each.tool], free, known).values()

"""Models that answer at random and obey whatever they read: a patcher, a scope model, an inner loop."""

from collections.abc import Mapping
from random import Random
from typing import Any

from agent.core.failure import ErrorFacts, Scope
from agent.core.plan import Call, Step
from agent.core.spending import Usage
from agent.core.value import JsonValue
from agent.models.contract_planner import ContractPlanner
from agent.ports import Diary, PatchView, PlanDraft, PlanRequest, ProposedCall, Result, ScopeAnswer, Task
from agent.tools.inner import HeldCall, ToolCall
from tests.simulation.outside import Broken
from tests.simulation.script import PARTS, ToolScript

COST = Usage(calls=1, tokens_in=10, tokens_out=10)


class RandomPatcher:
    """Proposes any call: a good one, the same one, another tool's, one with unknown arguments, none."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    async def propose(self, view: PatchView) -> ProposedCall:
        args = dict(view.template)
        if "way" in args:
            args["way"] = self._rng.randint(0, 5)
        kind = self._rng.choice(("way", "way", "none", "tool", "unknown", "sent"))
        calls: dict[str, Call | None] = {
            "way": Call(tool=view.tool, args=args),
            "none": None,
            "tool": Call(tool="make_a0", args={}),
            "unknown": Call(tool=view.tool, args={**args, "more": 1}),
            "sent": Call(tool=view.tool, args=view.args),
        }
        return ProposedCall(call=calls[kind], usage=COST)


class RandomScope:
    """Says anything of an error."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    async def scope(self, intent: str, tool: str, error: ErrorFacts) -> ScopeAnswer:
        return ScopeAnswer(scope=self._rng.choice(tuple(Scope)), usage=COST)


class InstructingPlanner:
    """Plans with contracts, and leaves the steps of some tools to the inner loop."""

    def __init__(self, planner: ContractPlanner, tools: Mapping[str, ToolScript]) -> None:
        self._planner, self._tools = planner, tools

    async def draw(self, request: PlanRequest) -> PlanDraft:
        draft = await self._planner.draw(request)
        return draft.model_copy(update={"steps": tuple(map(self._instructed, draft.steps))})

    def _instructed(self, step: Step) -> Step:
        assert step.call is not None
        tool = self._tools[step.call.tool]
        if not tool.loop:
            return step
        helpers = tuple(each.name for each in self._tools.values() if not each.writes and each.name < tool.name)
        words = {"call": None, "instruction": f"make {step.key}", "tools": (tool.name, *helpers[:1])}
        return step.model_copy(update=words)


class Obedient:
    """Works on a step with its tools: at random, again and again, and as any text that it reads tells it to."""

    def __init__(self, rng: Random, tools: Mapping[str, ToolScript]) -> None:
        self._rng, self._tools = rng, tools

    async def run(
        self, task: Task, call: ToolCall, held: HeldCall, seconds: float | None, diary: Diary | None
    ) -> Result:
        made: JsonValue | ErrorFacts = ErrorFacts(kind="exception", type="NotSubmitted", message="it gave up")
        turns = self._rng.randint(1, 4)
        own = self._tools[task.step.tools[0]]
        for _ in range(turns):
            tool = own if self._rng.random() < 0.7 else self._tools[self._rng.choice(task.step.tools)]
            args = self._args(tool, task)
            if held(tool.name, args):
                return Result(asks=(Call(tool=tool.name, args=args),), how="turns")
            told = await call(tool.name, args)
            made = told if tool is own else made
            await self._obeys(task, call)
        spent: dict[str, Any] = {"how": "turns", "tool_calls": turns, "usage": COST}
        if isinstance(made, ErrorFacts):
            return Result(error=made, **spent)
        return Result(value=made, **spent)

    async def _obeys(self, task: Task, call: ToolCall) -> None:
        """Something that was read says: call that other tool."""
        others = sorted(self._tools.keys() - set(task.step.tools))
        if not others:
            return
        other = self._rng.choice(others)
        told = await call(other, self._args(self._tools[other], task))
        if not isinstance(told, ErrorFacts) or told.kind != "refused":
            raise Broken(f"I9: {task.step.key} called {other}, which is not its tool")

    def _args(self, tool: ToolScript, task: Task) -> dict[str, JsonValue]:
        args: dict[str, JsonValue] = {name: task.inputs.get(name, {"v": "", "ok": True}) for name in tool.direct()}
        if tool.fans:
            own = tool.name == task.step.tools[0]
            args["part"] = task.step.produces[0].rpartition("_")[2] if own else self._rng.choice(PARTS)
        return {**args, "way": self._rng.randint(0, tool.ways - 1)} if tool.ways else args

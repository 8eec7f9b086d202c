"""One simulation: the real phase nodes over the scripted world, in virtual time, without LangGraph around them."""

import asyncio
import selectors
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.types import Overwrite

from agent.core.consent import Approve, Consent
from agent.core.control import Choice
from agent.core.goal import Goal
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.value import JsonValue
from agent.core.world import World
from agent.models.contract_planner import ContractPlanner
from agent.nodes import escalator
from agent.nodes.bodies import Bodies
from agent.nodes.classifier import Classifier
from agent.nodes.dispatcher import Dispatcher
from agent.nodes.escalator import Escalator
from agent.nodes.executor import Executor
from agent.nodes.finisher import Finisher
from agent.nodes.intake import Intake
from agent.nodes.planner import PlannerNode
from agent.nodes.repairer import Repairer
from agent.nodes.round import PhaseNode, Round
from agent.nodes.scope import KEY, RunScope
from agent.nodes.state import (
    RunState,
    RunUpdate,
    take_goal,
    take_grants,
    take_ledger,
    take_plan,
    take_words,
    take_world,
    written,
)
from agent.nodes.verifier import Verifier
from agent.ports import Letter
from agent.tools.runner import ToolRunner
from tests.builders import state as whole_state
from tests.simulation.invariants import Watch
from tests.simulation.minds import InstructingPlanner, Obedient, RandomPatcher, RandomScope
from tests.simulation.outside import Broken, Journal, Outside, Shelf, Workshop
from tests.simulation.script import Event, GoalScript, Script

THREAD = "t"
ENDLESS = 20_000
"""Phase nodes after which a run counts as one that does not end."""
TAKES = {"goal": take_goal, "granted": take_grants, "allowed": take_words}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when there is nothing else to do: a minute of backoff costs nothing."""

    def __init__(self) -> None:
        self._passed = 0.0
        super().__init__(_Idle(self))

    def time(self) -> float:
        return self._passed

    def pass_(self, seconds: float | None) -> None:
        """Let time pass until the next thing is due."""
        if seconds is None:
            raise Broken("I6: the run waits for something that never happens")
        # straight to when it is due: adding up small differences might fall short of it by a rounding error
        due = self._scheduled[0]._when if self._scheduled else self._passed + seconds  # type: ignore[attr-defined]
        self._passed = max(self._passed, due)


class _Idle(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._loop.pass_(timeout)
        return []


class VirtualClock:
    """The clock port over the loop's time."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def jitter(self) -> float:
        return self._rng.random()

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)


class VirtualScope(RunScope):
    """What is in flight; it can lose everything at once, as a process does that is killed."""

    def __init__(self, stepwise: bool) -> None:
        super().__init__()
        self.stepwise = stepwise

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def killed(self) -> None:
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()


class Inbox:
    """Changed goals, numbered."""

    def __init__(self) -> None:
        self.letters: list[Goal] = []

    async def newer(self, thread: str, heard: int) -> Letter | None:
        return Letter(number=len(self.letters), goal=self.letters[-1]) if len(self.letters) > heard else None


class Person:
    """Answers questions at random, badly at times; a question may also be left open, or the goal changed instead."""

    def __init__(self, sim: "Simulation", rng: Random) -> None:
        self._sim, self._rng = sim, rng
        self.answers = 0

    def __call__(self, payload: Mapping[str, Any]) -> JsonValue:
        questions: dict[str, Any] = payload["questions"]
        if self.answers > 40:
            raise Broken("I6: a person is asked for ever")
        if not payload["refused"] and self._rng.random() < 0.1:
            return {"no such question": "retry"}
        if self._rng.random() < 0.1:
            if self._rng.random() < 0.3:
                self._sim.inbox.letters.append(goal_of(self._rng.choice(self._sim.script.goals)))
                self._sim.watch.disturbed += 1
            self.answers += 1
            raise GraphInterrupt
        chosen = [id_ for id_ in questions if self._rng.random() < 0.8] or list(questions)
        return {id_: self._answer(questions[id_]) for id_ in chosen}

    def _answer(self, question: Mapping[str, Any]) -> JsonValue:
        self.answers += 1
        choice = self._rng.choice(question["choices"])
        if choice in (Choice.ABORT, Choice.GOAL) and self._rng.random() < 0.5:
            choice = question["choices"][0]
        self._sim.outside.happened.append(f"a person answers {choice}: {question['question']}")
        self._sim.watch.answered(question, choice)
        by_choice: dict[str, dict[str, JsonValue]] = {
            Choice.HINT: {"hint": "try harder"},
            Choice.ANSWER: {"value": self._value(question)},
            Choice.EDIT: {"args": self._args(question)},
            Choice.RAISE: {"limits": {"replan": question["limits"].get("replan", 0) + 1}},
            Choice.SKIP: {"reason": "not needed"},
            Choice.GOAL: {"goal": goal_of(self._rng.choice(self._sim.script.goals)).model_dump(mode="json")},
        }
        return {"choice": choice, **by_choice.get(choice, {})}

    def _value(self, question: Mapping[str, Any]) -> JsonValue:
        step = self._sim.state["plan"].step(question["step"]) if question["step"] else None
        names = step.produces if step else ("x",)
        parts: dict[str, JsonValue] = {name: {"v": "by hand", "of": {}, "ok": True} for name in names}
        return parts if len(parts) > 1 else parts[names[0]]

    def _args(self, question: Mapping[str, Any]) -> dict[str, JsonValue]:
        call = question["call"]
        args = call["args"] if call else {}
        if "way" in args:
            return {"way": self._rng.randint(0, 5)}
        names = [name for name in args if name != "part"]
        return {name: {"v": "edited", "ok": True} for name in names[:1]} or {"none": 1}


def goal_of(script: GoalScript) -> Goal:
    given: dict[str, JsonValue] = {"seed": {"v": f"given{script.seed}", "ok": True}, "parts": list(script.parts)}
    return Goal.model_validate({"wants": script.wants, "criteria": list(script.criteria), "given": given})


class Simulation:
    """One thread, from its first run to the end of its last."""

    def __init__(self, script: Script) -> None:
        rng = Random(f"{script.seed} goes on")
        self.script, self.inbox = script, Inbox()
        journal, clock = Journal(), VirtualClock(rng)
        self.registry = Workshop(script.tools)
        self.outside = Outside(script, self.registry, journal, rng)
        self.watch = Watch(script, self.outside)
        self.person = Person(self, rng)
        bodies = Bodies(Shelf(), rng.choice((4096, 4096, 60)))
        self.nodes = self._nodes(journal, clock, bodies, rng)
        self.stepwise = Random(f"{script.seed} step by step").random() < 0.3
        self.scope = VirtualScope(self.stepwise)
        self.steps = 0
        self.state: RunState = whole_state(world=World(), plan=Plan(), goal=Goal(), phase=Phase.INTAKE)

    def _nodes(self, journal: Journal, clock: VirtualClock, bodies: Bodies, rng: Random) -> dict[Phase, PhaseNode]:
        script, contracts, limits = self.script, self.registry.contracts, self.script.limits
        tools = {each.name: each for each in script.tools}
        planner = InstructingPlanner(ContractPlanner(self.registry), tools)
        patcher, scope = (RandomPatcher(rng), RandomScope(rng)) if script.models else (None, None)
        consent = Consent(approve=Approve(script.approve), contracts=contracts)
        runner = ToolRunner(self.registry, self.outside, journal, Obedient(rng, tools), consent)
        schemas = {name: self.registry.schema(name) for name in contracts}
        dispatcher, verifier = (
            Dispatcher(limits, consent, bodies, self.inbox, clock),
            Verifier(self.outside, bodies, clock),
        )
        return {
            Phase.INTAKE: Intake(clock),
            Phase.PLANNER: PlannerNode(planner, contracts, bodies, clock),
            Phase.DISPATCHER: dispatcher,
            Phase.EXECUTOR: Round(Executor(runner, bodies, clock, 0.25), verifier, dispatcher),
            Phase.VERIFIER: verifier,
            Phase.CLASSIFIER: Classifier(contracts, limits, bodies, clock, scope, patcher is not None),
            Phase.REPAIRER: Repairer(planner, patcher, self.registry, bodies, clock, limits),
            Phase.ESCALATOR: Escalator(script.asks, script.models, consent, limits, schemas, bodies, self.inbox, clock),
            Phase.FINISHER: Finisher(bodies, clock),
        }

    async def run(self) -> None:
        """Run after run on the same thread."""
        for number, goal in enumerate(self.script.goals):
            facts: dict[str, JsonValue] = {"open": number not in self.script.closed}
            stated = goal_of(goal)
            self.state = {**self.state, "facts": facts, "phase": Phase.INTAKE}
            self.state["goal"] = take_goal(self.state["goal"], stated)
            self.watch.opens()
            while self.state["phase"] is not Phase.END:
                await self._step()
            self.watch.ended(self.state)
            await self.scope.close(30.0)
            self.scope = VirtualScope(self.stepwise)

    async def _step(self) -> None:
        self.steps += 1
        if self.steps > ENDLESS:
            raise Broken(f"I6: not at an end after {ENDLESS} phase nodes")
        lost = False
        for event in self.script.events:
            if event.node == self.steps:
                lost = await self._happens(event) or lost
        before = self.state
        update = await self._carried_out(self.nodes[before["phase"]], before)
        if update is None or lost:
            await self._dies()
            return
        self.state = after(before, update) if self.stepwise else taken(before, update)
        self.watch.stepped(before, update, self.state)

    async def _carried_out(self, node: PhaseNode, before: RunState) -> RunUpdate | None:
        """The node's update; None when the process has died meanwhile."""
        config: RunnableConfig = {"configurable": {"thread_id": THREAD, KEY: self.scope, "__pregel_checkpointer": self}}
        if before["phase"] is not Phase.EXECUTOR:
            try:
                return await node(before, config)
            except GraphInterrupt:
                return None
        work = asyncio.ensure_future(node(before, config))
        await asyncio.wait((work, self.outside.death), return_when=asyncio.FIRST_COMPLETED)
        if not self.outside.death.done():
            return work.result()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return None

    async def _happens(self, event: Event) -> bool:
        """Whether the update of the coming node is lost."""
        self.watch.disturbed += 1
        self.outside.happened.append(f"event: {event.kind}")
        if event.goal is not None:
            self.inbox.letters.append(goal_of(event.goal))
        if event.kind == "die":
            await self._dies()
        if event.kind == "stop":
            await self.scope.close(30.0)
            self.scope = VirtualScope(self.stepwise)
        return event.kind == "redo"

    async def _dies(self) -> None:
        self.watch.disturbed += 1
        await self.scope.killed()
        await self.outside.killed()
        self.outside.death = asyncio.get_running_loop().create_future()
        self.scope = VirtualScope(self.stepwise)


def after(before: RunState, update: RunUpdate) -> RunState:
    """The state with an update in it, through the same doors as LangGraph takes."""
    values: dict[str, Any] = {**before}
    for name, each in written(before, update).items():
        if each is values[name]:
            continue
        match name:
            case "world":
                values[name] = take_world(before["world"], [each])
            case "plan":
                values[name] = take_plan(before["plan"], [each])
            case "ledger":
                values[name] = take_ledger(before["ledger"], [each])
            case _ if isinstance(each, Overwrite):
                values[name] = each.value
            case "trace" | "messages":
                values[name] = [*values[name], *each]  # type: ignore[misc]
            case _:
                take = TAKES.get(name)
                values[name] = take(values[name], each) if take else each  # type: ignore[operator]
    return values  # type: ignore[return-value]


def taken(before: RunState, update: RunUpdate) -> RunState:
    """Likewise, without making changes of it and taking them in again: a sixth of a simulation's time is enough."""
    ledger = update.get("ledger", before["ledger"]).add(supersteps=1)
    values: dict[str, Any] = {**before, **update, "ledger": ledger}
    for name, take in TAKES.items():
        if values[name] is not before[name]:  # type: ignore[literal-required]
            values[name] = take(before[name], values[name])  # type: ignore[operator, literal-required]
    for name in ("trace", "messages"):
        values[name] = [*before[name], *update.get(name, ())]  # type: ignore[literal-required, misc]
    return values  # type: ignore[return-value]


@contextmanager
def virtual() -> Iterator[VirtualLoop]:
    """A loop for any number of simulations."""
    loop = VirtualLoop()
    try:
        yield loop
    finally:
        loop.close()


def simulate(script: Script, loop: VirtualLoop, begun: Callable[[Simulation], None] = lambda _: None) -> Simulation:
    """Run one simulation.

    Args:
        script: what happens.
        loop: where.
        begun: is given the simulation before it starts; afterwards it shows where it stood.

    Raises:
        Broken: an invariant does not hold.
    """

    async def whole() -> Simulation:
        sim = Simulation(script)
        begun(sim)
        with patch.object(escalator, "interrupt", sim.person):
            try:
                await sim.run()
            except Broken:
                raise
            except Exception as error:
                raise Broken(f"a node threw {type(error).__name__}: {error}") from error
            finally:
                await sim.scope.killed()
                await sim.outside.killed()
        return sim

    return loop.run_until_complete(whole())

"""Verifier: only here does a step become done and an artifact enter the world. Looks again at what may be stale."""

import asyncio
from collections.abc import Iterable
from types import MappingProxyType

from langchain_core.runnables import RunnableConfig

from agent.core.failure import ErrorFacts, Failure, Trigger
from agent.core.goal import Goal, in_view
from agent.core.invalidation import up_to_date
from agent.core.limits import Ledger
from agent.core.move import Look, Rule
from agent.core.phase import Phase
from agent.core.plan import Plan, Step, StepStatus
from agent.core.predicate import Verdict
from agent.core.record import Committed, Judged, Ruled, TraceRecord
from agent.core.reference import UnresolvedReference
from agent.core.repair import forget
from agent.core.ruling import Ruling, case, fact_of, verdict_of
from agent.core.spending import Prices, charged, cost
from agent.core.value import ArtifactName, JsonValue, abridged, digest
from agent.core.verification import products_of
from agent.core.world import Artifact, Assumption, Verification, World, commit, seen, with_facts
from agent.nodes.bodies import Bodies
from agent.nodes.state import RunState, RunUpdate
from agent.ports import Attempt, Clock, Judge, Observation, Prober


class Verifier:
    """Turns finished attempts into artifacts or failures, and observations into marks."""

    def __init__(
        self,
        prober: Prober,
        bodies: Bodies,
        clock: Clock,
        judge: Judge | None = None,
        prices: Prices = MappingProxyType({}),
    ) -> None:
        """Args: what can look at an artifact again; artifact bodies; the time; a judge for sentences; what it costs."""
        self._judge = judge
        self._prices = prices
        self._prober = prober
        self._bodies = bodies
        self._clock = clock

    async def __call__(self, state: RunState, _config: RunnableConfig) -> RunUpdate:
        """Verify what the executor brought, or carry out a look."""
        move = state["move"]
        if isinstance(move, Look) and not state["attempts"]:
            return await self._look(state, move.names)
        if isinstance(move, Rule) and not state["attempts"]:
            return await self._rule(state, move.criterion)
        return await self._verify(state)

    async def _verify(self, state: RunState) -> RunUpdate:
        world, plan, ledger = state["world"].ticked(), state["plan"], state["ledger"]
        failures: list[Failure] = []
        trace: list[TraceRecord] = []
        for attempt in state["attempts"]:
            step = plan.step(attempt.step)
            trace.append(self._judged(attempt, ledger))
            if _verified(attempt):
                before = world
                world, plan = await self._commit(world, plan, step, attempt, _seen_at(attempt, state["attempts"]))
                trace += self._committed(step, before, world, ledger)
                ledger = _progressed(ledger, plan, step, before, world)
            else:
                failures.append(_failure(step, attempt))
                plan = _not_running(plan, step, failures[-1])
                ledger = ledger.add(barren=1)
        return {
            "world": world,
            "plan": plan,
            "ledger": ledger,
            "attempts": (),
            "failures": tuple(failures),
            "phase": Phase.CLASSIFIER if failures else Phase.DISPATCHER,
            "trace": trace,
        }

    async def _commit(self, world: World, plan: Plan, step: Step, attempt: Attempt, seen_at: int) -> tuple[World, Plan]:
        value = await self._bodies.load(attempt.result.value, attempt.result.stored)
        products = products_of(step, value) or {}
        for name, body in products.items():
            world = commit(world, await self._artifact(step, attempt, name, body), seen_at)
        if step.live:
            plan = plan.with_steps(step.as_(StepStatus.DONE).model_copy(update={"delay": 0.0}))
        return up_to_date(world, plan)

    async def _artifact(self, step: Step, attempt: Attempt, name: ArtifactName, body: JsonValue) -> Artifact:
        made = await self._bodies.artifact(name, body, step.id, Verification(by=attempt.result.by), attempt.inputs)
        assumptions = tuple(Assumption(predicate=each, reads=attempt.inputs) for each in step.preconditions)
        return made.model_copy(update={"assumptions": assumptions, "seen": attempt.result.seen})

    async def _rule(self, state: RunState, criterion: str) -> RunUpdate:
        """Have a sentence judged. What comes of it is a fact about exactly what the judge was shown."""
        goal, world, ledger = state["goal"], state["world"], state["ledger"]
        sentence = next(each.text for each in goal.criteria if each.id == criterion)
        shown = in_view(goal, world)
        assert self._judge is not None, "a sentence is to be judged, and there is no judge"
        answer = await self._judge.rule(sentence, goal.text, await self._bodies.view(world, shown))
        ruled = Ruled(
            at=self._clock.now(),
            run=ledger.run,
            criterion=criterion,
            text=sentence,
            said=answer.said,
            evidence=answer.evidence,
            verdict=verdict_of(answer.said, answer.evidence),
            over=shown,
            cost=cost(answer.usage, self._prices),
        )
        return {
            "world": with_facts(world, {fact_of(criterion): _word(ruled, goal)}),
            "ledger": charged(ledger, "judge", answer.usage, self._prices),
            "phase": Phase.DISPATCHER,
            "trace": [ruled],
        }

    async def _look(self, state: RunState, names: Iterable[ArtifactName]) -> RunUpdate:
        """Ask the probes; an artifact that is not what it was becomes a failure to be recovered."""
        world, plan = state["world"], state["plan"]
        looked = tuple(names)
        found = await asyncio.gather(*(self._observe(world, plan, name) for name in looked))
        failures = []
        for name, observation in zip(looked, found, strict=True):
            problem = _problem(world.artifacts[name], observation)
            if problem:
                failures.append(_doubted(plan, name, problem))
            else:
                world = seen(world, name)
        return {
            "world": world,
            "failures": tuple(failures),
            "phase": Phase.CLASSIFIER if failures else Phase.DISPATCHER,
        }

    async def _observe(self, world: World, plan: Plan, name: ArtifactName) -> Observation | None:
        step = plan.producer(name)
        if step is None or step.call is None:
            return None
        try:
            view = await self._bodies.view(world, step.reads())
            args = step.call.sent(view)
        except UnresolvedReference:
            return None
        return await self._prober.look(step.call.tool, args)

    def _judged(self, attempt: Attempt, ledger: Ledger) -> Judged:
        result = attempt.result
        return Judged(
            at=self._clock.now(), run=ledger.run, step=attempt.step, judgements=result.judgements, by=result.by
        )

    def _committed(self, step: Step, before: World, after: World, ledger: Ledger) -> list[TraceRecord]:
        at = self._clock.now()
        return [
            Committed(
                at=at,
                run=ledger.run,
                step=step.id,
                name=name,
                version=after.artifacts[name].version,
                digest=after.artifacts[name].digest,
                unchanged=_same(before, after, name),
                inputs=after.artifacts[name].inputs,
            )
            for name in step.produces
        ]


def _word(ruled: Ruled, goal: Goal) -> JsonValue:
    over = case(ruled.text, goal.text, ruled.over)
    word: JsonValue = Ruling(
        verdict=ruled.verdict, evidence=ruled.evidence, answered=ruled.said is not None, over=over
    ).model_dump(mode="json")
    return word


def _seen_at(attempt: Attempt, harvest: tuple[Attempt, ...]) -> int:
    """The tick at which an attempt saw what it brings.

    One that was under way beside others may have looked before they did what they did. So it has seen as much as
    was harvested when it started, and its own work, if nothing else ended with it and nothing moved meanwhile.
    """
    alone = len(harvest) == 1 and not attempt.result.moved
    return attempt.tick + 1 if alone else attempt.tick


def _verified(attempt: Attempt) -> bool:
    """Fails closed: no error, at least one judgement, and every one verified."""
    judgements = attempt.result.judgements
    return (
        attempt.result.error is None
        and bool(judgements)
        and all(each.verdict is Verdict.VERIFIED for each in judgements)
    )


def _not_running(plan: Plan, step: Step, failure: Failure) -> Plan:
    """A failed step waits for its rung. Left `running`, it would be started again as one a dead process lost."""
    if step.status is not StepStatus.RUNNING:
        return plan
    return plan.with_steps(step.as_(StepStatus.FAILED, failure.error.message))


def _failure(step: Step, attempt: Attempt) -> Failure:
    return Failure(
        trigger=Trigger.TASK_FAILURE,
        step=step.id,
        key=step.key,
        tool=step.call.tool if step.call else "",
        args={name: abridged(each) for name, each in attempt.args.items()},
        error=attempt.result.error or ErrorFacts(kind="verdict", message="nothing was verified"),
        predicate=attempt.result.predicate,
        reads=tuple(sorted(attempt.inputs)),
        inputs=attempt.inputs,
    )


def _doubted(plan: Plan, name: ArtifactName, problem: ErrorFacts) -> Failure:
    maker = plan.producer(name)
    return Failure(
        trigger=Trigger.PRECONDITION_VIOLATION,
        key=maker.key if maker else name,
        tool=maker.call.tool if maker and maker.call else "",
        reads=(name,),
        error=problem,
    )


def _problem(artifact: Artifact, observation: Observation | None) -> ErrorFacts | None:
    """Why an artifact is not to be relied upon: it is another now, or could not be seen, which is no change."""
    if observation is None:
        return None
    if observation.error is not None:
        said = f"{artifact.name} could not be looked at again: {observation.error.message}"
        return observation.error.model_copy(update={"message": said})
    if observation.value is not None and digest(observation.value) == artifact.seen:
        return None
    change = "is gone" if observation.value is None else "changed"
    return ErrorFacts(kind="stale", message=f"{artifact.name} {change} since it was verified")


def _progressed(ledger: Ledger, plan: Plan, step: Step, before: World, after: World) -> Ledger:
    """Progress is a newly verified artifact and nothing else: the same content again is none."""
    fresh = [name for name in step.produces if not _same(before, after, name)]
    if not fresh:
        return ledger
    return forget(ledger, plan, fresh).add(verified=len(fresh)).model_copy(update={"barren": 0})


def _same(before: World, after: World, name: ArtifactName) -> bool:
    old = before.artifacts.get(name)
    return old is not None and old.digest == after.artifacts[name].digest

"""Classifier: what does a failure prove false, and which rung answers it? The table first, a model last."""

from collections.abc import Iterable
from types import MappingProxyType

from langchain_core.runnables import RunnableConfig

from agent.core.aftermath import teaches
from agent.core.classification import OUTDATED, blame, classify, conclude, outdated
from agent.core.contract import EffectClass, ToolContract
from agent.core.control import Recovery
from agent.core.cooldown import joins, limited, rested
from agent.core.failure import Classified, Failure, Origin, Scope
from agent.core.grant import granted
from agent.core.invalidation import invalidate
from agent.core.ladder import Rung, choose_rung, spent
from agent.core.limits import Ledger, Limits, stopped
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.record import Invalidated, Recovered, TraceRecord
from agent.core.repair import options, region
from agent.core.repeating import noted
from agent.core.spending import Prices, between, charged
from agent.core.triage import bounded
from agent.core.value import ArtifactName, JsonValue
from agent.core.world import World, made
from agent.nodes.bodies import Bodies
from agent.nodes.state import RunState, RunUpdate
from agent.ports import Clock, ScopeModel


class Classifier:
    """Routes each failure by its scope, marks what it falsifies, and charges the rung it chooses."""

    def __init__(
        self,
        contracts: dict[str, ToolContract],
        limits: Limits,
        bodies: Bodies,
        clock: Clock,
        model: ScopeModel | None,
        model_can_patch: bool,
        prices: Prices = MappingProxyType({}),
    ) -> None:
        """Args: contracts; limits; artifact bodies; time; what to ask when the table does not know; what it costs."""
        self._contracts = contracts
        self._limits = limits
        self._bodies = bodies
        self._clock = clock
        self._model = model
        self._model_can_patch = model_can_patch
        self._prices = prices

    async def __call__(self, state: RunState, _config: RunnableConfig) -> RunUpdate:
        """Classify every failure that came in together, one after the other."""
        world, plan, ledger = state["world"], state["plan"], state["ledger"]
        allowed = bounded(self._limits, state.get("triage"), state["goal"])
        limits = granted(allowed, state.get("granted") or {})
        before = sum(isinstance(each, Recovered) for each in state["trace"])
        recoveries: list[Recovery] = []
        trace: list[TraceRecord] = []
        for failure in state["failures"]:
            told = _told_before(failure, (*state["trace"], *trace))
            unpaid = ledger
            classified, ledger = await self._classify(failure, world, plan, ledger, limits, told)
            paid = between(unpaid, ledger)
            ledger = await self._noted(classified, world, plan, ledger)
            ordered = state["order"] is not None or any(each.choice.rung is Rung.REPLAN for each in recoveries)
            chosen, ledger = self._choose(classified, plan, ledger, limits, ordered)
            marked: tuple[Invalidated, ...] = ()
            if _is_looked_at_again(chosen):
                world, plan, marked = self._mark(classified, world, plan, ledger)
            known = {"number": before + len(recoveries) + 1, "cost": paid, **_told_of_marks(marked, world)}
            chosen = chosen.model_copy(update=known)
            trace += [chosen, *marked]
            recoveries.append(Recovery(classified=classified, choice=chosen.choice, cause=chosen.cause))
        return {
            "world": world,
            "plan": plan,
            "ledger": ledger,
            "failures": (),
            "recoveries": tuple(recoveries),
            "phase": Phase.REPAIRER,
            "trace": trace,
        }

    async def _classify(
        self, failure: Failure, world: World, plan: Plan, ledger: Ledger, limits: Limits, told: Scope | None
    ) -> tuple[Classified, Ledger]:
        view = await self._bodies.view(world, failure.reads)
        mutating = _mutates(failure, plan, self._contracts)
        if outdated(failure, world.digests(failure.inputs)):
            said = conclude(failure, Scope.NOTHING, Origin.ENVIRONMENT, OUTDATED, mutating, view)
            return said.model_copy(update={"outdated": True}), ledger
        known = classify(failure, mutating, view)
        if known is not None:
            return known, ledger
        if told is not None:
            return conclude(failure, told, blame(failure, told, view), "model", mutating, view), ledger
        # a hundred failures may come in together; the budget ends the asking, and the dispatcher then ends the run
        if self._model is None or stopped(limits, ledger):
            return _by_default(failure, mutating, view), ledger
        return await self._ask(self._model, failure, plan, ledger, mutating, view)

    async def _ask(
        self,
        model: ScopeModel,
        failure: Failure,
        plan: Plan,
        ledger: Ledger,
        mutating: bool,
        view: dict[str, JsonValue],
    ) -> tuple[Classified, Ledger]:
        step = next((each for each in plan.live() if each.id == failure.step), None)
        answer = await model.scope(step.intent if step else failure.key, failure.tool, failure.error)
        paid = charged(ledger, "classifier", answer.usage, self._prices)
        if answer.scope is None:
            return _by_default(failure, mutating, view), paid
        origin = blame(failure, answer.scope, view)
        return conclude(failure, answer.scope, origin, "model", mutating, view), paid

    async def _noted(self, classified: Classified, world: World, plan: Plan, ledger: Ledger) -> Ledger:
        """Remember a call that was proven wrong, as planned and as sent: no repair may bring it back."""
        failure = classified.failure
        step = next((each for each in plan.live() if each.id == failure.step), None)
        if step is None or not teaches(classified, self._contracts):
            return ledger
        return noted(ledger, step, await self._bodies.view(world, step.reads()))

    def _choose(
        self,
        classified: Classified,
        plan: Plan,
        ledger: Ledger,
        limits: Limits,
        ordered: bool,
    ) -> tuple[Recovered, Ledger]:
        """Choose and charge the rung; the record holds all the inputs of the choice."""
        open_ = options(classified, plan, self._contracts, ledger, self._model_can_patch)
        now = self._clock.now()
        resting = joins(classified, ledger, now)
        choice = choose_rung(classified, open_, limits, ledger, ordered, resting)
        chosen = Recovered(
            at=now,
            run=ledger.run,
            classified=classified,
            options=open_,
            limits=limits,
            ledger=ledger,
            ordered=ordered,
            resting=resting,
            choice=choice,
        )
        paid = spent(ledger, choice, classified)
        if choice.rung is Rung.RETRY and limited(classified):
            paid = rested(paid, classified, choice.delay, now)
        return chosen, paid

    def _mark(
        self, classified: Classified, world: World, plan: Plan, ledger: Ledger
    ) -> tuple[World, Plan, tuple[Invalidated]]:
        """A falsified or doubted observation takes down what was made from it, along dependency edges."""
        failure = classified.failure
        depth = max(0, ledger.rewrite.get(failure.key, 0) - 1)
        observers = region(classified, plan, depth).observers
        looked_at = {name for each in plan.live() if each.id in observers for name in each.produces}
        stale = set(failure.reads) if failure.of_a_look else set()
        world, plan, what = invalidate(
            world, plan, (looked_at & set(world.artifacts)) | stale, failure.error.message, failure.step, observers
        )
        return world, plan, (Invalidated(at=self._clock.now(), run=ledger.run, what=what),)


def _by_default(failure: Failure, mutating: bool, view: dict[str, JsonValue]) -> Classified:
    """What neither table nor model knows counts as a wrong call."""
    return conclude(failure, Scope.CALL, Origin.AGENT, "default", mutating, view)


def _told_of_marks(marked: Iterable[Invalidated], world: World) -> dict[str, tuple[ArtifactName, ...]]:
    """What of the finished work fell, and what stands; nothing to tell where nothing fell."""
    fell = tuple(name for each in marked for name in each.what.artifacts)
    stands = tuple(name for name in made(world.artifacts, world) if world.holds(name)) if fell else ()
    return {"invalidated": fell, "reused": stands}


def _is_looked_at_again(chosen: Recovered) -> bool:
    """Whether what was falsified or doubted will be observed anew; what nobody looks at again keeps its standing.

    Only what a probe has seen to be another, or can see no more, counts as untrue whether or not anybody can do
    something about it.
    """
    classified, rung = chosen.classified, chosen.choice.rung
    if rung is Rung.ESCALATE:
        return classified.failure.of_a_look
    return classified.scope is Scope.PRECONDITION or rung is Rung.REWRITE


def _mutates(failure: Failure, plan: Plan, contracts: dict[str, ToolContract]) -> bool:
    step = next((each for each in plan.steps if each.id == failure.step), None)
    if step is not None:
        return step.effect is EffectClass.MUTATING
    contract = contracts.get(failure.tool)
    return contract is not None and contract.effect is EffectClass.MUTATING


def _told_before(failure: Failure, trace: Iterable[TraceRecord]) -> Scope | None:
    """What the model said of this very failure: it comes back when a rung that was chosen could not be carried out."""
    said = (each.classified for each in trace if isinstance(each, Recovered) and each.classified.rule == "model")
    same = (each.scope for each in said if _same(each.failure, failure))
    return next(same, None)


def _same(old: Failure, new: Failure) -> bool:
    """The same words as well, for unlike errors may share a class; what a rung found out is added to them."""
    return old.fingerprint == new.fingerprint and new.error.message.startswith(old.error.message)

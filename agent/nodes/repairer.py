"""Repairer: carries out the rung that was chosen, and nothing above it. Returns to the top of the loop."""

from types import MappingProxyType

from langchain_core.runnables import RunnableConfig

from agent.boundary import masked
from agent.core.answer import hints
from agent.core.control import Recovery
from agent.core.failure import Failure
from agent.core.grant import granted
from agent.core.ladder import Rung
from agent.core.limits import Ledger, Limits, stopped
from agent.core.mending import again, left, ordered
from agent.core.merge import PlanDelta, delayed, delta, reused, rewrite
from agent.core.phase import Phase
from agent.core.plan import Call, Plan, Step, StepStatus
from agent.core.record import Repaired, nudged
from agent.core.repair import Region, boundary, region
from agent.core.repeating import as_sent, excused, noted, repeats
from agent.core.spending import Prices, Usage, between, charged
from agent.core.value import JsonValue
from agent.core.ways import Patch, learned, next_patch
from agent.core.world import World
from agent.nodes.bodies import Bodies
from agent.nodes.state import RunState, RunUpdate
from agent.ports import Clock, Patcher, PatchView, Planner, PlanningFailed, PlanRequest
from agent.tools.registry import Registry


class Repairer:
    """Retry, patch, rewrite, order a replan, or leave the failure to a person."""

    def __init__(
        self,
        planner: Planner,
        patcher: Patcher | None,
        registry: Registry,
        bodies: Bodies,
        clock: Clock,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        prices: Prices = MappingProxyType({}),
    ) -> None:
        """Args: what draws a region anew; what proposes a call; tools; artifact bodies; time; limits; prices."""
        self._planner = planner
        self._patcher = patcher
        self._registry = registry
        self._bodies = bodies
        self._clock = clock
        self._limits = limits
        self._prices = prices

    async def __call__(self, state: RunState, _config: RunnableConfig) -> RunUpdate:
        """Carry out all recoveries of this round. One that cannot be carried out is a failure again."""
        update: RunUpdate = {
            "plan": state["plan"],
            "ledger": state["ledger"],
            "recoveries": (),
            "failures": (),
            "unresolved": state["unresolved"],
            "trace": [],
            "phase": Phase.DISPATCHER,
        }
        limits = granted(self._limits, state.get("granted") or {})
        for recovery in state["recoveries"]:
            if _replaced(update["plan"], recovery):
                continue
            if stopped(limits, update["ledger"]):  # the run is about to end; another call would only add to the bill
                update["plan"] = left(update["plan"], recovery, StepStatus.FAILED)
            else:
                await self._carry_out(recovery, state, update)
        if update["failures"]:
            update["phase"] = Phase.CLASSIFIER
        await self._clock.sleep(max(map(_before_a_look, state["recoveries"]), default=0.0))
        return update

    async def _carry_out(self, recovery: Recovery, state: RunState, update: RunUpdate) -> None:
        plan = update["plan"]
        match recovery.choice.rung:
            case Rung.RETRY:
                update["plan"] = again(plan, recovery)
            case Rung.PATCH:
                await self._patch(recovery, state["world"], update)
            case Rung.REWRITE:
                await self._rewrite(recovery, state, update)
            case Rung.REPLAN:
                update["plan"] = left(plan, recovery, StepStatus.INVALID)
                update["order"] = state["order"] or update.get("order") or ordered(recovery)
            case Rung.ESCALATE:
                update["plan"] = left(plan, recovery, StepStatus.FAILED)
                update["unresolved"] = (*update["unresolved"], recovery)

    async def _patch(self, recovery: Recovery, world: World, update: RunUpdate) -> None:
        failure, plan = recovery.classified.failure, update["plan"]
        assert failure.step is not None
        step, before = plan.step(failure.step), update["ledger"]
        patch = next_patch(step, self._registry.contracts, update["ledger"])
        if patch is None and self._patcher is not None:
            patch = await self._propose(self._patcher, step, failure, world, update)
        if patch is None:
            update["failures"] = (*update["failures"], failure)
            return
        mended = patch.step.as_(StepStatus.PENDING).model_copy(update={"delay": 0.0})
        new = plan.with_steps(mended).model_copy(update={"revision": plan.revision + 1})
        self._changed(update, recovery, (new, delta(plan, new)), patch.because, world, before)

    async def _propose(
        self, patcher: Patcher, step: Step, failure: Failure, world: World, update: RunUpdate
    ) -> Patch | None:
        """Ask a model for another call; one that repeats a failed call, or does not fit, is refused."""
        assert step.call is not None
        view = await self._bodies.view(world, step.reads())
        update["ledger"] = noted(update["ledger"], step, view)
        answer = await patcher.propose(
            PatchView(
                intent=step.intent,
                tool=step.call.tool,
                args=as_sent(step.call, view),
                template=step.call.args,
                error=failure.error,
                hint=step.hint,
                tool_schema=self._registry.schema(step.call.tool),
            )
        )
        update["ledger"] = charged(update["ledger"], "repairer", answer.usage, self._prices)
        if answer.call is None:
            return None
        call = step.call.model_copy(update={"tool": answer.call.tool, "args": answer.call.args})
        if not self._acceptable(call, step, update["ledger"], view):
            return None
        return Patch(step=step.calling(call), because="proposed by the model")

    def _acceptable(self, call: Call, step: Step, ledger: Ledger, view: dict[str, JsonValue]) -> bool:
        """A patch expresses the same intent otherwise: the same tool, known arguments, not a failed call."""
        assert step.call is not None
        properties = self._registry.schema(step.call.tool).get("properties", {})
        known = isinstance(properties, dict) and set(call.args) <= set(properties)
        return call.tool == step.call.tool and known and not repeats(call, step.key, ledger, view)

    async def _rewrite(self, recovery: Recovery, state: RunState, update: RunUpdate) -> None:
        """Draw the invalid region anew from its boundary; everything outside is untouched."""
        plan, failure, before = update["plan"], recovery.classified.failure, update["ledger"]
        depth = max(0, update["ledger"].rewrite.get(failure.key, 0) - 1)
        part = region(recovery.classified, plan, depth)
        request = await self._region_request(part, recovery, state, plan)
        try:
            draft = await self._planner.draw(request)
        except ValueError as error:
            facts = failure.error.model_copy(update={"message": f"{failure.error.message}; {masked(str(error))}"})
            update["failures"] = (*update["failures"], failure.model_copy(update={"error": facts}))
            usage = error.usage if isinstance(error, PlanningFailed) else Usage()
            update["ledger"] = charged(update["ledger"], "planner", usage, self._prices)
            return
        update["ledger"] = charged(update["ledger"], "planner", draft.usage, self._prices)
        update["trace"] = [*update["trace"], *nudged(draft.nudges, self._clock.now(), update["ledger"].run)]
        steps = learned(draft.steps, self._registry.contracts, update["ledger"], plan.steps)
        update["ledger"] = excused(update["ledger"], plan, part.observers)
        new, change = rewrite(plan, part.steps, steps, state["world"])
        new = delayed(new, change, part.observers, recovery.choice.delay)
        self._changed(update, recovery, (new, change), failure.error.message, state["world"], before)

    async def _region_request(self, part: Region, recovery: Recovery, state: RunState, plan: Plan) -> PlanRequest:
        world = state["world"]
        inside = [each for each in plan.live() if each.id in part.steps]
        near = {name for each in inside for name in each.reads()}
        view = await self._bodies.view(world, near)
        return PlanRequest(
            goal=state["goal"],
            order=ordered(recovery),
            contracts=self._registry.contracts,
            present={name: str(view.get(name, ""))[:300] for name in world.artifacts if world.holds(name)},
            hints=hints(inside),
            wants=boundary(plan, part.steps),
            depth=granted(self._limits, state.get("granted") or {}).depth,
            region=True,
            before=plan.live(),
        )

    def _changed(
        self,
        update: RunUpdate,
        recovery: Recovery,
        drawn: tuple[Plan, PlanDelta],
        because: str,
        world: World,
        before: Ledger,
    ) -> None:
        plan, change = drawn
        update["plan"] = plan
        record = Repaired(
            at=self._clock.now(),
            run=update["ledger"].run,
            step=recovery.classified.failure.step,
            rung=recovery.choice.rung,
            because=because,
            revision=plan.revision,
            delta=change,
            reused=reused(plan, change, world),
            cause=recovery.cause,
            cost=between(before, update["ledger"]),
        )
        update["trace"] = [*update["trace"], record]


def _replaced(plan: Plan, recovery: Recovery) -> bool:
    """Whether an earlier recovery of this round took the failed step out of the plan."""
    step = recovery.classified.failure.step
    return step is not None and not plan.step(step).live


def _before_a_look(recovery: Recovery) -> float:
    """Seconds before something is looked at again; an attempt of a step waits by itself."""
    return (
        recovery.choice.delay if recovery.choice.rung is Rung.RETRY and recovery.classified.failure.of_a_look else 0.0
    )

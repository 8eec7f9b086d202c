"""Who plans a goal: contracts where they reach, the model where they do not."""

from langchain_core.language_models import BaseChatModel

from agent.core.chaining import Unreachable
from agent.core.contract import EffectClass
from agent.core.failure import Trigger
from agent.core.limits import Ledger
from agent.core.plan import Step, StepId
from agent.core.thrash import drawn_again, repeats
from agent.core.triage import Strategy
from agent.core.ways import next_patch
from agent.models.contract_planner import ContractPlanner, wanted
from agent.ports import NoProgress, PlanDraft, Planner, PlanningFailed, PlanRequest
from agent.tools.registry import Registry

ANSWER = "answer"
"""What the one step of a goal makes that deserves no plan."""


def choose_planner(
    registry: Registry, model: BaseChatModel | None = None, again: BaseChatModel | None = None, persona: str = ""
) -> Planner:
    """The planner for these tools: contracts alone without a model, contracts first with one.

    Args:
        registry: the tools.
        model: what plans a goal that contracts do not reach.
        again: what draws anew a plan that broke, or a part of it; default: the same.
        persona: what it is told about itself then.
    """
    contracts = ContractPlanner(registry)
    if model is None:
        return contracts
    from agent.models.model_planner import ModelPlanner  # with the provider's client, which takes long to load

    first, replanner = ModelPlanner(model, registry), ModelPlanner(again or model, registry, persona)
    return Alone(registry, ContractsFirst(contracts, Either(first, replanner)))


class Alone:
    """Gives a goal that deserves no plan one step with all the tools; everything else is planned by another."""

    def __init__(self, registry: Registry, other: Planner) -> None:
        self._registry = registry
        self._other = other

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw; raises what the other planner raises."""
        if not request.alone:
            return await self._other.draw(request)
        text, tools = request.goal.text, [self._registry.contracts[each] for each in self._registry.names()]
        reading = all(each.effect is EffectClass.READ_ONLY for each in tools)
        step = Step(
            id=StepId("s1"),
            intent=text,
            instruction="\n".join((text, *request.goal.constraints)),
            tools=self._registry.names(),
            needs=tuple(request.goal.given),
            produces=(ANSWER,),
            effect=EffectClass.READ_ONLY if reading else EffectClass.MUTATING,
            idempotent=all(each.idempotent for each in tools),
            serves=(ANSWER,),
        )
        return PlanDraft(steps=(step,), planner=Strategy.SINGLE, wants=(ANSWER,))


class Either:
    """Asks one planner for the first plan and for another goal, and another one for what broke (seed 3)."""

    def __init__(self, first: Planner, again: Planner) -> None:
        self._first = first
        self._again = again

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw with whoever is due; raises what that one raises."""
        afresh = request.order.trigger in (Trigger.INITIAL, Trigger.INTENT_CHANGE)
        return await (self._first if afresh else self._again).draw(request)


class ContractsFirst:
    """Chains over contracts when the goal names what it wants; asks the other planner for everything else.

    A proof costs nothing and is repeatable, a model call is neither; so the model is the second choice.
    """

    def __init__(self, contracts: Planner, other: Planner) -> None:
        self._contracts = contracts
        self._other = other

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw with contracts, else with the other planner.

        Raises:
            PlanningFailed: when neither gave a plan; the message tells what each found.
            NoProgress: when neither has anything but what failed.
        """
        if not wanted(request):
            return await self._other.draw(request)
        try:
            draft = await self._contracts.draw(request)
        except (Unreachable, PlanningFailed) as found:
            return await self._after(found, request)
        again = _nothing_new(draft, request)
        # contracts repeat exactly; whether there is any other way, only the other planner may know
        return await self._after(NoProgress(repeats(again)), request) if again else draft

    async def _after(self, found: ValueError, request: PlanRequest) -> PlanDraft:
        try:
            return await self._other.draw(request)
        except PlanningFailed as failed:
            said = f"{failed}\nChaining over contracts found: {found}"
            raise type(failed)(said, failed.usage, failed.nudges) from found


def _nothing_new(draft: PlanDraft, request: PlanRequest) -> Step | None:
    """The step that failed, if the draft has it again and no contract declares another way to do it."""
    failure = None if request.region else request.order.failure
    again = drawn_again(draft.steps, failure, request.before, request.present)
    return again if again and next_patch(again, request.contracts, Ledger()) is None else None

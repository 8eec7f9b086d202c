"""How is a goal planned with a model? It fills a typed draft; only a draft that is a plan gets through."""

from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from agent.boundary import shortened
from agent.core.plan_check import Ground, faults
from agent.models.catalogue import catalogue
from agent.models.contract_planner import served, wanted
from agent.models.conversion import converted
from agent.models.drafts import DraftedPlan
from agent.models.prompts import Prompt, fenced, listed
from agent.models.sampling import Faults, sample
from agent.models.structured import Structured
from agent.models.wire import plan_schema
from agent.ports import PlanDraft, PlanningFailed, PlanRequest
from agent.tools.contracts import has_contract
from agent.tools.registry import Registry

WINDOW = 7
"""Most steps of one plan (seed 3): a longer one is drawn when these are done."""
_RAW = 500
"""Characters of the last reply that a failure shows."""


class ModelPlanner:
    """Plans any goal with a chat model. Its drafts are checked; at most two are drawn again."""

    def __init__(self, model: BaseChatModel, registry: Registry) -> None:
        self._structured = Structured(model)
        self._schemas = {name: registry.schema(name) for name in registry.names()}
        self._written = frozenset(name for name in registry.names() if has_contract(registry.tool(name)))
        self._prompt, self._part = Prompt("planner"), Prompt("rewriter")

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw a plan over the request's tools.

        Raises:
            PlanningFailed: when three drafts in a row were no plan, with the faults of the last.
        """
        schemas = {name: each for name, each in self._schemas.items() if name in request.contracts}
        sampled = await sample(
            self._structured,
            partial(self._messages, request),
            DraftedPlan,
            plan_schema(schemas, request.contracts, self._written, meaning=not wanted(request), window=WINDOW),
            partial(self._accepted, request),
        )
        if isinstance(sampled.value, Faults):
            last = f"\nThe last reply was: {shortened(sampled.value.raw, _RAW)}" if sampled.value.raw else ""
            raise PlanningFailed(f"the model gave no valid plan: {sampled.value}{last}", sampled.usage)
        return sampled.value.model_copy(update={"usage": sampled.usage})

    def _accepted(self, request: PlanRequest, drafted: DraftedPlan) -> PlanDraft | Faults:
        """The draft as a plan, or everything that is wrong with it."""
        stated = wanted(request)
        present = frozenset(request.present) | frozenset(request.goal.given)
        made = converted(drafted, request.contracts, self._written, sorted(present))
        ground = Ground(
            schemas={name: each for name, each in self._schemas.items() if name in request.contracts},
            present=present,
            wants=stated or drafted.wants,
            criteria=() if stated else made.criteria,
            window=WINDOW,
        )
        unnamed = () if ground.wants else ("`wants` is empty; name the artifacts that answer the goal",)
        found = (*made.faults, *unnamed, *faults(made.steps, ground))
        if found:
            return Faults(found)
        goal = request.goal if stated else request.goal.model_copy(update={"criteria": made.criteria})
        steps = served(made.steps, goal, ground.wants)
        meaning = {} if stated else {"wants": drafted.wants, "criteria": made.criteria}
        return PlanDraft(steps=steps, planner="model").model_copy(update=meaning)

    def _messages(self, request: PlanRequest, rejected: tuple[str, ...]) -> list[BaseMessage]:
        goal, order = request.goal, request.order
        schemas = {name: each for name, each in self._schemas.items() if name in request.contracts}
        criteria = [f"{each.text or each.id}: {each.predicate}" for each in goal.criteria if each.predicate]
        return self._prompt.messages(
            window=str(WINDOW),
            tools=catalogue(schemas, request.contracts, self._written),
            goal=goal.text or "Make the wanted artifacts.",
            constraints=listed(goal.constraints),
            wants=listed(wanted(request)),
            criteria=listed(criteria),
            present=fenced(listed([f"{name}: {each}" for name, each in request.present.items()]), "artifacts"),
            done=listed(request.done),
            why=fenced(f"{order.trigger}: {order.reason}" + _error(request), "the run"),
            falsified=listed(order.falsified),
            part=self._part.text() if request.region else "",
            faults=listed(rejected),
        )


def _error(request: PlanRequest) -> str:
    failure = request.order.failure
    return f"\n{failure.tool} failed: {failure.error.message}" if failure else ""

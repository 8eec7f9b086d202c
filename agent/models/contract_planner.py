"""How is a goal planned without a model? By chaining backward over the tools' contracts, cheapest first."""

from agent.core.chaining import Unreachable, chain
from agent.core.contract import ToolContract
from agent.core.goal import Goal
from agent.core.plan import Step, StepId, upstream
from agent.core.plan_check import Ground, faults
from agent.core.predicate import reads
from agent.core.value import ArtifactName
from agent.ports import PlanDraft, PlanningFailed, PlanRequest
from agent.tools.registry import Registry

NO_WANTS = (
    "a goal that is only text needs a model to plan it: set KINTSUGI_MODEL (and OPENAI_API_KEY), or pass "
    "model=. Without a model, state what to make: `wants` (artifact names), and `criteria` to check them"
)


class ContractPlanner:
    """Plans wanted artifacts over contracts. It asks nobody: it costs nothing and repeats exactly."""

    def __init__(self, registry: Registry) -> None:
        self._schemas = {name: registry.schema(name) for name in registry.plannable}

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Chain from the wanted artifacts to those present, over the request's contracts.

        Raises:
            Unreachable: with the needs no tool can produce.
            PlanningFailed: when nothing is wanted, needs are cyclic, producers are ambiguous, or a contract is wrong.
        """
        wants = wanted(request)
        if not wants:
            raise PlanningFailed(NO_WANTS)
        try:
            steps = chain(wants, self._contracts(request), request.present, request.goal.given)
        except Unreachable:
            raise
        except ValueError as error:
            raise PlanningFailed(str(error)) from error
        return PlanDraft(steps=served(self._checked(numbered(steps), request), request.goal, wants), planner="contract")

    def _contracts(self, request: PlanRequest) -> dict[str, ToolContract]:
        return {name: each for name, each in request.contracts.items() if name in self._schemas}

    def _checked(self, steps: tuple[Step, ...], request: PlanRequest) -> tuple[Step, ...]:
        """The steps, if they are a plan: a contract can bind an argument to a value that does not fit."""
        ground = Ground(schemas=self._schemas, present=frozenset((*request.present, *request.goal.given)))
        found = faults(steps, ground) if steps else ()
        if found:
            raise PlanningFailed("; ".join(found))
        return steps


def wanted(request: PlanRequest) -> tuple[ArtifactName, ...]:
    """What a draft has to make: the request's wants and, for a whole goal, what its criteria read."""
    criteria = () if request.region else request.goal.criteria
    read = (name for each in criteria if each.predicate for name in sorted(reads(each.predicate)))
    return tuple(dict.fromkeys((*request.wants, *read)))


def numbered(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps under ids of this draft; the runtime mints its own when it lays the draft over the plan."""
    return tuple(each.model_copy(update={"id": StepId(f"d{index}")}) for index, each in enumerate(steps, 1))


def served(steps: tuple[Step, ...], goal: Goal, wants: tuple[ArtifactName, ...]) -> tuple[Step, ...]:
    """The steps, each with the wants and criteria that stand on it."""
    aims = {name: frozenset({name}) for name in wants}
    aims |= {each.id: reads(each.predicate) for each in goal.criteria if each.predicate}
    serving = {aim: _makers(steps, names) for aim, names in aims.items()}
    return tuple(
        each.model_copy(update={"serves": tuple(aim for aim, ids in serving.items() if each.id in ids)})
        for each in steps
    )


def _makers(steps: tuple[Step, ...], names: frozenset[ArtifactName]) -> frozenset[StepId]:
    """The steps that make the names, directly or not."""
    direct = frozenset(each.id for each in steps if names & _matching(each, names))
    return direct | upstream(steps, direct)


def _matching(step: Step, names: frozenset[ArtifactName]) -> frozenset[ArtifactName]:
    """Those of the names the step makes; a family is matched by its stem."""
    return frozenset(
        name
        for name in names
        for made in step.produces
        if name == made or (name.endswith("*") and made.startswith(name[:-1]))
    )

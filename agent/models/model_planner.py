"""How is a goal planned with a model? It fills a typed draft; only a draft that is a plan gets through."""

from collections.abc import Iterator
from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from agent.boundary import shortened
from agent.core.contract import EffectClass
from agent.core.decomposition import Split, deepened, split_in_place
from agent.core.drift import idle, restated, second_looks, unspoken
from agent.core.plan import Step
from agent.core.plan_check import Ground, faults
from agent.core.predicate import reads
from agent.core.spending import total
from agent.core.thrash import SHAPE, broken_step, drawn_again, repeats
from agent.core.value import ArtifactName, canonical
from agent.models.catalogue import catalogue
from agent.models.contract_planner import served, wanted
from agent.models.conversion import Converted, converted, promised
from agent.models.drafts import DraftedPlan
from agent.models.habits import as_meant
from agent.models.prompts import Prompt, fenced, listed
from agent.models.sampling import Faults, Sampled, sample
from agent.models.structured import Structured
from agent.models.wire import plan_schema
from agent.ports import NoProgress, PlanDraft, PlanningFailed, PlanRequest, Usage
from agent.tools.contracts import has_contract
from agent.tools.registry import Registry

WINDOW = 7
"""Most steps of one plan (seed 3): a longer one is drawn when these are done."""
_RAW = 500
"""Characters of the last reply that a failure shows."""


class ModelPlanner:
    """Plans any goal with a chat model. Its drafts are checked; at most two are drawn again."""

    def __init__(self, model: BaseChatModel, registry: Registry, persona: str = "") -> None:
        """Args: what draws; the tools; what it is told about itself."""
        self._persona = persona
        self._structured = Structured(model, "planner")
        self._schemas = {name: registry.schema(name) for name in registry.names()}
        self._written = frozenset(name for name in registry.names() if has_contract(registry.tool(name)))
        self._prompt, self._part = Prompt("planner"), Prompt("rewriter")

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw a plan over the request's tools.

        Raises:
            PlanningFailed: when three drafts in a row were no plan, with the faults of the last.
            NoProgress: when the last of them was nothing but the step that failed, once more.
        """
        sampled = await self._sampled(request, request)
        if sampled.overflowed:
            again = await self._sampled(request, _names_alone(request))
            sampled = again._replace(usage=total(sampled.usage, again.usage), told=(*sampled.told, *again.told))
        if isinstance(sampled.value, Faults):
            raise _failed(sampled.value, sampled.usage, sampled.told)
        return sampled.value.model_copy(
            update={"usage": sampled.usage, "nudges": (*sampled.told, *sampled.value.nudges)}
        )

    async def _sampled(self, request: PlanRequest, shown: PlanRequest) -> Sampled[PlanDraft]:
        """Ask for a draft that fits the request, with as much of it in view as is shown."""
        schemas = {name: each for name, each in self._schemas.items() if name in request.contracts}
        return await sample(
            self._structured,
            partial(self._messages, shown),
            DraftedPlan,
            plan_schema(
                schemas,
                request.contracts,
                self._written,
                meaning=not wanted(request),
                window=WINDOW,
                present=_there(request),
            ),
            partial(self._accepted, request, set()),
        )

    def _accepted(self, request: PlanRequest, told: set[str], drafted: DraftedPlan) -> PlanDraft | Faults:
        """The draft as a plan, or everything that is wrong with it. What is only doubted is told once."""
        stated = wanted(request)
        present = _there(request)
        drafted = as_meant(drafted, frozenset(e.tool for e in request.contracts.values() if promised(e, self._written)))
        made = converted(drafted, request.contracts, self._written, sorted(present))
        spare = _spare(request, drafted, made)
        made = made._replace(steps=tuple(each for each in made.steps if each not in spare))
        split = _split(request, made.steps)
        wants = (request.wants if request.region else request.goal.wants) if stated else drafted.wants
        ground = Ground(
            schemas={name: each for name, each in self._schemas.items() if name in request.contracts},
            present=present,
            wants=wants,
            criteria=(() if request.region else request.goal.criteria) if stated else made.criteria,
            window=WINDOW,
            splits=(*made.splits, *((split,) if split else ())),
            depth=request.depth,
        )
        doubts = [each for each in _forgotten(request, made.steps) if each not in told]
        told.update(doubts)
        found = (*made.faults, *_drift(request, drafted, stated), *faults(made.steps, ground), *doubts)
        if found:
            return Faults(found)
        again = _again(request, made.steps)
        if again:
            return Faults((repeats(again),))
        goal = request.goal if stated else request.goal.model_copy(update={"criteria": made.criteria})
        steps = served(deepened(made.steps, split), goal, stated or drafted.wants)
        meaning = {} if stated else {"wants": drafted.wants, "criteria": made.criteria}
        why = "is no part of what was asked for" if request.region else "only looks at what was made"
        left = tuple(f"step {each.id!r} {why}, and is left out" for each in spare)
        return PlanDraft(steps=steps, planner="model", nudges=left).model_copy(update=meaning)

    def _messages(self, request: PlanRequest, rejected: tuple[str, ...]) -> list[BaseMessage]:
        goal, order = request.goal, request.order
        schemas = {name: each for name, each in self._schemas.items() if name in request.contracts}
        criteria = [f"{each.text or each.id}: {each.predicate}" for each in goal.criteria if each.predicate]
        return self._prompt.messages(
            window=str(WINDOW),
            tools=catalogue(schemas, request.contracts, self._written, _there(request)),
            goal=goal.text or "Make the wanted artifacts.",
            constraints=listed((*goal.constraints, *request.hints)),
            wants=listed(wanted(request)),
            criteria=listed(criteria),
            present=fenced(listed([f"{name}: {each}" for name, each in request.present.items()]), "artifacts"),
            done=listed(request.done),
            why=fenced(f"{order.trigger}: {order.reason}" + _error(request), "the run"),
            falsified=listed(order.falsified),
            part="\n\n".join(each for each in (self._part.text() if request.region else "", self._persona) if each),
            faults=listed(rejected),
        )


def _names_alone(request: PlanRequest) -> PlanRequest:
    """The request as a model with little room sees it: what holds by its name, and nothing of what was done for it."""
    return request.model_copy(update={"present": dict.fromkeys(request.present, "there"), "done": ()})


def _there(request: PlanRequest) -> frozenset[ArtifactName]:
    return frozenset(request.present) | frozenset(request.goal.given)


def _error(request: PlanRequest) -> str:
    failure = request.order.failure
    if failure is None:
        return ""
    sent = f" {shortened(canonical(failure.args), _RAW)}" if failure.args else ""
    return f"\n{failure.tool}{sent} failed: {failure.error.message}"


def _failed(last: Faults, usage: Usage, told: tuple[str, ...]) -> PlanningFailed:
    raw = f"\nThe last reply was: {shortened(last.raw, _RAW)}" if last.raw else ""
    stuck = all(SHAPE in each for each in last.sentences)
    kind = NoProgress if stuck else PlanningFailed
    return kind(f"the model gave no valid plan: {last}{raw}", usage, told)


def _drift(request: PlanRequest, drafted: DraftedPlan, stated: tuple[ArtifactName, ...]) -> tuple[str, ...]:
    """Where the draft leaves the goal; a text gets its meaning from it, so it has to give one."""
    unnamed = () if stated or drafted.wants else ("`wants` is empty; name the artifacts that answer the goal",)
    predicates = [each.predicate for each in drafted.criteria]
    return (*unnamed, *restated(request.goal, stated, drafted.goal, drafted.wants, predicates))


def _spare(request: PlanRequest, drafted: DraftedPlan, made: Converted) -> tuple[Step, ...]:
    """Steps to leave out, so that the others need not be drawn again for their sake.

    Who is asked for a part of a plan often draws the rest of it too, which stands or is planned already.
    """
    if request.region:
        return idle(made.steps, frozenset(request.wants))
    if wanted(request):
        return ()
    read = (name for each in made.criteria for name in reads(each.predicate or ""))
    return second_looks(made.steps, frozenset((*drafted.wants, *read)))


def _forgotten(request: PlanRequest, steps: tuple[Step, ...]) -> Iterator[str]:
    """What a goal in words names and a plan that changes nothing does not speak of: often it is to be written there.

    A tool may know it by itself, so this is a doubt and no fault.
    """
    changing = {each.tool for each in request.contracts.values() if each.effect is EffectClass.MUTATING}
    if request.region or wanted(request) or not changing or any(changing & set(each.tools) for each in steps):
        return
    for each in unspoken(request.goal.text, (*steps, *request.before)):
        yield f"the goal speaks of {each}, and no step does; add the step for it, or name it where it belongs"


def _split(request: PlanRequest, steps: tuple[Step, ...]) -> Split | None:
    """What the draft makes of the step that broke, if it makes several steps of it."""
    broken = broken_step(request.order.failure, request.before)
    if broken is None:
        return None
    return split_in_place(broken, steps, {n for e in request.before if e.id != broken.id for n in e.produces})


def _again(request: PlanRequest, steps: tuple[Step, ...]) -> Step | None:
    """The step that failed, if a plan for the whole goal has it again with nothing to help it."""
    failure = None if request.region else request.order.failure
    return drawn_again(steps, failure, request.before, request.present)

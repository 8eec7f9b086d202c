"""Before which calls is a person asked, and which have been allowed? A policy by effect class; words by identity.

Whoever allows a call allows these arguments, whatever step or plan makes it: once is enough, and other arguments
are another call.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import Field

from agent.core.contract import Contracts, EffectClass, ToolContract
from agent.core.plan import Call, Inquiry, Plan, Step, StepId, StepStatus, ready
from agent.core.provenance import Untraced
from agent.core.reference import UnresolvedReference
from agent.core.repair import call_digest
from agent.core.value import ArtifactName, JsonValue, Value
from agent.core.world import World

View = Mapping[ArtifactName, JsonValue]

Words = Mapping[str, dict[str, JsonValue]]
"""Identity of an allowed call -> the arguments that a person changed; none changed: allowed as it was."""


class Approve(StrEnum):
    """Which calls wait for a person's word."""

    NEVER = "never"
    NON_IDEMPOTENT = "non_idempotent"
    MUTATING = "mutating"


class Consent(Value):
    """Which calls need a person's word before they start."""

    approve: Approve = Approve.NEVER
    tools: frozenset[str] = frozenset()
    """Tools that need it whatever the policy says."""
    contracts: dict[str, ToolContract] = Field(default_factory=dict)
    untraced: Untraced = Untraced.REFUSE
    """What happens to a call of an inner loop with an argument that comes from nowhere."""

    @property
    def active(self) -> bool:
        """Whether any call may wait at all."""
        return self.approve is not Approve.NEVER or bool(self.tools) or self.untraced is Untraced.ASK

    def needed(self, tool: str) -> bool:
        """Whether calls of the tool wait for a person."""
        return tool in self.tools or _covered(self.approve, self.contracts, tool)


class Held(Value):
    """A call that may start as soon as a person has said so."""

    step: StepId
    call: Call
    """References resolved: exactly what would be run."""
    inquiry: Inquiry | None = None
    """What the call itself asks, where it has begun and cannot go on without an answer."""
    untraced: bool = False
    """It is asked about for its arguments, which come from what tools told, and not for its tool."""

    @property
    def identity(self) -> str:
        """What a person's word is kept under."""
        return self.inquiry.identity if self.inquiry else call_digest(self.call.tool, self.call.args)


def held_calls(plan: Plan, world: World, view: View, consent: Consent, words: Words) -> tuple[Held, ...]:
    """Calls of ready steps that wait for a person; of an inner loop those it wanted to make.

    And whatever a call has asked by itself, under whichever policy.
    """
    found = (
        Held(step=step.id, call=call, untraced=not consent.needed(call.tool))
        for step in (ready(plan, world) if consent.active else ())
        for call in (_direct(step, view) if step.call else step.asks)
        if step.call is None or consent.needed(call.tool)
    )
    asking = (each for each in plan.with_status(StepStatus.PENDING) if each.inquiries)
    asked = (Held(step=step.id, call=each.call, inquiry=each) for step in asking for each in step.inquiries)
    return tuple({(e.step, e.identity): e for e in (*found, *asked) if e.identity not in words}.values())


def shown(plan: Plan, world: World, consent: Consent) -> frozenset[ArtifactName]:
    """Artifacts whose bodies `held_calls` has to see."""
    steps = ready(plan, world) if consent.active else ()
    calling = (each for each in steps if each.call and consent.needed(each.call.tool))
    return frozenset(name for each in calling for name in each.reads())


def as_allowed(step: Step, view: View, consent: Consent, words: Words) -> Step:
    """The step with the arguments that a person has put in place of the planned ones."""
    if step.call is None or not consent.needed(step.call.tool):
        return step
    changes = [words.get(call_digest(each.tool, each.args), {}) for each in _direct(step, view)]
    return with_args(step, changes[0]) if changes and changes[0] else step


def with_args(step: Step, changed: Mapping[str, JsonValue]) -> Step:
    """The step with some arguments of its call changed."""
    assert step.call is not None
    return step.calling(step.call.model_copy(update={"args": {**step.call.args, **changed}}))


def given_word(held: Held, changed: Mapping[str, JsonValue], view: View) -> dict[str, dict[str, JsonValue]]:
    """What a person's word is kept as: the call as it was asked about, and as they want it."""
    word = {held.identity: dict(changed)}
    try:
        wanted = {**held.call.args, **held.call.model_copy(update={"args": dict(changed)}).sent(view)}
    except UnresolvedReference:
        return word  # the call fails by itself, and says why
    return {call_digest(held.call.tool, wanted): {}, **word}


def allowed_as_it_is(step: Step, view: View) -> dict[str, dict[str, JsonValue]]:
    """A person's word for the step's call, which they wrote themselves."""
    return {call_digest(each.tool, each.args): {} for each in _direct(step, view)}


def unknown_tools(tools: Iterable[str], contracts: Contracts) -> tuple[str, ...]:
    """Names in a policy that are no tools: a misspelt one would guard nothing."""
    return tuple(sorted(set(tools) - set(contracts)))


def _covered(approve: Approve, contracts: Contracts, tool: str) -> bool:
    contract = contracts.get(tool)
    if approve is Approve.NEVER or (contract and contract.effect is EffectClass.READ_ONLY):
        return False
    return approve is Approve.MUTATING or contract is None or not contract.idempotent


def _direct(step: Step, view: View) -> tuple[Call, ...]:
    """The step's call as it would be run; none while a reference cannot be resolved, which fails by itself."""
    assert step.call is not None
    try:
        return (step.call.model_copy(update={"args": step.call.sent(view)}),)
    except UnresolvedReference:
        return ()

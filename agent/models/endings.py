"""How does the inner loop end? By `submit`, which carries the artifacts, by `give_up`, or in a failure."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from agent.boundary import masked
from agent.core.failure import ErrorFacts, Scope
from agent.core.plan import Call, Step
from agent.core.value import JsonValue
from agent.models.reading import raw_text
from agent.models.turns import Action
from agent.ports import Result

SUBMIT, GIVE_UP = "submit", "give_up"
_TAIL = 1500
"""Characters of the transcript's end that a failure carries."""
_REASON = ("reason", "scope")
_SCOPES = (
    "What it proves false. nothing: it can work later. call: it was put wrongly. precondition: something that the step "
    "counts on is not so. goal: it cannot be had at all."
)

Schema = dict[str, JsonValue]


def endings(step: Step) -> list[Schema]:
    """The two ways to end, as tools: one property of `submit` for each artifact the step makes."""
    submitted: Schema = {name: {"description": f"The artifact {name}."} for name in step.produces}
    scopes: Schema = {"type": "string", "enum": [each.value for each in Scope], "description": _SCOPES}
    reason: Schema = {"reason": {"type": "string"}, "evidence": {"type": "string"}, "scope": scopes}
    return [
        function(SUBMIT, "Hand in what the step makes. Ends the step.", _object(submitted)),
        function(
            GIVE_UP, "Say that the step cannot be done, and why. Ends the step.", _object(reason, ("reason", "scope"))
        ),
    ]


def ended(calls: tuple[Action, ...], step: Step, messages: list[BaseMessage]) -> Result | None:
    """The result, if this turn ends the loop: a sound submission alone, or giving up."""
    quitting = next((each for each in calls if each.tool == GIVE_UP and not each.fault), None)
    if quitting:
        return _given_up(quitting.args, messages)
    only = calls[0]
    if len(calls) > 1 or only.tool != SUBMIT or only.fault or unsubmitted(only, step):
        return None
    made = {name: only.args[name] for name in step.produces}
    return Result(value=made if len(made) != 1 else made[step.produces[0]])


def unsubmitted(action: Action, step: Step) -> str:
    """What a submission lacks."""
    missing = [name for name in step.produces if name not in action.args]
    return f"submit lacks {', '.join(missing)}" if missing else ""


def failed(
    type_: str, message: str, messages: list[BaseMessage], kind: str = "value", lost: tuple[str, ...] = ()
) -> Result:
    """A failed attempt, with the end of the transcript as evidence."""
    evidence = "\n".join(f"{each.type}: {_said(each)}" for each in messages)
    tail = evidence if len(evidence) <= _TAIL else f"...{evidence[-_TAIL:]}"
    text = f"{message}\nThe last turns were:\n{tail}" if tail else message
    return Result(error=ErrorFacts(kind=kind, type=type_, message=masked(text), lost=lost))


def _given_up(args: Schema, messages: list[BaseMessage]) -> Result:
    """What the model says it proves false is taken for that; without such a word, the words of its reason count.

    That it can work later is no word to wait for where no call was made: what the step was given stays as it is.
    """
    reason, evidence, scope = (str(args.get(name) or "") for name in ("reason", "evidence", "scope"))
    said = "\n".join(each for each in (reason or "no reason given", evidence) if each)
    result = failed("GaveUp", said, messages)
    if scope not in set(Scope) or result.error is None:
        return result
    if scope == Scope.NOTHING and not any(isinstance(each, ToolMessage) for each in messages):
        scope = Scope.CALL
    facts = result.error.model_copy(update={"kind": "gave_up", "code": f"scope:{scope}"})
    return result.model_copy(update={"error": facts})


def waiting(asks: tuple[Call, ...]) -> Result:
    """An attempt that ends before calls that a person has to allow; it has not failed."""
    tools = ", ".join(each.tool for each in asks)
    return Result(error=ErrorFacts(kind="held", message=f"waits for a person's word before {tools}"), asks=asks)


def _said(message: BaseMessage) -> str:
    return raw_text(message) if isinstance(message, AIMessage) else str(message.text)


def function(name: str, description: str, parameters: Schema) -> Schema:
    """A tool in the form every provider's client takes."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def _object(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties if required is None else required)}

"""How else can one call say what its step means? Asked of a model that sees the call and its error only.

A wide view would invite it to argue about the plan, which is another rung's work (seed 1).
"""

from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from agent.boundary import shortened
from agent.core.arguments import malformed, misfits
from agent.core.plan import Call
from agent.core.reference import referenced
from agent.core.value import JsonValue, canonical
from agent.models.drafts import DraftedPatch
from agent.models.prompts import Prompt, fenced, listed
from agent.models.sampling import Faults, sample
from agent.models.structured import Structured
from agent.models.wire import patch_schema
from agent.ports import PatchView, ProposedCall

_SHOWN = 1500
"""Characters of arguments and of the schema that are shown: the prompt stays small whatever was sent."""


class ModelPatcher:
    """Proposes other arguments for the same tool. What it proposes fits the schema and is not what failed."""

    def __init__(self, model: BaseChatModel) -> None:
        self._structured = Structured(model, "repairer")
        self._prompt = Prompt("patcher")

    async def propose(self, view: PatchView) -> ProposedCall:
        """Another call, or none when the model sees none or gave no valid one."""
        accept = partial(_accepted, view)
        wire = patch_schema(view.tool_schema)
        sampled = await sample(self._structured, partial(self._messages, view), DraftedPatch, wire, accept)
        if isinstance(sampled.value, Faults) or sampled.value.args is None:
            return ProposedCall(call=None, usage=sampled.usage)
        return ProposedCall(call=Call(tool=view.tool, args=sampled.value.args), usage=sampled.usage)

    def _messages(self, view: PatchView, rejected: tuple[str, ...]) -> list[BaseMessage]:
        error = view.error
        status = f" {error.status}" if error.status else ""
        return self._prompt.messages(
            intent=view.intent + (f" (a person says: {view.hint})" if view.hint else ""),
            tool=view.tool,
            schema=shortened(canonical(view.tool_schema), _SHOWN),
            planned=shortened(canonical(view.template), _SHOWN),
            sent=fenced(shortened(canonical(view.args), _SHOWN), "the call"),
            error=fenced(f"{error.type}{status}: {error.message}", view.tool),
            faults=listed(rejected),
        )


def _accepted(view: PatchView, drafted: DraftedPatch) -> DraftedPatch | Faults:
    """The patch, or what is wrong with it. It may refer to no artifact that the planned call did not use."""
    if drafted.args is None:
        return drafted
    foreign = sorted(referenced(drafted.args) - referenced(view.template))
    found = [
        *misfits(drafted.args, view.tool_schema),
        *(f"{text} is no reference" for text in malformed(drafted.args)),
        *(f"the call may not refer to {name!r}; it was planned without" for name in foreign),
        *(["these are the arguments that failed"] if _same(drafted.args, view) else []),
    ]
    return Faults(tuple(found)) if found else drafted


def _same(args: dict[str, JsonValue], view: PatchView) -> bool:
    return canonical(args) in (canonical(view.args), canonical(view.template))

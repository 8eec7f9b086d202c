"""Does a sentence hold of what was made? A model says so with evidence, of what no predicate can decide."""

from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from agent.boundary import shortened
from agent.core.ruling import HOLDS
from agent.core.value import JsonValue, canonical
from agent.models.drafts import DraftedRuling
from agent.models.prompts import Prompt, fenced, listed
from agent.models.sampling import Faults, sample
from agent.models.structured import Structured
from agent.models.wire import ruling_schema
from agent.ports import RulingAnswer, View

_ROOM = 16_000
"""Characters of all artifacts together."""
_LEAST = 600
"""Characters of one, however many there are."""


class ModelJudge:
    """Judges one sentence at a time."""

    def __init__(self, model: BaseChatModel) -> None:
        self._structured = Structured(model, "judge")
        self._prompt = Prompt("judge")

    async def rule(self, sentence: str, about: str, view: View) -> RulingAnswer:
        """What the sentence comes to; nothing when three replies were no answer."""
        prompting = partial(self._messages, sentence, about, view)
        sampled = await sample(self._structured, prompting, DraftedRuling, ruling_schema(), _accepted)
        if isinstance(sampled.value, Faults):
            return RulingAnswer(said=None, evidence=f"no answer: {sampled.value}", usage=sampled.usage)
        return RulingAnswer(said=sampled.value.verdict, evidence=sampled.value.evidence, usage=sampled.usage)

    def _messages(self, sentence: str, about: str, view: View, rejected: tuple[str, ...]) -> list[BaseMessage]:
        share = max(_LEAST, _ROOM // max(1, len(view)))
        shown = [fenced(shortened(_spelled(value), share), name) for name, value in sorted(view.items())]
        return self._prompt.messages(
            sentence=sentence, goal=about or "none", artifacts="\n".join(shown) or "none", faults=listed(rejected)
        )


def _accepted(drafted: DraftedRuling) -> DraftedRuling | Faults:
    if drafted.verdict == HOLDS and not drafted.evidence.strip():
        return Faults(("evidence: quote what shows that it holds, or say that you are unsure",))
    return drafted


def _spelled(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical(value)

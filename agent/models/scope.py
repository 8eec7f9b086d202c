"""What does an error prove false that the table does not know? A model answers out of the closed set."""

from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from agent.core.failure import ErrorFacts
from agent.models.drafts import DraftedScope
from agent.models.prompts import Prompt, fenced
from agent.models.sampling import Faults, sample
from agent.models.structured import Structured
from agent.models.wire import scope_schema
from agent.ports import ScopeAnswer


class ModelScope:
    """Classifies an error from its words alone."""

    def __init__(self, model: BaseChatModel) -> None:
        self._structured = Structured(model, "classifier")
        self._prompt = Prompt("classifier")

    async def scope(self, intent: str, tool: str, error: ErrorFacts) -> ScopeAnswer:
        """The scope of an error; none when three replies were no answer."""
        prompting = partial(self._messages, intent, tool, error)
        sampled = await sample(self._structured, prompting, DraftedScope, scope_schema(), lambda drafted: drafted)
        scope = None if isinstance(sampled.value, Faults) else sampled.value.scope
        return ScopeAnswer(scope=scope, usage=sampled.usage)

    def _messages(self, intent: str, tool: str, error: ErrorFacts, rejected: tuple[str, ...]) -> list[BaseMessage]:
        del rejected  # the closed set is in the schema; there is nothing to argue about
        status = f" {error.status}" if error.status else ""
        said = f"{error.type}{status}: {error.message}".lstrip(": ")
        return self._prompt.messages(intent=intent, tool=tool, error=fenced(said, tool))

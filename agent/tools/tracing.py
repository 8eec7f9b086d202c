"""May a call of the inner loop be made? Not when a model that has read data gives it arguments that come from nowhere.

The answer is kept outside the model. Before it has read anything, its words can only be those of goal and plan.
"""

from agent.core.failure import ErrorFacts
from agent.core.provenance import UNTRACED, Suspicion, Untraced, suspicion, told_untraced, wired
from agent.core.repair import call_digest
from agent.core.value import JsonValue
from agent.ports import Task
from agent.tools.registry import Registry


class Tracer:
    """Judges the calls of one attempt."""

    def __init__(self, registry: Registry, policy: Untraced, task: Task) -> None:
        """Args: the tools; what happens to a call that is not traced; what is carried out."""
        self._registry = registry
        self._policy = policy
        self._task = task
        self._informed = task.informed
        self._cleared: set[str] = set()
        """Calls that were judged when their turn began: what others of the turn tell comes too late for them."""
        self.withheld: list[Suspicion] = []

    def asks(self, tool: str, args: dict[str, JsonValue]) -> bool:
        """Whether a person has to be asked; called for each call of a turn before the first is made."""
        found = self._judged(tool, args)
        if found is None:
            self._cleared.add(call_digest(tool, args))
        elif self._policy is Untraced.ASK:
            self.withheld.append(found.model_copy(update={"asked": True}))
        return found is not None and self._policy is Untraced.ASK

    def refusal(self, tool: str, args: dict[str, JsonValue]) -> ErrorFacts | None:
        """What to answer in place of making the call."""
        found = None if call_digest(tool, args) in self._cleared else self._judged(tool, args)
        if found is None:
            return None
        self.withheld.append(found)
        return ErrorFacts(kind="refused", type=UNTRACED, message=told_untraced(tool, found.strange))

    def told(self) -> None:
        """A tool has told the model something."""
        self._informed = True

    def _judged(self, tool: str, args: dict[str, JsonValue]) -> Suspicion | None:
        if self._policy is Untraced.OFF or not self._informed or call_digest(tool, args) in self._task.allowed:
            return None
        contract = self._registry.contracts.get(tool)
        known = wired(self._task.sources, contract, self._task.inputs) if contract else self._task.sources
        return suspicion(tool, args, self._registry.schema(tool), contract, known)

"""How is a goal planned with a model?"""

from langchain_core.language_models import BaseChatModel

from agent.ports import PlanDraft, PlanningFailed, PlanRequest
from agent.tools.registry import Registry


class ModelPlanner:
    """Plans free-text goals."""

    def __init__(self, model: BaseChatModel, registry: Registry) -> None:
        self._model = model
        self._registry = registry

    async def draw(self, request: PlanRequest) -> PlanDraft:
        """Draw a plan."""
        raise PlanningFailed(f"the model planner cannot plan {request.goal.text!r} yet")

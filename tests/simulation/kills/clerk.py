"""The model of the shop, and how a step becomes its work. It is no script: a killed process may ask anything again."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from agent.core.plan import Step
from agent.ports import PlanDraft, Planner, PlanRequest

STUBBORN = 2
"""How often the clerk tries a call again that failed."""


class Clerk(BaseChatModel):
    """Looks up an address, sends a mail, and hands in; stubborn when the mail fails. Knows nothing else."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=tools, **options)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        offered = {each["function"]["name"] for each in options.get("tools", ())}
        message = _turn(messages) if "send_mail" in offered else AIMessage("I do not know.")
        return ChatResult(generations=[ChatGeneration(message=message)])


class Instructing:
    """A planner whose steps for `mail` are instructions."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def draw(self, request: PlanRequest) -> PlanDraft:
        draft = await self._planner.draw(request)
        return draft.model_copy(update={"steps": tuple(_instruction(each) for each in draft.steps)})


def _instruction(step: Step) -> Step:
    if step.call is None or step.call.tool != "mail":
        return step
    told = {"call": None, "instruction": "Tell the customer that it was sent", "tools": ("address", "send_mail")}
    return step.model_copy(update=told)


def _turn(messages: list[BaseMessage]) -> AIMessage:
    answers = [str(each.content) for each in messages if isinstance(each, ToolMessage)]
    failed = sum("failed" in each for each in answers[1:])
    if not answers or (len(answers) == 1 and "failed" in answers[0]):
        return _calls("address", order=42)
    if len(answers) == 1 or (0 < failed <= STUBBORN and failed == len(answers) - 1):
        return _calls("send_mail", to="the customer")
    if failed == len(answers) - 1:
        return _calls("give_up", reason=answers[-1])
    return _calls("submit", mail={"done": "mail"})


def _calls(tool: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": tool, "type": "tool_call"}])

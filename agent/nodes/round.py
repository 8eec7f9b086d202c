"""A round within one super-step: the executor's harvest is verified, and the next move decided, on the way back.

Only the executor has to begin from a checkpoint: what it launches is stored as running, and what that stands on as
verified. Verifier and dispatcher only think about what the harvest brought, so a checkpoint between them would keep
nothing that the one at the end does not. A kill before that one loses what the process knew: the steps are stored
as running, and whoever resumes finds their effects in the journal and what only reads is done again.

Whatever leads elsewhere than back to the executor goes node by node, as the phase table draws it.
"""

from collections.abc import Callable, Coroutine
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from agent.core.phase import LEGAL, Phase
from agent.nodes.scope import scope_of
from agent.nodes.state import RunState, RunUpdate

PhaseNode = Callable[[RunState, RunnableConfig], Coroutine[Any, Any, RunUpdate]]


class Round:
    """The executor's node, which goes on through the phases after it for as long as they lead back to it."""

    def __init__(self, executor: PhaseNode, verifier: PhaseNode, dispatcher: PhaseNode) -> None:
        """Args: the three phases of a round."""
        self._executor = executor
        self._following = ((Phase.VERIFIER, verifier), (Phase.DISPATCHER, dispatcher))

    async def __call__(self, state: RunState, config: RunnableConfig) -> RunUpdate:
        """Harvest, and what follows from it. Where a phase leads off the road, its own node will say so again."""
        update = await self._executor(state, config)
        if scope_of(config).stepwise:
            return update
        for phase, node in self._following:
            if update["phase"] is phase:
                longer = _together(update, await node(_after(state, update), config))
                if longer["phase"] not in LEGAL[Phase.EXECUTOR]:
                    break
                update = longer
        return update


def _after(state: RunState, update: RunUpdate) -> RunState:
    """The state as the next phase sees it; of the records it has only those that are stored, for nobody reads them."""
    return cast(RunState, {**state, **update, "trace": state["trace"]})


def _together(update: RunUpdate, then: RunUpdate) -> RunUpdate:
    return cast(RunUpdate, {**update, **then, "trace": [*update.get("trace", ()), *then.get("trace", ())]})

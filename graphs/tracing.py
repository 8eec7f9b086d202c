"""When does a call trace itself? When tracing is on and nobody above does: then a tracer of ours goes with the call."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langsmith import utils

from agent.core.effect import EffectEntry
from agent.nodes.scope import RunScope

Effects = Callable[[str], Awaitable[Iterable[EffectEntry]]]
"""The entries of a thread in the effect journal."""


def traced(config: RunnableConfig, scope: RunScope) -> RunnableConfig:
    """The config of a call, with what sends it to LangSmith where nothing else does."""
    given: RunnableConfig = {**config}
    scope.run_id = given["run_id"] = given.get("run_id") or scope.run_id
    if not utils.tracing_is_enabled() or _follows(given) or (var_child_runnable_config.get() or {}).get("callbacks"):
        return given
    from agent.trace.langsmith.sending import spans  # heavy, and most runs are not traced

    scope.spans = spans()
    if scope.spans is not None:
        given["callbacks"] = _with(given.get("callbacks"), scope.spans)
    return given


async def scored(scope: RunScope, thread: str | None, effects: Effects | None) -> None:
    """Give the scores of a run that has ended."""
    if scope.spans is None:
        return
    from agent.trace.langsmith.scores import scores
    from agent.trace.langsmith.sending import give_scores

    found = await effects(thread) if effects is not None and thread is not None else ()
    give_scores(scope.spans, scores(scope.spans.call.trace, found))


def _follows(config: RunnableConfig) -> bool:
    """Whether the caller has brought a tracer."""
    from langchain_core.tracers.langchain import LangChainTracer

    callbacks = config.get("callbacks") or []
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks
    return any(isinstance(each, LangChainTracer) for each in handlers)


def _with(callbacks: Any, tracer: Any) -> Any:
    if isinstance(callbacks, BaseCallbackManager):
        copied = callbacks.copy()
        copied.add_handler(tracer)
        return copied
    return [*(callbacks or []), tracer]

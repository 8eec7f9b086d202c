"""One attempt as a span of its own, under the run and not under the super-step that started it: it may outlive that."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langsmith import get_tracing_context, tracing_context

from agent.nodes.scope import scope_of
from agent.trace.langsmith.naming import Label

T = TypeVar("T")


async def spanned(
    work: Callable[[], Awaitable[T]],
    config: RunnableConfig,
    label: Callable[[], Label],
    metadata: dict[str, Any],
) -> T:
    """Do work as a span of its own; whatever it calls lies below it. Without anybody who follows it is just done.

    Args:
        work: what to do.
        config: of the phase node that starts it.
        label: what it is called in a trace, and the tags by which it is found; asked when somebody follows.
        metadata: what else is known of it.
    """
    above = config.get("callbacks")
    if not isinstance(above, BaseCallbackManager) or not above.handlers:
        return await work()

    async def done(_: object) -> T:
        return await work()

    named, under = label(), above.copy()
    under.parent_run_id = scope_of(config).run_id
    # with what LangGraph says of the node, under which tokens are streamed
    known = {**config.get("metadata", {}), **metadata}
    given: RunnableConfig = {"callbacks": under, "run_name": named.name, "tags": list(named.tags), "metadata": known}
    # else the super-step that is under way counts as the nearer parent
    with tracing_context(**{**get_tracing_context(), "parent": False, "distributed_parent_id": None}):
        return await RunnableLambda(done).ainvoke(metadata, given)

"""What was found out about a model's server: known to everybody who asks the same model there, and asked for once."""

import weakref
from typing import Generic, TypeVar

from langchain_core.language_models import BaseChatModel

T = TypeVar("T")


class Remembered(Generic[T]):
    """A value for each server, by address and model; a client that names neither has one of its own, while it lives."""

    def __init__(self, first: T) -> None:
        """Args: what is known of a server before it is asked."""
        self._first = first
        self._known: dict[object, T] = {}

    def of(self, model: BaseChatModel) -> T:
        """What is known of the server behind a client."""
        return self._known.get(_server(model), self._first)

    def put(self, model: BaseChatModel, found: T) -> None:
        """Remember it."""
        server = _server(model)
        if isinstance(server, int) and server not in self._known:
            weakref.finalize(model, self._known.pop, server, None)  # an identity is used again
        self._known[server] = found

    def forget(self) -> None:
        """Forget all servers: the next one that listens on a port is another."""
        self._known.clear()


def _server(model: BaseChatModel) -> tuple[str, str] | int:
    address, name = getattr(model, "openai_api_base", None), getattr(model, "model_name", None)
    return (address, name) if isinstance(address, str) and isinstance(name, str) else id(model)

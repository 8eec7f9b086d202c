"""Where do spans go, and what if nobody takes them? To the LangSmith that the environment names, in the background.

A server that is down, slow or wrong costs a run nothing: nothing here is waited for, nothing raises, and after the
first failure the rest is dropped at once for a while.
"""

import logging
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from langsmith import Client, get_current_run_tree, get_tracing_context, utils
from requests import ConnectionError as NotReached
from requests import RequestException, Session, Timeout
from requests.adapters import HTTPAdapter

from agent.trace.langsmith.spans import Spans
from agent.trace.langsmith.trimming import last_trimmed

PATIENCE = (3.0, 10.0)
"""Seconds to connect, and to be answered. No run waits for it; a process that ends does, once."""

REST = 30.0
"""Seconds in which nothing is tried after a failure."""

_log = logging.getLogger("kintsugi")


class _Given(HTTPAdapter):
    """Sends with little patience, and after a failure not at all for a while."""

    def __init__(self) -> None:
        super().__init__(pool_maxsize=20, max_retries=0)
        self._until = 0.0
        self._failed = 0

    def send(self, request: Any, *args: Any, **more: Any) -> Any:
        """Send, or say at once that it would fail.

        Raises:
            ConnectionError: it has just failed.
        """
        if time.monotonic() < self._until:
            raise NotReached("LangSmith could not be reached a moment ago")
        try:
            answer = super().send(request, *args, **{**more, "timeout": PATIENCE})
        except RequestException as error:
            self._failed += 1
            if isinstance(error, Timeout) or self._failed > 1:  # once, it may have been an old connection
                self._until = time.monotonic() + REST
                _log.warning("LangSmith cannot be reached, the run goes on without it: %s", type(error).__name__)
            raise
        self._failed = 0
        return answer


def spans() -> Spans | None:
    """A tracer for one call; None when nothing is traced.

    The client that the caller traces with, in a `tracing_context` or an experiment, is used if there is one.
    """
    if not utils.tracing_is_enabled():
        return None
    around, above = get_tracing_context(), get_current_run_tree()
    try:
        given = around.get("client") or (above.client if above else None)
        client = given or client_for(utils.get_env_var("ENDPOINT"), utils.get_api_key(None))
        return Spans(client=client, project_name=around.get("project_name") or (above.session_name if above else None))
    except Exception as error:
        _log.warning("nothing is sent to LangSmith: %s", error)
        return None


def give_scores(traced: Spans, scores: Mapping[str, float | str]) -> None:
    """Send a run's scores as feedback, in the background; a text is given as a value."""
    root = traced.call.root
    if root is not None:
        given = (traced.client, traced.project_name, root, dict(scores))
        threading.Thread(target=_scored, args=given, name="kintsugi-scores").start()


def _scored(client: Client, project: str | None, root: UUID, scores: Mapping[str, float | str]) -> None:
    try:
        client.flush(timeout=2 * sum(PATIENCE))  # the server makes the project when it gets its first span
        session = client.read_project(project_name=project or utils.get_tracer_project()).id
        for key, each in scores.items():
            given: dict[str, Any] = {"value": each} if isinstance(each, str) else {"score": each}
            client.create_feedback(root, key, session_id=session, stop_after_attempt=1, **given)
    except Exception as error:
        _log.debug("no scores were given: %r", error)


@lru_cache(maxsize=8)
def client_for(_endpoint: str | None, _key: str | None) -> Client:
    """One client for each server; it holds back what is too large or secret, also of spans that are not ours."""
    logging.getLogger("langsmith.client").addFilter(_unsaid)
    client = Client(session=(session := Session()), **_HIDDEN)
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Given())
    return client


def _unsaid(record: logging.LogRecord) -> bool:
    """Drop what LangSmith's client says of each batch that it could not send: it has been said once, above."""
    return record.levelno < logging.WARNING


_HIDDEN: dict[str, Any] = {"hide_inputs": last_trimmed, "hide_outputs": last_trimmed, "hide_metadata": last_trimmed}

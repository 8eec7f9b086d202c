"""One thread, one run: who comes second waits for the first, or is refused, and is told whom it waits for."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from agent.core.lease import Busy, Lease
from agent.store.hold import KEY, Hold
from agent.store.leases import Leases

_FIRST, _LONGEST = 0.01, 0.25
"""Seconds between two looks at a thread that somebody else works on."""

_log = logging.getLogger("kintsugi")


class Gate:
    """Lets one call at a time work on a thread."""

    def __init__(self, leases: Leases, busy: Literal["wait", "refuse"]) -> None:
        """Args: the leases of the run's database; what a call does whose thread is worked on."""
        self.leases = leases
        self._waits = busy == "wait"

    @asynccontextmanager
    async def hold(self, config: RunnableConfig) -> AsyncIterator[Hold | None]:
        """Hold the thread of a call while the context lasts; a run without a thread needs none.

        A caller that holds the thread already, or a graph that this one is a part of, hands its hold down in the
        config.

        Raises:
            Busy: somebody else works on the thread, and the caller is not to wait; or would wait for itself.
        """
        given = config.get("configurable", {})
        above, thread = given.get(KEY) or _ambient(), given.get("thread_id")
        if thread is None or (given.get(KEY) and self._is_of(above, str(thread))):
            yield above
            return
        taken = await self._taken(str(thread))
        try:
            yield taken
        finally:
            await self.leases.release(taken)

    async def _taken(self, thread: str) -> Hold:
        outer, pause, told = _ambient(), _FIRST, 0
        while isinstance(found := await self.leases.take(thread), Lease):
            if any(self._is_of(each, thread) for each in _chain(outer)):
                raise Busy(found, ", and this call is made from within its run: it would wait for itself")
            if not self._waits:
                raise Busy(found, "; call again when it has ended, or let calls wait: busy='wait'")
            if told != found.token:
                _log.warning("%s is working on thread %r; waiting for it", found.holder, thread)
                told = found.token
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST)
        found.outer = outer
        return found

    def _is_of(self, hold: Hold | None, thread: str) -> bool:
        return hold is not None and hold.thread == thread and hold.where == self.leases.where


def _ambient() -> Hold | None:
    """The hold of the run that this call is made from, if a tool makes it."""
    around = var_child_runnable_config.get() or {}
    held = around.get("configurable", {}).get(KEY)
    return held if isinstance(held, Hold) else None


def _chain(hold: Hold | None) -> list[Hold]:
    return [] if hold is None else [hold, *_chain(hold.outer)]

"""A lease that a call of this process holds: whether it still has it, whether it is asked to stop, and its heart."""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from langchain_core.runnables import RunnableConfig

from agent.core.lease import Halt, Lease, Superseded
from agent.store.process import is_gone

Beat = Callable[["Hold"], Future[Halt | None]]
"""Prolongs a lease; gives what its holder is asked, None when somebody else has it."""

KEY = "__run_lease"
"""Where a hold rides in `config["configurable"]`; the underscores keep it out of checkpoint metadata."""

TICK = 1.0
"""Most seconds between two beats, however long the lease lasts: a request to stop is heard with the next."""


class Hold:
    """A thread, held."""

    def __init__(self, lease: Lease, where: object) -> None:
        self.lease = lease
        """As it was taken."""
        self.where = where
        """The database that keeps it."""
        self.halt = Halt.NO
        """How this run is asked to stop."""
        self.lost = False
        """Another run has taken the thread over."""
        self.outer: Hold | None = None
        """That of the run from which this one was called, by a tool of it."""
        self._ended = threading.Event()
        self._nudge = threading.Event()
        self._listeners: list[Callable[[], None]] = []

    @property
    def thread(self) -> str:
        """Which thread."""
        return self.lease.thread

    @property
    def token(self) -> int:
        """The fence: what is written under a smaller one is refused."""
        return self.lease.token

    @property
    def ended(self) -> bool:
        """The call that took it is over."""
        return self._ended.is_set()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call this, on any thread, when something has changed."""
        self._listeners.append(listener)

    def ask(self, halt: Halt) -> None:
        """Ask the run to stop. A request can become more urgent, and never less."""
        if halt is not Halt.NO and self.halt is not Halt.NOW:
            self.halt = halt
            self._tell()

    def check(self) -> None:
        """Go on only while this run has the thread.

        Raises:
            Superseded: another run has taken it over.
        """
        if self.lost:
            raise Superseded(self.thread)

    def is_alone(self) -> bool:
        """Whether everybody who held the thread before is known to have ended."""
        return all(is_gone(each) for each in self.lease.strays)

    def beat_with(self, beat: Beat, seconds: float) -> None:
        """Keep the lease alive from a thread of its own: an event loop may be blocked by a tool for longer."""
        arguments = (weakref.ref(self), self._ended, self._nudge, beat, min(TICK, seconds / 3))
        threading.Thread(target=_heart, args=arguments, name="kintsugi-lease", daemon=True).start()

    def nudge(self) -> None:
        """Beat now."""
        self._nudge.set()

    def end(self) -> None:
        """Stop beating."""
        self._ended.set()
        self._nudge.set()

    def heard(self, halt: Halt | None) -> None:
        """Take in what a beat brought."""
        if halt is None and not self.lost:
            self.lost = True
            self._tell()
        elif halt is not None:
            self.ask(halt)

    def _tell(self) -> None:
        for each in self._listeners:
            each()


def held(config: RunnableConfig, where: object) -> Hold | None:
    """The hold on a thread that a call was made with, if that database keeps it."""
    hold = config.get("configurable", {}).get(KEY)
    return hold if isinstance(hold, Hold) and hold.where == where else None


def _heart(
    ref: "weakref.ref[Hold]", ended: threading.Event, nudge: threading.Event, beat: Beat, seconds: float
) -> None:
    """Beat until the call ends, or nobody has the hold any more: it was dropped without a word."""
    with suppress(RuntimeError):  # the database was closed
        while not ended.is_set():
            nudge.wait(seconds)
            nudge.clear()
            hold = ref()
            if hold is None or hold.lost or ended.is_set():
                return
            beaten = beat(hold)
            if beaten.exception() is None:  # else it is tried again; if it fails for long, the fence holds
                hold.heard(beaten.result())
            del hold

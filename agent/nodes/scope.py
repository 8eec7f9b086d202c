"""What is in flight while one call of the graph runs: attempts as tasks, gone when the call ends.

A super-step that waits for its slowest branch would make a ragged plan half as slow again. So the executor
starts attempts here, returns as soon as one has finished, and the graph goes round (design: harvest first
completed). `running` is in the checkpoint before a launch, so a new process starts what this one lost.
"""

import asyncio
import contextvars
import threading
import time
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.runtime import RunControl

from agent.core.lease import Halt
from agent.core.limits import Ledger
from agent.core.plan import StepId
from agent.ports import Attempt
from agent.store.hold import Hold

if TYPE_CHECKING:
    from agent.trace.langsmith.spans import Spans

T = TypeVar("T")

_ENDING = 5.0
"""Seconds that what was cancelled may take to end; the boundary around a tool takes less."""

_MOMENT = 0.05
"""Seconds; the least that a harvest may last."""

KEY = "__run_scope"
"""Where the scope rides in `config["configurable"]`; the underscores keep it out of checkpoint metadata."""


class RunScope:
    """Attempts in flight of one call of the graph."""

    def __init__(self, hold: Hold | None = None) -> None:
        """Args: the thread, held; None for a run without one."""
        self.hold = hold
        self.run_id: uuid.UUID = uuid7()
        """Of the call, as callbacks know it; attempts are spans below it."""
        self.spans: Spans | None = None
        """What sends the call to LangSmith, if anything does."""
        self.name = f"run-{uuid.uuid4().hex}"
        self._tasks: dict[StepId, asyncio.Task[Attempt]] = {}
        self._mutating: set[StepId] = set()
        self._zero: float | None = None
        self._until: float | None = None
        self._rung = False
        self._bell: asyncio.Future[None] | None = None
        self.control: RunControl | None = None
        """How LangGraph is told to stop before the next phase node."""
        self.paused = False
        """It was told to."""
        self.stepwise = False
        """The caller stops the run between phases, so each phase has a super-step of its own."""
        if hold is not None:
            hold.listen(partial(_ring, asyncio.get_running_loop(), self))
        self.ledger = Ledger()
        """The last one that was seen: attempts that wait look here how long their endpoint still rests."""

    @property
    def halt(self) -> Halt:
        """How this run is asked to stop."""
        return self.hold.halt if self.hold else Halt.NO

    def allow(self, seconds: float) -> None:
        """Let the next harvest last no longer than the run may; once that is over, its writes are all it waits for."""
        # not less than a moment: a harvest that ended a hair too early would end so again and again
        self._until = time.monotonic() + max(seconds, _MOMENT) if seconds > 0 else None

    def pause(self, reason: str) -> None:
        """Stop before the next phase node; what is in flight is closed with the call."""
        assert self.control is not None, "the graph was run without its own stream method"
        self.paused = True
        self.control.request_drain(reason)

    def ring(self) -> None:
        """End the harvest that is waiting: there is something to decide."""
        self._rung = True
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    def rest(self, ledger: Ledger) -> None:
        """Let those who wait know the cool-downs of now."""
        self.ledger = ledger

    def holds(self, step: StepId) -> bool:
        """Whether the step is in flight here."""
        return step in self._tasks

    def launch(self, step: StepId, attempt: Coroutine[Any, Any, Attempt], mutating: bool) -> None:
        """Start an attempt; it goes on while the graph does other things."""
        self._tasks[step] = asyncio.get_running_loop().create_task(attempt, name=f"step {step}")
        if mutating:
            self._mutating.add(step)

    async def harvest(self) -> tuple[Attempt, ...]:
        """Whatever has finished, not before at least one has, or the run has to be looked at.

        Raises:
            Superseded: another run has taken the thread over.
        """
        if self._tasks and not self._rung:
            self._bell = asyncio.get_running_loop().create_future()
            left = None if self._until is None else max(0.0, self._until - time.monotonic())
            waited: list[asyncio.Future[Any]] = [*self._tasks.values(), self._bell]
            await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self._rung = False
        if self.hold is not None:
            self.hold.check()
        finished = [step for step, task in self._tasks.items() if task.done()]
        return tuple(self._tasks.pop(step).result() for step in finished)

    async def close(self, grace: float) -> None:
        """Cancel what only reads; give what writes time to finish, so that its outcome is journalled.

        It ends in bounded time, whatever the tools make of it; and when it is cancelled itself, everything is.
        """
        tasks, self._tasks = self._tasks, {}
        writing = [task for step, task in tasks.items() if step in self._mutating and not task.done()]
        try:
            for step, task in tasks.items():
                task.add_done_callback(_passed_over)
                if step not in self._mutating:
                    task.cancel()
            if writing:
                await asyncio.wait(writing, timeout=grace)
        finally:
            for task in tasks.values():
                task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=_ENDING)

    def seconds(self, spent: float) -> float:
        """Seconds that the run has used by now, of which `spent` are stored; a pause between calls is not counted."""
        now = self._now()
        if self._zero is None:
            self._zero = now - spent
        return now - self._zero

    def _now(self) -> float:
        return time.monotonic()


class Portal:
    """An event loop in a thread of its own: how a synchronous caller runs the one, asynchronous, definition."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="kintsugi-loop", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, in the caller's context, and wait for it."""
        context = contextvars.copy_context()
        done: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            tasks.append(self._loop.create_task(work, context=context))
            tasks[0].add_done_callback(lambda finished: _hand_over(finished, done))

        self._loop.call_soon_threadsafe(start)
        try:
            return done.result()
        finally:
            if not done.done():  # an interrupt: nobody waits for it any more
                self._loop.call_soon_threadsafe(lambda: [each.cancel() for each in tasks])

    @contextmanager
    def within(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Enter and leave an asynchronous context on the loop."""
        entered = self.call(context.__aenter__())
        try:
            yield entered
        except BaseException as error:
            if not self.call(context.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self.call(context.__aexit__(None, None, None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the loop and its thread, with whatever is still on it."""
        try:
            self.call(_swept())
        finally:
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ENDING)
            if not self._thread.is_alive():  # else a tool holds the loop, and only the process's end will end it
                self._loop.close()

    def _run(self) -> None:
        """Run the loop. An exit or interrupt inside a task leaves the loop as well; the caller waits for the task."""
        while not self._closing:
            with suppress(KeyboardInterrupt, SystemExit):
                self._loop.run_forever()


def scope_of(config: RunnableConfig) -> RunScope:
    """The scope of the running call."""
    found = config.get("configurable", {}).get(KEY)
    assert isinstance(found, RunScope), "the graph was run without its own stream method"
    return found


def thread_of(config: RunnableConfig) -> str:
    """The thread, or a name for a run without one: effects are scoped to it."""
    thread = config.get("configurable", {}).get("thread_id")
    return str(thread) if thread is not None else scope_of(config).name


def _ring(loop: asyncio.AbstractEventLoop, scope: RunScope) -> None:
    with suppress(RuntimeError):  # the call has ended, and its loop with it
        loop.call_soon_threadsafe(scope.ring)


def _passed_over(task: asyncio.Task[Attempt]) -> None:
    """Look at the end of an attempt that nobody harvests, or asyncio would complain that nobody did."""
    if not task.cancelled():
        task.exception()


async def _swept() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for each in left:
        each.cancel()
    if left:
        await asyncio.wait(left, timeout=_ENDING)


def _hand_over(task: asyncio.Task[T], done: Future[T]) -> None:
    if task.cancelled():
        done.cancel()
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())

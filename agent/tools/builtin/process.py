"""How is a program run so that nothing of it stays? In a session of its own, killed as a group, read in bounds."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.core.value import JsonValue

FLOOD = 100_000_000
"""Bytes of output after which a program is stopped."""
_LOOK = 0.01
"""Seconds between two looks at whether it has ended."""
_GRACE = 2.0
"""Seconds to read what is left in the pipes of a group that was killed."""


class Process(NamedTuple):
    """A program, and the bounds of its run."""

    command: list[str]
    folder: Path
    env: Mapping[str, str]
    stdin: bytes
    seconds: float
    output: int


class Flooded(ValueError):
    """The program printed without end, and was killed."""


async def ran(process: Process) -> dict[str, JsonValue]:
    """Run it to its end.

    Raises:
        TimeoutError: it took too long; its group was killed.
        Flooded: it printed too much; its group was killed.
        OSError: it cannot be started.
    """
    child = await _started(process)
    assert child.stdout is not None and child.stderr is not None
    out, err = _Kept(process.output), _Kept(process.output)
    reading = [asyncio.ensure_future(each) for each in (out.read(child.stdout), err.read(child.stderr))]
    try:
        async with asyncio.timeout(process.seconds):
            await _ended(child, process.stdin, reading)
    except TimeoutError:
        raise TimeoutError(f"the program took longer than {process.seconds:g} s and was killed") from None
    finally:
        _kill(child.pid)
        # what it left running is dead now, and so the pipes end, unless something moved to another session
        await asyncio.wait(reading, timeout=_GRACE)
        for each in reading:
            each.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        while child.returncode is None:
            await asyncio.sleep(_LOOK)
        _close(child)
    return {"returncode": child.returncode, "stdout": out.text(), "stderr": err.text()}


async def _started(process: Process) -> asyncio.subprocess.Process:
    """Start it; when that is cancelled half way, the program runs already and is killed with its group."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *process.command,
            cwd=process.folder,
            env=dict(process.env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        child = await starting
        _kill(child.pid)
        _close(child)
        raise


async def _ended(child: asyncio.subprocess.Process, stdin: bytes, reading: Sequence[asyncio.Future[None]]) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        child.stdin.write(stdin)
        await child.stdin.drain()
    child.stdin.close()
    while child.returncode is None:  # `wait` would wait for whoever holds the pipes as well
        await asyncio.sleep(_LOOK)
        for each in reading:
            if each.done():
                each.result()  # a flood ends the run at once


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _close(child: asyncio.subprocess.Process) -> None:
    """Let go of pipes that somebody else still holds open."""
    transport = getattr(child, "_transport", None)
    if transport is not None:
        transport.close()


class _Kept:
    """Head and tail of an output."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head, self._tail, self._size = b"", b"", 0

    async def read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(65_536):
            self._size += len(chunk)
            if self._size > FLOOD:
                raise Flooded(f"the program printed too much: more than {FLOOD} bytes; it was killed")
            room = max(0, self._half - len(self._head))
            self._head += chunk[:room]
            self._tail = (self._tail + chunk[room:])[-self._half :]

    def text(self) -> str:
        left_out = self._size - len(self._head) - len(self._tail)
        gap = f"\n... {left_out} bytes left out ...\n" if left_out > 0 else ""
        return self._head.decode("utf-8", "replace") + gap + self._tail.decode("utf-8", "replace")

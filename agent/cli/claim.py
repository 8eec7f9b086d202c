"""Does a process work on this thread now? A lock that ends with its process, also when that is killed."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.core.value import digest

_TRIES, _PAUSE = 3, 0.02


class Claimed(Exception):
    """Another process works on the thread."""

    def __init__(self, pid: str) -> None:
        self.pid = pid
        super().__init__(f"process {pid}" if pid else "another process")


@contextmanager
def claim(home: Path, thread: str) -> Iterator[None]:
    """Hold the thread while the context lasts.

    Raises:
        Claimed: another process holds it.
    """
    path = _path(home, thread)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _taken(file):
            raise Claimed(os.read(file, 20).decode().strip())
        os.truncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(file)


def is_claimed(home: Path, thread: str) -> bool:
    """Whether a process holds the thread at this moment."""
    path = _path(home, thread)
    if not path.exists():
        return False
    file = os.open(path, os.O_RDWR)
    try:
        return not _locked(file)
    finally:
        os.close(file)


def _taken(file: int) -> bool:
    """Lock the file; somebody who only asks whether it is held holds it for a moment."""
    for _ in range(_TRIES):
        if _locked(file):
            return True
        time.sleep(_PAUSE)
    return False


def _path(home: Path, thread: str) -> Path:
    # a thread's name may be anything; a file's may not
    return home / "claims" / f"{digest(thread)}.lock"


if sys.platform == "win32":

    def _locked(file: int) -> bool:
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _locked(file: int) -> bool:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

"""Which process is this, and is that one still there? Numbers of processes mean something in one place only."""

import os
import platform
import sys
from functools import cache
from pathlib import Path

from agent.core.lease import Holder

_PROC = Path("/proc")


def myself() -> Holder:
    """This process; asked anew each time, because a fork is another."""
    pid = os.getpid()
    return Holder(place=_place(), pid=pid, born=_born(pid) or "")


def is_gone(holder: Holder) -> bool | None:
    """Whether the process has ended; None where that cannot be seen from here."""
    if not holder.place or holder.place != _place():
        return None
    born = _born(holder.pid)
    return born is None or (born != holder.born)


@cache
def _place() -> str:
    if sys.platform == "win32":
        return ""  # asking for a process there is another matter; silence tells as well, only later
    return f"{platform.node()} {_read('sys/kernel/random/boot_id')} {_namespace()}"


def _read(name: str) -> str:
    try:
        return (_PROC / name).read_text()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _born(pid: int) -> str | None:
    """When a process of this place started; None when there is none, or only what is left of one."""
    stat = _read(f"{pid}/stat")
    if stat:
        state, *fields = stat.rpartition(")")[2].split()  # its name, in brackets, may hold anything
        return None if state in "ZX" else fields[18]
    return "" if not _PROC.joinpath("self").exists() and _answers(pid) else None


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True

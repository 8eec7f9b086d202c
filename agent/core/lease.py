"""May this caller work on a thread? One lease for each thread, under a number that only grows.

The number is the fence: whoever writes under a smaller one has lost the thread and is refused, however alive it is.
"""

from enum import StrEnum

from agent.core.value import Value


class Holder(Value):
    """Who holds a lease: one process. Compared as a whole, because numbers of processes are used again."""

    place: str
    """Where process numbers mean the same: this boot of this machine, and its namespace. Empty: nobody knows."""
    pid: int
    born: str = ""
    """When the process started, as its system counts; empty where that cannot be told."""

    def __str__(self) -> str:
        return f"process {self.pid}"


class Halt(StrEnum):
    """How a run is asked to stop, in the order of urgency."""

    NO = ""
    DRAIN = "drain"
    """Finish what mutates, then stop."""
    NOW = "now"
    """Stop at once; a write in flight has its grace."""


class Lease(Value):
    """One thread's lease, as it is written down."""

    thread: str
    token: int
    """Grows with every holder, and is never given again."""
    holder: Holder
    expires: float
    """Seconds since the epoch; 0: nobody holds it."""
    halt: Halt = Halt.NO
    """How somebody has asked its holder to stop."""
    strays: tuple[Holder, ...] = ()
    """Holders before it that were given up on and never seen to end: they may wake up in the middle of a call."""


class Life(StrEnum):
    """What is known of the process behind a lease."""

    HOLDING = "holding"
    """It is this process, and the call that took the lease goes on."""
    RUNNING = "running"
    GONE = "gone"
    """It has ended, or the call that took the lease has."""
    UNKNOWN = "unknown"
    """It is on another machine, or in a container of its own."""


class Standing(StrEnum):
    """What a lease means for somebody who wants the thread."""

    FREE = "free"
    MINE = "mine"
    DEAD = "dead"
    EXPIRED = "expired"
    HELD = "held"


def standing(found: Lease | None, life: Life, now: float, token: int | None = None) -> Standing:
    """Whether the thread can be had.

    Args:
        found: its lease; None before the first.
        life: what is known of the holder.
        now: seconds since the epoch.
        token: the one that the caller holds already, if any.
    """
    if found is None or not found.expires:
        return Standing.FREE
    if found.token == token:
        return Standing.MINE
    if life is Life.GONE:
        return Standing.DEAD
    # a call of this very process is known to go on, however late its heart beats
    return Standing.EXPIRED if life is not Life.HOLDING and now >= found.expires else Standing.HELD


def succeeded(found: Lease | None, seen: Standing, by: Holder, thread: str, expires: float) -> Lease:
    """The lease of the next holder. One whose holder merely fell silent is remembered: it may wake up."""
    if found is None:
        return Lease(thread=thread, token=1, holder=by, expires=expires)
    strays = (*found.strays, found.holder) if seen is Standing.EXPIRED else found.strays
    return Lease(thread=thread, token=found.token + 1, holder=by, expires=expires, strays=strays)


class Busy(RuntimeError):
    """Somebody else works on the thread."""

    def __init__(self, lease: Lease, why: str = "") -> None:
        self.lease = lease
        super().__init__(f"{lease.holder} is working on thread {lease.thread!r}{why}")


class Superseded(RuntimeError):
    """This run was silent for longer than its lease lasts, and another has taken its thread over."""

    def __init__(self, thread: str) -> None:
        super().__init__(
            f"this run of thread {thread!r} was silent for too long, and another run has taken the thread over; "
            "nothing more is done or written here, and the thread stands as the other run left it"
        )

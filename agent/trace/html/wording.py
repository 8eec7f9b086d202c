"""How are figures said? Seconds, bytes and counts, short enough to be read at a glance."""

from collections.abc import Sequence


def seconds(amount: float) -> str:
    """A duration: `0.03 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    if amount < 10:
        return f"{amount:.2f} s"
    whole = round(amount)
    if whole < 60:
        return f"{whole} s"
    large, small, names = (whole // 60, whole % 60, ("min", "s"))
    if large >= 60:
        large, small, names = (large // 60, large % 60, ("h", "min"))
    return f"{large} {names[0]}" + (f" {small} {names[1]}" if small else "")


def size(amount: int) -> str:
    """Bytes: `84 B`, `1.2 kB`, `20 MB`."""
    for unit, each in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if amount >= each:
            return f"{amount / each:.3g} {unit}"
    return f"{amount} B"


def count(amount: int, what: str, plural: str = "") -> str:
    """`1 step`, `3 steps`."""
    return f"{amount:,} {what if amount == 1 else plural or what + 's'}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a line; of many the first, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown or "none"

"""One schedule, drawn from a seed: what is to be done, how the world misbehaves, and where each process is killed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

SHOP = "shop"
SCENARIOS = (
    "backfill",
    "config-report",
    "config-report:config-changed",
    "config-report:criteria-changed",
    "closing",
    "closing:rates-corrected",
    "memo",
    "memo:funding-down",
    "memo:nothing-published",
)
"""The packaged scenarios, each with each of its events."""

BOUNDARIES = {
    "node": 45,
    "put": 45,
    "writes": 45,
    "begin": 9,
    "done": 9,
    "tool": 14,
    "probe": 30,
    "effect": 14,
    "store": 2,
    "lease": 2,
    "inbox": 1,
    "waiting": 1,
}
"""Where a process can be killed, before and after, and about how often an undisturbed run comes by.

A phase node; a checkpoint and the writes beside it; the intent and the end in the effect journal; the call of a
tool, of a probe, and the very effect in the world; a large artifact; the thread's lease; a changed goal; a question
to a person.
"""

FAULTS = {
    "order": ("refused", "limited", "malformed", "slow"),
    "prices": ("refused", "limited", "edit", "slow"),
    "stock": ("refused", "reset", "limited", "goal"),
    "parcel_a": ("refused", "reset", "lost", "gateway", "malformed", "slow", "edit"),
    "parcel_b": ("reset", "lost", "limited", "goal"),
    "charge": ("limited", "reset", "lost", "gateway", "malformed", "slow", "edit", "goal"),
    "voucher": ("twice", "lost", "gateway", "reset"),
    "label": ("twice", "lost", "malformed", "slow"),
    "invoice": ("twice", "lost", "edit", "malformed", "gateway"),
    "ship": ("refused", "reset", "lost", "gateway", "slow", "malformed", "edit"),
    "send_mail": ("refused", "reset", "lost", "limited"),
    "report": ("refused", "malformed", "edit"),
}
"""What can go wrong with a call of each tool of the shop; `shop.py` says what each means."""


class Fault(NamedTuple):
    """What happens at the n-th call of a tool that reaches the world."""

    tool: str
    nth: int
    kind: str


class Kill(NamedTuple):
    """The process dies the n-th time it comes by a boundary, `before` or `after` it."""

    boundary: str
    when: str
    nth: int = 1


class Moment(NamedTuple):
    """The process is killed so many seconds after its start, wherever it is then."""

    seconds: float


class Life(NamedTuple):
    """One process."""

    end: Kill | Moment | None = None
    """How it is killed; None: it lives."""
    again: bool = True
    """It states the goal again; otherwise it takes up the last checkpoint."""
    native: bool = False
    """It comes through `ainvoke`."""


@dataclass(frozen=True)
class Script:
    """A schedule."""

    lives: tuple[Life, ...]
    """The last one lives."""
    subject: str = SHOP
    """The shop, or a packaged scenario with its event."""
    wants: tuple[str, ...] = ("report",)
    """Of the shop: what the goal wants in the end."""
    first: tuple[str, ...] = ()
    """What it wants until it is changed by the fault `goal`; empty: the same."""
    faults: tuple[Fault, ...] = ()
    parallel: int = 64
    inline: int = 4096
    """Bytes up to which an artifact travels in state."""
    approve: bool = False
    """A person is asked before the parcel is sent."""
    sabotage: str = ""
    """How the product is broken, to see that it is found out; empty: it is not."""

    @property
    def kills(self) -> int:
        """How many processes are to die."""
        return sum(each.end is not None for each in self.lives)


def draw(seed: int) -> Script:
    """The schedule of a seed. Every third one is over a packaged scenario."""
    dice = Random(seed)
    if seed % 3 == 2:
        return Script(_lives(dice, set(), native=False), subject=dice.choice(SCENARIOS))
    faults = _faults(dice)
    changed = any(each.kind == "goal" for each in faults)
    approve, inline = dice.random() < 0.25, dice.choice((64, 4096))
    rare = {"waiting"} if approve else set()
    rare |= {"inbox"} if changed else set()
    rare |= {"store"} if inline == 64 else set()
    return Script(
        _lives(dice, rare),
        wants=("report",) if changed else dice.choice((("report",), ("report",), ("mail", "invoice"), ("ship",))),
        first=dice.choice((("ship",), ("mail",), ("label", "charge"))) if changed else (),
        faults=faults,
        parallel=dice.choice((1, 3, 64)),
        inline=inline,
        approve=approve,
    )


def smaller(script: Script) -> Iterator[Script]:
    """Scripts with one thing less."""
    lives = script.lives
    for index in range(len(lives) - 1):
        yield replace(script, lives=(*lives[:index], *lives[index + 1 :]))
    for index in range(len(script.faults)):
        yield replace(script, faults=(*script.faults[:index], *script.faults[index + 1 :]))
    plain = (
        replace(script, wants=("report",), first=()),
        replace(script, parallel=1),
        replace(script, inline=4096),
        replace(script, approve=False),
        *(replace(script, lives=_with(lives, at, each._replace(native=False))) for at, each in enumerate(lives)),
        *(replace(script, lives=_with(lives, at, each._replace(again=False))) for at, each in enumerate(lives)),
    )
    yield from (each for each in plain if each != script)


def _with(lives: tuple[Life, ...], index: int, life: Life) -> tuple[Life, ...]:
    return (*lives[:index], life, *lives[index + 1 :])


def _lives(dice: Random, rare: set[str], native: bool = True) -> tuple[Life, ...]:
    """Up to four processes that die, and one that lives. There is less and less left for the later ones to do."""
    usual = set(BOUNDARIES) - {"waiting", "inbox", "store"}
    boundaries = sorted(usual | rare) + sorted(rare) + ["begin", "done", "effect"]
    ends: list[Kill | Moment | None] = []
    for index in range(dice.choice((1, 1, 2, 2, 3, 4))):
        boundary = dice.choice(boundaries)
        nth = 1 + int(BOUNDARIES[boundary] * dice.random() ** (1.3 + index))
        moment = dice.random() < 0.2
        ends.append(Moment(round(dice.uniform(0.1, 1.2), 3)) if moment else _kill(dice, boundary, nth))
    return tuple(Life(each, dice.random() < 0.5, native and dice.random() < 0.5) for each in (*ends, None))


def _kill(dice: Random, boundary: str, nth: int) -> Kill:
    return Kill(boundary, dice.choice(("before", "after")), nth)


def _faults(dice: Random) -> tuple[Fault, ...]:
    tools = dice.sample(sorted(FAULTS), dice.choice((0, 1, 2, 3, 4)))
    drawn = [Fault(each, 1, dice.choice(FAULTS[each])) for each in tools]
    goals = [each for each in drawn if each.kind == "goal"]
    return tuple(each for each in drawn if each not in goals[1:])

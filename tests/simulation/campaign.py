"""Many simulations: side by side in processes, counted, and a failing one told as a short story."""

import gc
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context

from tests.simulation.driving import Simulation, VirtualLoop, simulate, virtual
from tests.simulation.outside import Broken
from tests.simulation.script import Script, draw, smaller

BATCH = 100
"""Seeds that a process is given at once."""
SHOWN = 40
"""Last lines of a story that are printed."""


@dataclass
class Tally:
    """What came of a number of simulations."""

    threads: int = 0
    families: int = 0
    """Threads with a tool that fans out over a list."""
    runs: int = 0
    nodes: int = 0
    moves: int = 0
    calls: int = 0
    effects: int = 0
    repeats: int = 0
    """Work that was done again: harmless, or seen to be absent, or by a person's word."""
    fullest: float = 0.0
    """The largest share of the moves that the limits allow."""
    statuses: Counter[str] = field(default_factory=Counter)
    rungs: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[int, str]] = field(default_factory=list)
    """Seed and what did not hold."""

    def add(self, other: "Tally") -> None:
        """Take in the tally of a batch."""
        for name, mine in vars(self).items():
            theirs = getattr(other, name)
            setattr(self, name, max(mine, theirs) if name == "fullest" else mine + theirs)

    def table(self) -> str:
        """The whole as a table."""
        rows = [
            ("threads", self.threads),
            ("  with steps that fan out", self.families),
            ("runs", self.runs),
            ("phase nodes", self.nodes),
            ("moves", self.moves),
            ("most moves of what the limits allow", f"{self.fullest:.0%}"),
            ("tool calls", self.calls),
            ("effects", self.effects),
            ("  done again, harmless or allowed", self.repeats),
            *((f"ended {each}", number) for each, number in sorted(self.statuses.items())),
            *((f"rung {each}", number) for each, number in sorted(self.rungs.items())),
            *((f"event {each}", number) for each, number in sorted(self.events.items())),
            ("broken", len(self.broken)),
        ]
        return "\n".join(f"{name:<40}{number:>12}" for name, number in rows)


def batch(seeds: range) -> Tally:
    """Simulate these seeds, one after the other."""
    gc.disable()  # what the process has ends with the batch
    gc.freeze()  # what was there before is not looked through again after each
    tally = Tally()
    with virtual() as loop:
        for seed in seeds:
            script = draw(seed)
            tally.threads += 1
            tally.families += any(each.fans for each in script.tools)
            tally.events.update(each.kind for each in script.events)
            try:
                _counted(tally, simulate(script, loop))
            except Broken as broken:
                tally.broken.append((seed, str(broken)))
    gc.enable()
    gc.collect()
    return tally


def campaign(
    runs: int, first: int = 0, jobs: int = 2, told: Callable[[Tally], None] = lambda _: None, patience: int = 1
) -> Tally:
    """Simulate until so many runs were made, or so many of them have broken an invariant.

    Args:
        runs: at least so many; a thread has one, two or three of them.
        first: the first seed.
        jobs: processes.
        told: hears how far it is.
        patience: broken ones after which it ends.
    """
    tally = Tally()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        batches = (range(start, start + BATCH) for start in count(first, BATCH))
        waiting = [pool.submit(batch, next(batches)) for _ in range(2 * jobs)]
        while waiting:
            tally.add(waiting.pop(0).result())
            told(tally)
            if tally.runs < runs and len(tally.broken) < patience:
                waiting.append(pool.submit(batch, next(batches)))
    return tally


def story(seed: int, seconds: float = 20.0) -> str:
    """What happened under a seed, with everything left out that does not matter."""
    with virtual() as loop:
        script = shrunk(draw(seed), loop, seconds)
        why, sim = _tried(script, loop)
    if sim is None:
        return f"seed {seed} holds"
    told = "\n".join(sim.outside.happened[-SHOWN:])
    return f"{why}\n\n{script.story()}\n\n{told}\n\n{_recorded(sim)}"


def shrunk(script: Script, loop: VirtualLoop, seconds: float) -> Script:
    """A smaller script that breaks the same: whatever can be left out is, for as long as there is time."""
    wanted, end = _kind(_tried(script, loop)[0]), time.monotonic() + seconds
    found = True
    while found and wanted:
        found = False
        for less in smaller(script):
            if time.monotonic() > end:
                return script
            if _kind(_tried(less, loop)[0]) == wanted:
                script, found = less, True
                break
    return script


def _tried(script: Script, loop: VirtualLoop) -> tuple[str, Simulation | None]:
    """Why it broke, and where it stood then; empty when it holds."""
    begun: list[Simulation] = []
    try:
        simulate(script, loop, begun.append)
    except Broken as broken:
        return str(broken), begun[0] if begun else None
    return "", None


def _kind(why: str) -> str:
    """A failure without the names in it."""
    return re.sub(r"\b(make_|other_)?a\d+b?\b|\d+", "", why)[:60]


def _recorded(sim: Simulation) -> str:
    return "\n".join(_lines(sim))


def _lines(sim: Simulation) -> Iterator[str]:
    for record in sim.state["trace"][-SHOWN:]:
        match record.event:
            case "recovered":
                failure = record.classified.failure
                said = (
                    f"{failure.key}: {failure.error.message[:80]} ({record.classified.rule}, {record.classified.scope}"
                )
                yield f"{record.at:8.1f} recovered {said}, effect {record.classified.effect}) -> {record.choice.rung}"
            case "judged":
                continue
            case _:
                fields = record.model_dump(exclude={"at", "run", "event", "intent", "seconds", "grades", "judgements"})
                said = ", ".join(f"{name}={each}" for name, each in fields.items() if each not in (None, [], "", 0.0))
                yield f"{record.at:8.1f} {record.event} {said[:160]}"


def _counted(tally: Tally, sim: Simulation) -> None:
    watch, outside = sim.watch, sim.outside
    tally.runs += sum(watch.statuses.values())
    tally.nodes += sim.steps
    tally.moves += watch.moves
    tally.calls += outside.calls
    tally.effects += outside.effects
    tally.repeats += outside.repeats
    tally.fullest = max(tally.fullest, watch.fullest)
    tally.statuses.update(watch.statuses)
    tally.rungs.update(watch.rungs)

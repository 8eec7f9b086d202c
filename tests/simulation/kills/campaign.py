"""Many schedules, side by side: each a row of processes that die, and one that lives. Counted, judged, shrunk."""

import multiprocessing
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from agent.settings import Settings
from agent.store.database import open_database, place_of
from agent.store.runs import RunIndex
from tests.postgres import Server
from tests.simulation.kills.judging import Verdict, read, scenario_verdict, shop_verdict, thread_of, told_by
from tests.simulation.kills.ledger import Ledger
from tests.simulation.kills.life import SECONDS, command_life, shop_life
from tests.simulation.kills.script import SHOP, Kill, Life, Moment, Script, draw, smaller

# Each process is forked from one that has imported everything and done nothing: a fresh one, in milliseconds.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.simulation.kills.preload"])
_REAPING = threading.Lock()
"""A start polls all processes, and two who poll one at once read its end twice, the second time as 255."""

FINISHED = frozenset({0, 3, 4})
"""Exit codes of a `kintsugi` that came to an end: satisfied, not satisfied, a person is asked."""


class Stuck(Exception):
    """A process came to no end, or to a bad one."""


@dataclass
class Tally:
    """What came of a number of schedules."""

    schedules: Counter[str] = field(default_factory=Counter)
    """By subject."""
    kills: Counter[str] = field(default_factory=Counter)
    """Those that were delivered, by boundary."""
    resumes: int = 0
    effects: int = 0
    asked: int = 0
    doubled: int = 0
    lost: int = 0
    remade: int = 0
    different: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[int, str]] = field(default_factory=list)
    """Seed and what does not hold."""

    def table(self) -> str:
        """The whole as a table."""
        honest = self.statuses.total() - self.statuses["satisfied"]
        rows = [
            ("schedules", self.schedules.total()),
            *((f"  {each}", number) for each, number in sorted(self.schedules.items())),
            ("processes killed", self.kills.total()),
            *((f"  {each}", number) for each, number in sorted(self.kills.items())),
            ("resumes", self.resumes),
            ("effects in the world", self.effects),
            ("questions to a person", self.asked),
            ("non-idempotent effects twice", self.doubled),
            ("verified artifacts lost", self.lost),
            ("verified artifacts made again", self.remade),
            *((f"ended {each}", number) for each, number in sorted(self.statuses.items())),
            ("other than the undisturbed end state", self.different),
            ("not satisfied, and honest about it", honest),
            ("broken schedules", len(self.broken)),
        ]
        return "\n".join(f"{name:<44}{number:>10}" for name, number in rows)

    def take(self, seed: int, script: Script, run: "Run") -> None:
        """Count one schedule."""
        self.schedules[script.subject] += 1
        self.kills.update(run.kills)
        self.resumes += run.lives - 1
        verdict = run.verdict
        if verdict is not None:
            self.effects, self.asked = self.effects + verdict.effects, self.asked + verdict.asked
            self.doubled, self.lost = self.doubled + len(verdict.doubled), self.lost + len(verdict.lost)
            self.remade, self.different = self.remade + len(verdict.remade), self.different + len(verdict.different)
            self.statuses[verdict.status] += 1
        if run.wrong:
            self.broken.append((seed, "; ".join(run.wrong)))


@dataclass
class Run:
    """One schedule, carried out."""

    lives: int = 0
    kills: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    stuck: str = ""
    told: str = ""
    """The story: ledger and output."""

    @property
    def wrong(self) -> list[str]:
        """What does not hold."""
        return [self.stuck] if self.stuck else self.verdict.wrong if self.verdict else ["it was not judged"]


def campaign(
    seeds: Iterable[int],
    workers: int = 2,
    told: Callable[[Tally], None] = lambda _: None,
    patience: int = 1,
    server: Server | None = None,
) -> Tally:
    """Carry out schedules until all are done, or so many of them are broken.

    Args:
        seeds: of the schedules.
        workers: how many at once.
        told: hears how far it is.
        patience: broken ones after which it ends.
        server: a Postgres server that keeps the runs; without one each is kept in an SQLite file.
    """
    tally, coming = Tally(), iter(seeds)
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[Run], int] = {}
        while True:
            while len(running) < workers and len(tally.broken) < patience and (seed := next(coming, None)) is not None:
                running[pool.submit(carried_out, draw(seed), server)] = seed
            if not running:
                return tally
            for each in wait(running, return_when=FIRST_COMPLETED).done:
                seed = running.pop(each)
                tally.take(seed, draw(seed), each.result())
            told(tally)


def carried_out(script: Script, server: Server | None = None) -> Run:
    """Carry out one schedule in a folder, and a database, of its own, which are gone afterwards."""
    folder, run = Path(tempfile.mkdtemp(prefix="kintsugi-kills-")), Run()
    try:
        with _database(server) as url:
            lives = _shop if script.subject == SHOP else _scenario
            run.verdict = lives(script, folder, url, run)
    except Stuck as stuck:
        run.stuck = str(stuck)
    finally:
        run.told = _told(folder)
        shutil.rmtree(folder)
    return run


@contextmanager
def _database(server: Server | None) -> Iterator[str]:
    """The URL of a fresh database; empty for a file."""
    if server is None:
        yield ""
        return
    with _REAPING:
        place = server.create()
    try:
        yield place.url
    finally:
        server.drop(place)


def shrunk(script: Script, server: Server | None = None, seconds: float = 60.0) -> Script:
    """A smaller schedule that breaks the same: whatever can be left out is, for as long as there is time."""
    wanted, end, found = _kinds(carried_out(script, server)), time.monotonic() + seconds, True
    while found and wanted:
        found = False
        for less in smaller(script):
            if time.monotonic() > end:
                return script
            if _kinds(carried_out(less, server)) & wanted:
                script, found = less, True
                break
    return script


def story(script: Script, server: Server | None = None) -> str:
    """What a schedule is, what happened, and what does not hold."""
    run = carried_out(script, server)
    wrong = "\n".join(f"WRONG: {each}" for each in run.wrong) or "it holds"
    return f"{script}\n\nkilled: {', '.join(run.kills) or 'never'}\n\n{run.told}\n\n{wrong}"


def _shop(script: Script, folder: Path, url: str, run: Run) -> Verdict:
    for life in script.lives:
        code = _lived(shop_life, (script, life, folder, url), life, run, folder)
        if code not in (0, -signal.SIGKILL):
            raise Stuck(f"a process ended with exit code {code}")
    meant = Ledger(folder / "ledger.txt").has("goal meant")  # a kill may come in the call before it changes the goal
    return shop_verdict(script, folder, _undisturbed_shop(script.wants if meant else script.first or script.wants))


def _scenario(script: Script, home: Path, url: str, run: Run) -> Verdict:
    output, thread = home / "output", thread_of(script.subject)
    settings = Settings(home=home, database_url=SecretStr(url) if url else None)
    for life in script.lives:
        words = _started(script.subject) if life.again or not _accepted(settings, thread) else ["resume", thread]
        arguments = [*words, "--json", "--home", str(home)]
        code = _lived(command_life, (arguments, life, script.sabotage, output, url), life, run, home)
        if code not in (*FINISHED, -signal.SIGKILL):
            raise Stuck(f"kintsugi {' '.join(words)} ended with exit code {code}")
    told = told_by(output.with_suffix(".1"), settings, script.subject)
    return scenario_verdict(script.subject, home, told, _undisturbed_scenario(script.subject))


def _started(subject: str) -> list[str]:
    name, _, event = subject.partition(":")
    return ["demo", name, *(("--event", event) if event else ())]


def _accepted(settings: Settings, thread: str) -> bool:
    """Whether the run was accepted before its process died; otherwise there is nothing to resume."""
    place = place_of(settings)
    if isinstance(place, Path) and not place.exists():
        return False
    with open_database(place) as database:
        return RunIndex(database).get(thread) is not None


def _lived(target: Callable[..., None], args: tuple[Any, ...], life: Life, run: Run, folder: Path) -> int | None:
    """Let a process live until it ends or is killed; how it ended."""
    run.lives += 1
    process: ForkServerProcess = _FORKS.Process(target=target, args=args)
    with _REAPING:
        process.start()
    ended = wait_for([process.sentinel], life.end.seconds if isinstance(life.end, Moment) else SECONDS)
    if not ended:
        process.kill()
    with _REAPING:
        process.join()
    if not ended and not isinstance(life.end, Moment):
        raise Stuck(
            f"a process was not at an end after {SECONDS:g} seconds, and stood here:\n{(folder / 'hangs').read_text()}"
        )
    if process.exitcode == -signal.SIGKILL:
        run.kills.append(f"{life.end.boundary}, {life.end.when}" if isinstance(life.end, Kill) else "at any moment")
    return process.exitcode


@cache
def _undisturbed_shop(wants: tuple[str, ...]) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="kintsugi-kills-"))
    try:
        script = Script((Life(),), wants=wants)
        assert _lived(shop_life, (script, Life(), folder, ""), Life(), Run(), folder) == 0
        return read(folder)
    finally:
        shutil.rmtree(folder)


@cache
def _undisturbed_scenario(subject: str) -> dict[str, Any]:
    """What the command tells at the end of a run that nobody kills, in the scenario's world as it is."""
    home = Path(tempfile.mkdtemp(prefix="kintsugi-kills-"))
    try:
        arguments = [*_started(subject), "--json", "--home", str(home)]
        assert _lived(command_life, (arguments, Life(), "", home / "output", ""), Life(), Run(), home) == 0
        return told_by(home / "output.1", Settings(home=home), subject)
    finally:
        shutil.rmtree(home)


def _kinds(run: Run) -> frozenset[str]:
    """What does not hold, without numbers."""
    return frozenset(re.sub(r"\d+", "", each)[:60] for each in run.wrong)


def _told(folder: Path) -> str:
    ledger = Ledger(folder / "ledger.txt").lines()
    happened = [" ".join(each) for each in ledger if each.what != "held"]
    output = [_read(each)[-1500:] for each in sorted(folder.glob("output.*"))]
    return "\n".join((*happened, *output))


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


WORKERS = os.cpu_count() or 1

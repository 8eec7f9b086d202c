"""SIGKILL anywhere, then another process: each effect that costs money once, nothing verified made again.

`KILLS=200 make test ARGS=tests/crash` kills that many more processes at random moments.
"""

import json
import multiprocessing
import os
import random
import signal
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from tests.crash.shop import ONCE, Kill, Shop, work

# Each process is forked from one that has imported everything and done nothing: a fresh one, in milliseconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.crash.shop", "agent.app"])

SECONDS = 60
"""Longest life of one process; far more than it needs."""

CHOSEN = [
    *((Kill(tool, place),) for tool in (*ONCE, "label") for place in ("before", "after")),
    *((Kill(tool, "probe"),) for tool in ("reserve", "ship", "mail")),
    (Kill("stock", "after"),),
    (Kill("report", "after"),),
    (Kill("reserve", "after"), Kill("reserve", "probe")),
    (Kill("charge", "after"), Kill("ship", "before"), Kill("mail", "after")),
    (Kill("label", "before"), Kill("label", "after"), Kill("label", "after")),
]
RANDOM = range(8 + int(os.environ.get("KILLS", "0")))


def _started(folder: Path, kill: Kill | None, again: bool, native: bool) -> ForkServerProcess:
    process = FORKS.Process(target=work, args=(folder, kill, again, native))
    process.start()
    return process


def _lived(folder: Path, kill: Kill | None, again: bool, native: bool) -> int | None:
    process = _started(folder, kill, again, native)
    process.join(SECONDS)
    return process.exitcode


def _result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert _lived(folder, None, again=True, native=False) == 0
    return _result(folder)


def _holds(folder: Path, undisturbed: dict[str, Any]) -> None:
    result, counts = _result(folder), Shop(folder, None).counts()
    assert result["status"] == "satisfied"
    assert result["values"] == undisturbed["values"]
    assert {name: counts[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert result["remade"] == []
    assert set(result["committed"].values()) == {1}


@pytest.mark.parametrize("kills", CHOSEN, ids=lambda kills: "+".join(map(str, kills)))
def test_a_process_killed_at_a_chosen_place_is_followed_by_one_that_repeats_nothing(
    kills: tuple[Kill, ...], tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    native = CHOSEN.index(kills) % 2 == 1
    for nth, kill in enumerate(kills):
        assert _lived(tmp_path, kill, again=nth % 2 == 0, native=native) == -signal.SIGKILL
    assert _lived(tmp_path, None, again=len(kills) % 2 == 0, native=native) == 0
    _holds(tmp_path, undisturbed)


@pytest.mark.parametrize("seed", RANDOM)
def test_processes_killed_at_random_moments_are_followed_by_one_that_repeats_nothing(
    seed: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    dice = random.Random(seed)
    for _ in range(dice.randint(1, 3)):
        process = _started(tmp_path, None, again=dice.random() < 0.5, native=dice.random() < 0.5)
        process.join(dice.uniform(0.05, 0.8))
        process.kill()
        process.join()
    assert _lived(tmp_path, None, again=dice.random() < 0.5, native=dice.random() < 0.5) == 0
    _holds(tmp_path, undisturbed)

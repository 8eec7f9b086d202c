"""Kill by hand: `python -m tests.simulation.kills --schedules 1000`, or `--seed 17` to see one again."""

import argparse
import sys
import time
from itertools import takewhile

from tests.postgres import Server
from tests.simulation.kills.campaign import WORKERS, Tally, campaign, carried_out, shrunk, story
from tests.simulation.kills.script import draw


def main() -> int:
    """Run the campaign, and print progress, a table, and the story of what broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.kills", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100, help="how many")
    parser.add_argument("--seconds", type=float, default=7200.0, help="begin none after so long")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite", help="where runs are kept")
    parser.add_argument("--workers", type=int, default=WORKERS, help="schedules side by side")
    parser.add_argument("--patience", type=int, default=1, help="end after so many broken ones")
    parser.add_argument("--seed", type=int, help="carry out this one alone, and shrink it if it breaks")
    given = parser.parse_args()
    server = Server() if given.database == "postgres" else None
    try:
        return _one(given.seed, server) if given.seed is not None else _many(given, server)
    finally:
        if server is not None:
            server.close()


def _many(given: argparse.Namespace, server: Server | None) -> int:
    begun, said = time.monotonic(), [0.0]
    seeds = range(given.first, given.first + given.schedules)

    def told(tally: Tally) -> None:
        passed, done = time.monotonic() - begun, tally.schedules.total()
        if passed - said[0] > 10:
            said[0] = passed
            last = f"; seed {tally.broken[-1][0]}: {tally.broken[-1][1]}" if tally.broken else ""
            print(f"{done:>8} schedules, {passed:.0f} s, {len(tally.broken)} broken{last}", file=sys.stderr)

    in_time = takewhile(lambda _: time.monotonic() - begun < given.seconds, seeds)
    tally = campaign(in_time, given.workers, told, given.patience, server)
    print(f"{'runs kept in':<44}{given.database:>10}")
    print(tally.table())
    print(f"{'seconds':<44}{time.monotonic() - begun:>10.0f}")
    for seed, why in tally.broken:
        print(f"seed {seed}: {why}")
    return 1 if tally.broken else 0


def _one(seed: int, server: Server | None) -> int:
    script = draw(seed)
    broken = carried_out(script, server).wrong
    print(story(shrunk(script, server) if broken else script, server))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""Simulate by hand: `python -m tests.simulation --runs 1000000`, or `--seed 17` to see one again."""

import argparse
import os
import sys
import time

from tests.simulation.campaign import Tally, campaign, story


def main() -> int:
    """Run the campaign, and print progress, a table, and the story of what broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="at least so many runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--patience", type=int, default=1, help="end after so many broken ones")
    parser.add_argument("--seed", type=int, help="simulate this one alone, and shrink it if it breaks")
    given = parser.parse_args()
    if given.seed is not None:
        print(story(given.seed))
        return 0
    begun = time.monotonic()
    tally = campaign(given.runs, given.first, given.jobs, Teller(begun), given.patience)
    print(tally.table())
    print(f"{'seconds':<40}{time.monotonic() - begun:>12.1f}")
    if tally.broken:
        print(f"\n{story(tally.broken[0][0])}")
    return 1 if tally.broken else 0


class Teller:
    """Says at once what broke and how to see it again, and now and then how far it is."""

    def __init__(self, begun: float) -> None:
        self._begun, self._said, self._broken = begun, begun, 0

    def __call__(self, tally: Tally) -> None:
        for seed, why in tally.broken[self._broken :]:
            print(f"seed {seed}: {why}\n  again: python -m tests.simulation --seed {seed}", flush=True)
        self._broken = len(tally.broken)
        now = time.monotonic()
        if now - self._said > 5:
            self._said, passed = now, now - self._begun
            print(f"{tally.runs:>10} runs, {tally.runs / passed:.0f}/s, {self._broken} broken", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

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
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--patience", type=int, default=1, help="end after so many broken ones")
    parser.add_argument("--seed", type=int, help="simulate this one alone, and shrink it if it breaks")
    given = parser.parse_args()
    if given.seed is not None:
        print(story(given.seed))
        return 0
    begun, said = time.monotonic(), [0.0]

    def told(tally: Tally) -> None:
        passed = time.monotonic() - begun
        if passed - said[0] > 5:
            said[0] = passed
            print(f"{tally.runs:>10} runs, {tally.runs / passed:.0f}/s, {len(tally.broken)} broken", file=sys.stderr)

    tally = campaign(given.runs, given.first, given.workers, told, given.patience)
    print(tally.table())
    print(f"{'seconds':<40}{time.monotonic() - begun:>12.1f}")
    for seed, why in tally.broken[:20]:
        print(f"seed {seed}: {why}")
    if tally.broken:
        print(f"\n{story(tally.broken[0][0])}")
    return 1 if tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())

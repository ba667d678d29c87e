"""Run many simulations: ``python -m tests.simulation --seeds 10000``; ``--first N --seeds 1 --log`` repeats
one."""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.simulation.scenario import run


def main() -> int:
    """Exit 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--log", action="store_true", help="print what happened")
    options = parser.parse_args()
    began, commands, stops, broken = time.monotonic(), Counter[str](), Counter[str](), 0
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for result in pool.map(run, seeds, chunksize=20):
            commands += result.commands
            stops.update({line.split(":")[0] + ": " + line[-80:] for line in result.stops})
            if result.problems:
                broken += 1
                print(f"seed {result.seed}:", *result.problems, sep="\n  ")
            if options.log:
                print(f"seed {result.seed}:", *result.log, sep="\n  ")
    seconds = time.monotonic() - began
    print(f"{options.seeds} seeds, {sum(commands.values())} commands, {seconds:.0f} s: {broken} broken")
    print(
        f"{sum(stops.values())} stops for a person:",
        *(f"  {n} x {line}" for line, n in stops.most_common(20)),
        sep="\n",
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

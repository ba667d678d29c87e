"""Run the matrix: ``python -m tests.between_runs``; ``--only "native, server_ip"`` runs a part."""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.between_runs.cases import cells, paired
from tests.between_runs.cell import Result, run


def main() -> int:
    """Exit 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.between_runs", description=__doc__)
    parser.add_argument("--only", default="", help="cells whose description contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--product", action="store_true", help="all cells, instead of each pair")
    options = parser.parse_args()
    began, every = time.monotonic(), cells()
    chosen = [c for c in (every if options.product else paired(every)) if options.only in str(c)]
    if not chosen:
        print(f"no cell is described by {options.only!r}", file=sys.stderr)
        return 2
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        results = [show(result) for result in pool.map(run, chosen, chunksize=5)]
    further = Counter(result.further for result in results if result.stop is None)
    broken, stops = (
        sum(map(bool, found)) for found in zip(*((r.problems, r.stop) for r in results), strict=True)
    )
    print(
        f"{len(results)} cells in {time.monotonic() - began:.0f} s: {broken} broken, {stops} stopped for a "
        f"person, {further[0]} ended at once, {further[1]} in one further run, {further[2]} in two"
    )
    return 1 if broken else 0


def show(result: Result) -> Result:
    """Print what is worth a line, as soon as it is known."""
    if result.problems:
        print(f"BROKEN {result.cell}", *result.problems, "story:", *result.story, sep="\n    ", flush=True)
    if result.stop is not None:
        print(
            f"stop: {result.cell}",
            result.stop,
            f"resolved by: {result.resolved_by}",
            sep="\n    ",
            flush=True,
        )
    return result


if __name__ == "__main__":
    sys.exit(main())

"""Run the kill matrix: ``python -m tests.crash``; ``--only "native, up, create server 201"`` runs a part."""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.crash.cell import Verdict, run
from tests.crash.pairs import default_cells, everything, paired_cells

MOST_STOPS = 0.02
"""The part of the cells that may end with a person's decision."""


def main() -> int:
    """Exit 1 where a promise was broken, or too many cells stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--only", default="", help="cells whose description contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--product",
        action="store_true",
        help="each behaviour and each delay with every request and point, instead of each pair",
    )
    options = parser.parse_args()
    began = time.monotonic()
    defaults = default_cells()
    more = everything(defaults) if options.product else paired_cells(defaults)
    cells = [cell for cell in (*defaults, *more) if options.only in str(cell)]
    cells.sort(key=lambda cell: (cell.case, cell.variant))  # one process keeps what it knows of a case
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        verdicts = [show(verdict) for verdict in pool.map(run, cells, chunksize=10)]
    return report(verdicts, time.monotonic() - began)


def show(verdict: Verdict) -> Verdict:
    """Print what is worth a line, as soon as it is known."""
    if verdict.problems:
        print(f"BROKEN {verdict.cell}", *verdict.problems, sep="\n    ", flush=True)
    if verdict.stop is not None:
        lines = (f"stop: {verdict.cell}", verdict.stop, f"resolved by: {verdict.resolved_by}")
        print(*lines, sep="\n    ", flush=True)
    return verdict


def report(verdicts: list[Verdict], seconds: float) -> int:
    broken = sum(1 for verdict in verdicts if verdict.problems)
    stops = sum(1 for verdict in verdicts if verdict.stop is not None)
    reruns = Counter(verdict.reruns for verdict in verdicts if verdict.stop is None)
    print(
        f"{len(verdicts)} cells in {seconds:.0f} s: {broken} broken, {stops} stopped for a person, "
        f"{reruns[1]} ended in one further run, {reruns[2]} in two"
    )
    return 1 if broken or stops > MOST_STOPS * len(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())

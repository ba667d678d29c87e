"""Run the kill matrix: ``python -m tests.crash``; ``--only "native, up, create server 201"`` runs a part."""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from tests.crash import cell, machines, processes
from tests.crash.cell import Cell
from tests.crash.pairs import default_cells, everything, paired_cells
from tests.crash.processes import ProcessCell
from tests.crash.result import Result

MOST_STOPS = 0.02
"""The part of the cells that may end with a person's decision."""
MOST_UNREACHED = 0.02
"""The part of the cells in which the command may end before the request comes at which it is to be killed."""
C = TypeVar("C")


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
    parser.add_argument(
        "--processes",
        choices=["yes", "no", "only"],
        default="yes",
        help="whether real processes are killed too, or nothing else is done",
    )
    parser.add_argument(
        "--machines",
        type=int,
        choices=[1, 2],
        default=1,
        help="2: what is run again runs on another machine that shares a store; in one process alone",
    )
    options = parser.parse_args()
    if options.machines == 2:
        options.processes = "no"
        os.environ[machines.VARIABLE] = "2"
    reported = []
    if options.processes != "only":
        reported.append(_matrix("in one process", cell.run, _simulated, options))
    if options.processes != "no":
        reported.append(_matrix("of real processes", processes.run, _real, options))
    if None in reported and len(set(reported)) == 1:
        print(f"no cell is described by {options.only!r}", file=sys.stderr)
        return 2
    return max(result for result in reported if result is not None)


def _matrix(
    name: str,
    run: Callable[[C], Result],
    cells: Callable[[ProcessPoolExecutor, argparse.Namespace], Iterable[C]],
    options: argparse.Namespace,
) -> int | None:
    """None where no cell was chosen."""
    began = time.monotonic()
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        chosen = [found for found in cells(pool, options) if options.only in str(found)]
        results = [show(result) for result in pool.map(run, chosen, chunksize=10)]
    return report(name, results, time.monotonic() - began) if chosen else None


def _simulated(pool: ProcessPoolExecutor, options: argparse.Namespace) -> list[Cell]:
    defaults = default_cells()
    more = everything(defaults) if options.product else paired_cells(defaults)
    # One process keeps what it knows of a case.
    return sorted((*defaults, *more), key=lambda cell: (cell.case, cell.variant))


def _real(pool: ProcessPoolExecutor, options: argparse.Namespace) -> list[ProcessCell]:
    return [found for part in pool.map(processes.cells_of, processes.frontends()) for found in part]


def show(result: Result) -> Result:
    """Print what is worth a line, as soon as it is known."""
    if result.problems:
        print(f"BROKEN {result.cell}", *result.problems, sep="\n    ", flush=True)
    if result.stop is not None:
        lines = (f"stop: {result.cell}", result.stop, f"resolved by: {result.resolved_by}")
        print(*lines, sep="\n    ", flush=True)
    if not result.is_reached:
        print(f"not reached: {result.cell}", flush=True)
    return result


def report(name: str, results: list[Result], seconds: float) -> int:
    broken = sum(1 for result in results if result.problems)
    unreached = sum(1 for result in results if not result.is_reached)
    stops = sum(1 for result in results if result.stop is not None)
    reruns = Counter(result.reruns for result in results if result.stop is None and result.is_reached)
    print(
        f"{len(results)} cells {name} in {seconds:.0f} s: {broken} broken, {stops} stopped for a person, "
        f"{reruns[1]} ended in one further run, {reruns[2]} in two, {unreached} not reached",
        flush=True,
    )
    too_many = stops > MOST_STOPS * len(results) or unreached > MOST_UNREACHED * len(results)
    return 1 if broken or too_many else 0


if __name__ == "__main__":
    sys.exit(main())

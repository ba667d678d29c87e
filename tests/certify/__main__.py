"""Run certify on every mutant: ``python -m tests.certify``; ``--only money`` runs those with that id.

At least 95 % of the mutants must be found, alone and in pairs, and nothing named that is right. Deployments
that make other choices, in both dialects, must get no departure at all. ``--write`` puts the figures on the
page.
"""

import argparse
import logging
import re
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from pulumi_hosting.certify import CHECKS
from tests.certify.cell import Outcome, of_choices, of_mutants
from tests.certify.judge import related
from tests.certify.mutants import MUTANTS, pairs

PAGE = Path(__file__).parent.parent.parent / "docs" / "certify.md"
FIGURES = re.compile(r"(?<=<!-- proof -->\n).*?(?=<!-- end of proof -->)", re.DOTALL)
FOUND, VARIANTS, FEWEST = 0.95, 20, 3


def shown(kind: str, outcomes: Iterable[Outcome], *, named: bool) -> tuple[bool, str]:
    """Print what was missed or named wrongly. Whether the bar is met, and the line of figures."""
    mutants = missed = wrong = stopped = 0
    for one in outcomes:
        mutants += len(one.names) if named else 1
        missed, wrong, stopped = missed + len(one.missed), wrong + len(one.wrong), stopped + bool(one.stopped)
        if one.missed or one.wrong:
            label = " + ".join(f"{name} ({MUTANTS[name].what})" for name in one.names) if named else one.names
            print(f"{kind}: {label}", flush=True)
            for what, names in {"missed": one.missed, "wrongly named": one.wrong}.items():
                if names:
                    print(f"    {what}: {', '.join(names)}", flush=True)
            if one.stopped:
                print(f"    stopped: {one.stopped}", flush=True)
    found = mutants - missed
    share = f"{found}, {found / mutants:.1%}" if named else ""
    line = f"| {kind} | {mutants} | {share} | {wrong} | {stopped} |"
    return wrong == 0 and found >= FOUND * mutants, line


def few() -> dict[str, int]:
    """The checks that have fewer than three mutants."""
    counts = {
        id: sum(related(one.sentences, check.sentences) for one in MUTANTS.values())
        for id, check in CHECKS.items()
    }
    return {id: count for id, count in counts.items() if count < FEWEST}


def main() -> int:
    """Exit 1 if the bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.certify", description=__doc__)
    parser.add_argument("--only", default="", help="mutants and pairs whose id contains this; no variants")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", action="store_true", help=f"put the figures on docs/{PAGE.name}")
    options = parser.parse_args()
    began = time.monotonic()
    single = [(name,) for name in MUTANTS if options.only in name]
    double = [(a.id, b.id) for a, b in pairs() if options.only in f"{a.id} {b.id}"]
    seeds = () if options.only else range(VARIANTS)
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), initializer=logging.disable) as pool:
        results = [
            shown("mutants", pool.map(of_mutants, single, chunksize=4), named=True) if single else None,
            shown("mutants in pairs", pool.map(of_mutants, double, chunksize=4), named=True)
            if double
            else None,
            shown("allowed variants", pool.map(of_choices, seeds), named=False) if seeds else None,
        ]
    told = [result for result in results if result]
    if not told:
        print(f"no mutant is named {options.only!r}", file=sys.stderr)
        return 2
    table = ["| Deployments | Number | Found | Named wrongly | Not finished |", "|---|---|---|---|---|"]
    table += [line for _, line in told]
    print(*table, sep="\n")
    if not options.only:
        rare = few()
        print(f"{len(CHECKS)} checks, {len(rare)} with fewer than {FEWEST} mutants:", *map(str, rare.items()))
        if options.write:
            text = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(FIGURES.sub("\n".join([*table, ""]).replace("\\", r"\\"), text), encoding="utf-8")
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(met for met, _ in told) else 1


if __name__ == "__main__":
    sys.exit(main())

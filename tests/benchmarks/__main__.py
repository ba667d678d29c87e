"""``make bench``: runs every ``bench_*.py`` beside this file and prints what it measured. ``make bench
ARGS=stack`` runs that one alone.

Figures are ratios of two things measured in turns in one run, so that they mean the same on a fast machine
and a slow one. Nothing is asserted: a measurement is read by a person.
"""

import importlib
import sys
from pathlib import Path

from tests.benchmarks.measure import Ratio


def main(names: list[str]) -> int:
    found = {
        path.stem.removeprefix("bench_"): path for path in sorted(Path(__file__).parent.glob("bench_*.py"))
    }
    if unknown := set(names) - found.keys():
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(found)}", file=sys.stderr)
        return 2
    for path in (found[name] for name in names or found):
        module = importlib.import_module(f"tests.benchmarks.{path.stem}")
        print((module.__doc__ or path.stem).splitlines()[0])
        for ratio in module.ratios():
            assert isinstance(ratio, Ratio)
            print(f"  {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

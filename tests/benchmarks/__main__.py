"""``make bench``: runs every ``bench_*.py`` beside this file and prints what it measured.

Figures are ratios of two things measured in turns in one run, so that they mean the same on a fast machine and a slow one. Nothing is
asserted: a measurement is read by a person.
"""

import importlib
import sys
from pathlib import Path

from tests.benchmarks.measure import Ratio


def main() -> int:
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        module = importlib.import_module(f"tests.benchmarks.{path.stem}")
        print((module.__doc__ or path.stem).splitlines()[0])
        for ratio in module.ratios():
            assert isinstance(ratio, Ratio)
            print(f"  {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

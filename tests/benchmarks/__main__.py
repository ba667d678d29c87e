"""``make bench``: runs every ``bench_*.py`` beside this file and prints what it measured. ``make bench
ARGS=stack`` runs that one alone, ``ARGS=stack:native,one`` those of its rows that these words name.

Figures are ratios of two things measured in turns in one run, so that they mean the same on a fast machine
and a slow one. Nothing is asserted: a measurement is read by a person.
"""

import importlib
import os
import sys
from pathlib import Path

from tests.benchmarks.measure import Ratio


def main(names: list[str]) -> int:
    found = {
        path.stem.removeprefix("bench_"): path for path in sorted(Path(__file__).parent.glob("bench_*.py"))
    }
    chosen = {name: words.split(",") for name, _, words in (text.partition(":") for text in names) if words}
    names = [text.partition(":")[0] for text in names]
    if unknown := set(names) - found.keys():
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(found)}", file=sys.stderr)
        return 2
    # What is installed has its bytecode; a start without it takes twice as long.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name, path in ((name, found[name]) for name in names or found):
        module = importlib.import_module(f"tests.benchmarks.{path.stem}")
        print((module.__doc__ or path.stem).splitlines()[0])
        for ratio in module.ratios(*([chosen[name]] if name in chosen else [])):
            assert isinstance(ratio, Ratio)
            print(f"  {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

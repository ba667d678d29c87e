"""Writes the generated files, or with ``--check`` only compares them with what they should be.

Each generator returns the text of its files by name. A file that matches one of its ``OWNED`` patterns and is
not returned is removed.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from generate import collection, examples, module_scopes, reference, releases, sdk, services, tables
from generate.render import ROOT

GENERATORS = (reference, services, sdk, collection, module_scopes, releases, tables, examples)


def stale(root: Path = ROOT) -> Mapping[str, str | None]:
    """The files that are missing or out of date, with their right text; None for one to be removed."""
    found: dict[str, str | None] = {}
    for generator in GENERATORS:
        wanted = generator.files()
        present = {
            path.relative_to(root).as_posix() for pattern in generator.OWNED for path in root.glob(pattern)
        }
        found |= {name: text for name, text in wanted.items() if _text(root / name) != text}
        found |= dict.fromkeys(present - wanted.keys())
    return found


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    only_compare = parser.parse_args(arguments).check
    found = stale()
    for name, text in found.items():
        path = ROOT / name
        if only_compare:
            print(f"{name} is out of date", file=sys.stderr)
        elif text is None:
            path.unlink()
            print(f"removed {name}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(name)
    if found and only_compare:
        print("Next: make generate", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

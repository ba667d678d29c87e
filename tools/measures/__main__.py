"""Prints the measures; keeps those of the walks in ``ARCHITECTURE.md``.

``python -m tools.measures`` prints them all; ``--write`` writes the walks between the marks of
``ARCHITECTURE.md``; ``--check`` fails if they are out of date there, or over a limit. ``--sizes
FOLDER`` prints the sizes of another checkout.
"""

import argparse
import sys
from pathlib import Path

from tools.measures import sizes
from tools.measures.walk import Walk

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- measures: written by `python -m tools.measures --write` -->", "<!-- end of measures -->"
LIMITS = {"Pulumi": (15, 5), "Ansible": (12, 4)}
"""Hops and changes, at most."""


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.measures", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail if ARCHITECTURE.md is out of date, or a walk too long"
    )
    parser.add_argument("--write", action="store_true", help="update ARCHITECTURE.md")
    parser.add_argument("--sizes", metavar="FOLDER", type=Path, help="print the sizes of this checkout only")
    options = parser.parse_args()
    if options.sizes:
        print(sizes_text(options.sizes.resolve()))
        return 0
    from tools.measures.frontends import ansible_walk, pulumi_walk

    walks = {"Pulumi": pulumi_walk(), "Ansible": ansible_walk()}
    text = walks_text(walks)
    if not options.check and not options.write:
        print("\n".join([text, readers_text(walks), sizes_text(ROOT)]))
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted = f"{before}{BEGIN}\n\n{text}\n{END}{after}"
    if options.write:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    problems = over_limit(walks)
    if page != wanted:
        problems.append(
            "ARCHITECTURE.md: the measures are out of date. Next: python -m tools.measures --write"
        )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def over_limit(walks: dict[str, Walk]) -> list[str]:
    """What exceeds its limit, one sentence each."""
    found = []
    for name, walk in walks.items():
        hops, changes = LIMITS[name]
        for what, count, most in (("hops", len(walk.hops), hops), ("changes", walk.changes, changes)):
            if count > most:
                found.append(
                    f"the walk of {name} has {count} {what}, at most {most} are allowed. Next: see them with "
                    f"python -m tools.measures, and pass the value on with fewer"
                )
    return found


def walks_text(walks: dict[str, Walk]) -> str:
    """The walks in Markdown: totals, then each function with the changes that it makes."""
    lines = ["| Walk of `tariff_id` | Hops | at most | Changes | at most |", "|---|---|---|---|---|"]
    for name, walk in walks.items():
        hops, changes = LIMITS[name]
        lines.append(f"| {name} | {len(walk.hops)} | {hops} | {walk.changes} | {changes} |")
    for name, walk in walks.items():
        lines += ["", f"{name}:", "", "| Hop | Changes |", "|---|---|"]
        for hop in walk.hops:
            changes_made = [
                f"{change} ({times} times)" if times > 1 else change
                for change, times in hop.counted().items()
            ]
            lines.append(f"| `{hop.name}` | {'; '.join(changes_made)} |")
    return "\n".join([*lines, ""])


def readers_text(walks: dict[str, Walk]) -> str:
    """The functions that read the value and do not pass it on."""
    lines = []
    for name, walk in walks.items():
        lines += [
            f"{name}: {len(walk.readers)} functions read it and do not pass it on:",
            *(f"  {reader}" for reader in walk.readers),
            "",
        ]
    return "\n".join(lines)


def sizes_text(root: Path) -> str:
    """Lines per folder, long files, complex functions."""
    folders = sizes.lines_by_folder(root)
    lines = [f"{'folder':40} written generated"]
    lines += [f"{folder:40} {written:7} {generated:9}" for folder, written, generated in folders]
    lines.append(f"{'all':40} {sum(row[1] for row in folders):7} {sum(row[2] for row in folders):9}")
    long = sizes.long_files(root)
    lines += [
        "",
        f"{len(long)} hand-written files of more than {sizes.LONG} lines:",
        *(f"  {count:5} {path}" for path, count in long),
    ]
    found = sizes.complex_functions(root)
    lines += [
        "",
        f"{len(found)} functions of a complexity over {sizes.COMPLEX}:",
        *(f"  {function}" for function in found),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""Prints the measures; keeps those with a limit in ``ARCHITECTURE.md``.

``python -m tools.measures`` prints them all; ``--write`` writes those with a limit between the marks of
``ARCHITECTURE.md``; ``--check`` fails if they are out of date there, or over a limit. ``--sizes
FOLDER`` prints the sizes of another checkout.
"""

import argparse
import sys
from pathlib import Path

from tools.measures import code, guard, max_charge, sizes
from tools.measures.limits import WALKS
from tools.measures.walk import Walk

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- measures: written by `python -m tools.measures --write` -->", "<!-- end of measures -->"
SIZES_BEGIN = "<!-- sizes: written by `python -m tools.measures --write` -->"
SIZES_END = "<!-- end of sizes -->"


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
        root = options.sizes.resolve()
        print("\n".join([sizes_text(root), guard.counts_text(code.count(root), max_charge.readers(root))]))
        return 0
    from tools.measures.frontends import ansible_walk, pulumi_walk
    from tools.measures.refresh import refresh_walk

    walks = {"Pulumi": pulumi_walk(), "Ansible": ansible_walk()}
    refresh = refresh_walk()
    counts = code.count(ROOT)
    readers = max_charge.readers(ROOT)
    now = {**guard.measured(counts, readers), **guard.refreshed(refresh)}
    text, tables = walks_text(walks), guard.tables(now, counts.lines)
    if not options.check and not options.write:
        details = [readers_text(walks), guard.details(refresh, readers, counts)]
        print("\n".join([text, tables, *details, sizes_text(ROOT)]))
        return 0
    page = PAGE.read_text(encoding="utf-8")
    wanted = _between(_between(page, BEGIN, END, text), SIZES_BEGIN, SIZES_END, tables)
    if options.write:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    problems = [*over_limit(walks), *guard.over_limit(now, counts.lines)]
    if guard.without_now(page) != guard.without_now(wanted):
        problems.append(
            "ARCHITECTURE.md: the measures are out of date. Next: python -m tools.measures --write"
        )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _between(page: str, begin: str, end: str, text: str) -> str:
    """The page with this text between two of its marks."""
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}\n\n{text}\n{end}{after}"


def over_limit(walks: dict[str, Walk]) -> list[str]:
    """What exceeds its limit, one sentence each."""
    found = []
    for name, walk in walks.items():
        hops, changes = WALKS[name]
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
        hops, changes = WALKS[name]
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

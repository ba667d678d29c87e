"""The measures with a limit: compares them, and shows then and now as tables."""

import re
from collections.abc import Mapping

from tools.measures.code import Counts
from tools.measures.limits import BASELINE, BUDGETS, LIMITS
from tools.measures.max_charge import folders
from tools.measures.refresh import Arrival

PLACE = "tools/measures/limits.py"
PRODUCT = "all of the product"
_ROW = re.compile(r"^(\| [^|]+ \| [\d,]+ \|) [\d,]+ (?=\|)", re.MULTILINE)


def measured(counts: Counts, readers: list[str]) -> dict[str, int]:
    """What the source shows, by the names of ``LIMITS``."""
    return {
        "functions that read `max_charge`": len(readers),
        "folders of these functions": len(folders(readers)),
        "uses of `Any`": counts.anys,
        "imports inside functions": counts.imports_in_functions,
        "class names that several modules define": len(counts.doubled),
        "functions without a docstring, in per cent": counts.undocumented,
        "length of a function that 95 % do not exceed, in lines": counts.long,
    }


def refreshed(walk: Arrival) -> dict[str, int]:
    """What the walk of a refreshed server shows, by the names of ``LIMITS``."""
    return {
        "functions that a refreshed server passes, from the answer to the state": len(walk.functions),
        "its returns to a folder that it has left": walk.returns,
    }


def over_limit(now: Mapping[str, int], lines: Mapping[str, int]) -> list[str]:
    """What exceeds its limit, one sentence each."""
    found = [
        f"{name}: {now[name]}, at most {limit.most} are allowed. "
        "Next: see them with python -m tools.measures, and use fewer"
        for name, limit in LIMITS.items()
        if now[name] > limit.most
    ]
    for folder, count in lines.items():
        if folder not in BUDGETS:
            found.append(f"{folder} has no budget of lines. Next: give it one, with its reason, in {PLACE}")
        elif count > (most := BUDGETS[folder].most):
            found.append(
                f"{folder} has {count} lines of code, at most {most} are allowed. Next: merge rules there; "
                f"or raise its budget in {PLACE}, and say in the commit why"
            )
    unused = BUDGETS.keys() - lines.keys()
    return [
        *found,
        *(f"{folder} has a budget and no code. Next: remove it from {PLACE}" for folder in unused),
    ]


def tables(now: Mapping[str, int], lines: Mapping[str, int]) -> str:
    """Then and now in Markdown: the measures, and the lines of code of each folder."""
    rows = [f"| Measure | {BASELINE} | now | at most | goal |", "|---|---|---|---|---|"]
    for name, (then, most, goal) in LIMITS.items():
        rows.append(f"| {name} | {then:,} | {now[name]:,} | {most:,} | {goal:,} |")
    rows += ["", f"| Lines of code | {BASELINE} | now | at most | why so many |", "|---|---|---|---|---|"]
    for folder, (then, most, why) in BUDGETS.items():
        rows.append(f"| `{folder}/` | {then:,} | {lines.get(folder, 0):,} | {most:,} | {why} |")
    then = sum(budget.then for budget in BUDGETS.values())
    most = sum(budget.most for budget in BUDGETS.values())
    rows.append(f"| {PRODUCT} | {then:,} | {sum(lines.values()):,} | {most:,} | |")
    return "\n".join([*rows, ""])


def without_now(page: str) -> str:
    """The page without the numbers in the columns *now*: most commits change them a little."""
    return _ROW.sub(r"\1 ", page)


def details(walk: Arrival, readers: list[str], counts: Counts) -> str:
    """What the numbers are made of."""
    lines, longest = walk.longest
    return "\n".join(
        [
            f"A refreshed server passes, the longest with {lines} lines ({longest}):",
            *(f"  {function}" for function in walk.functions),
            "",
            "These functions read max_charge:",
            *(f"  {function}" for function in readers),
            "",
            "These class names are defined by several modules:",
            *(f"  {name}: {', '.join(counts.classes[name])}" for name in counts.doubled),
            "",
        ]
    )


def counts_text(counts: Counts, readers: list[str]) -> str:
    """The counts of a checkout that need no run of it, for ``--sizes``."""
    return "\n".join(
        [
            "",
            "lines of code:",
            *(f"{folder:40} {count:7}" for folder, count in sorted(counts.lines.items())),
            f"{PRODUCT:40} {sum(counts.lines.values()):7}",
            "",
            *(f"{count:5} {name}" for name, count in measured(counts, readers).items()),
        ]
    )

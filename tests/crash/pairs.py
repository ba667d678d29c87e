"""Which cells are run: every request and point of every case under the default; every pair of two dimensions
otherwise.
"""

import random
from collections.abc import Iterator
from itertools import combinations

from tests.crash.cases import Case, cases
from tests.crash.cell import DELAYS, VARIANTS, Cell, at, reference
from tests.crash.killing import READ_POINTS

LATE = ("late before", "late after")
"""A request is under way for seconds, never for days."""
TRIES = 40
"""So many cells are compared before one is taken."""

Pair = tuple[tuple[str, object], tuple[str, object]]


def default_cells(of: list[Case] | None = None) -> list[Cell]:
    """Every request and every point of it, with the default behaviour and no delay."""
    return [
        Cell(case, exchange, point)
        for case in of or cases()
        for exchange in range(len(reference(case).sent))
        for point in reference(case).points(exchange)
    ]


def pairs(cell: Cell) -> Iterator[Pair]:
    """The pairs of values of two dimensions in this cell."""
    values = (
        ("case", cell.case),
        ("exchange", cell.exchange),
        ("point", cell.point),
        ("variant", cell.variant),
        ("delay", cell.delay),
    )
    yield from combinations(values, 2)


def is_possible(cell: Cell) -> bool:
    if cell.delay and cell.point in LATE:
        return False
    return cell.exchange < len(reference(cell.case, cell.variant).sent) and cell.point in reference(
        cell.case, cell.variant
    ).points(cell.exchange)


def paired_cells(defaults: list[Cell]) -> list[Cell]:
    """Cells with other behaviour or a delay, so that each pair of two values that can meet does."""
    rng = random.Random(1)  # noqa: S311  # repeatable on purpose
    others = [at(cell, variant=v, delay=d) for v in VARIANTS for d in DELAYS for cell in defaults]
    seen = {pair for cell in defaults for pair in pairs(cell)}
    left = list(dict.fromkeys(pair for cell in others if is_possible(cell) for pair in pairs(cell)))
    by_pair: dict[Pair, list[Cell]] = {pair: [] for pair in left if pair not in seen}
    for cell in others:
        if is_possible(cell):
            for pair in pairs(cell):
                if pair in by_pair:
                    by_pair[pair].append(cell)
    chosen = []
    for pair, found in by_pair.items():
        if pair in seen:
            continue
        tried = found if len(found) <= TRIES else rng.sample(found, TRIES)
        best = max(tried, key=lambda cell: sum(other not in seen for other in pairs(cell)))
        seen.update(pairs(best))
        chosen.append(best)
    return chosen


def everything(defaults: list[Cell]) -> list[Cell]:
    """Every default cell once more with each behaviour, and with each delay."""
    found = [at(cell, variant=variant) for variant in VARIANTS for cell in defaults]
    found += [at(cell, delay=delay) for delay in DELAYS[1:] for cell in defaults]
    return [cell for cell in found if cell not in set(defaults) and is_possible(cell)]


def sample(of: list[Case], each: int) -> list[Cell]:
    """So many default cells of each case, the same in every run: the latest requests and any points."""
    found = []
    for case in of:
        cells = default_cells([case])
        rng = random.Random(str(case))  # noqa: S311  # repeatable on purpose
        late = [cell for cell in cells if cell.point not in READ_POINTS or cell.exchange > 2]
        pool = late or cells
        found += rng.sample(pool, min(each, len(pool)))
    return found

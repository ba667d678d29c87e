"""Deployments that depart from the document: the emulator with one small change each.

They are written from the document, sentence by sentence, without a look at the checks of
``pulumi-hosting certify``. What the document leaves open, and what is known of live deployments, is no
departure.
"""

import random
from collections.abc import Mapping
from dataclasses import replace

from tests.certify.mutants import conventions, endpoints, orders, resources, rules, services, writes
from tests.certify.mutants.change import Mutant, both

AREAS = (conventions, writes, resources, endpoints, orders, services, rules)

MUTANTS: Mapping[str, Mutant] = {
    one.id: replace(one, area=area.__name__.rpartition(".")[2]) for area in AREAS for one in area.MUTANTS
}
_PAIRS = 60


def pairs(count: int = _PAIRS, seed: int = 21) -> list[tuple[Mutant, Mutant]]:
    """Pairs of mutants of different areas, always the same ones."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    chosen: list[tuple[Mutant, Mutant]] = []
    while len(chosen) < count:
        first, second = dice.sample([*MUTANTS.values()], 2)
        if first.area != second.area:
            chosen.append((first, second))
    return chosen


def together(mutants: tuple[Mutant, ...]) -> Mutant:
    """One deployment that departs in several ways."""
    return Mutant(
        id=" + ".join(one.id for one in mutants),
        what="; ".join(one.what for one in mutants),
        sentences=tuple(sentence for one in mutants for sentence in one.sentences),
        change=both(*(one.change for one in mutants)),
    )

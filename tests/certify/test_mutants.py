"""The table of mutants, and a sample of the proof; ``python -m tests.prove certify`` runs all of it."""

from collections import Counter

from tests.certify.mutants import MUTANTS, pairs
from tests.certify.mutants.change import DOCUMENT


def test_every_mutant_quotes_the_document() -> None:
    text = " ".join(DOCUMENT.split())
    assert [
        (one.id, quoted)
        for one in MUTANTS.values()
        for quoted in one.sentences
        if " ".join(quoted.split()) not in text
    ] == []


def test_every_change_applies() -> None:
    for one in MUTANTS.values():
        with one.change():
            pass


def test_no_two_mutants_have_one_name() -> None:
    from tests.certify.mutants import _AREAS

    assert Counter(one.id for area in _AREAS for one in area.MUTANTS).most_common(1)[0][1] == 1


def test_pairs_are_of_different_areas_and_always_the_same() -> None:
    assert [(a.id, b.id) for a, b in pairs()] == [(a.id, b.id) for a, b in pairs()]
    assert len(pairs()) == 60
    assert all(first.area != second.area for first, second in pairs())

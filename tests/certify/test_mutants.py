"""The table of mutants, and a sample of the proof; ``python -m tests.prove certify`` runs all of it."""

from collections import Counter

import pytest

from tests.certify.judge import Verdict, judge, places
from tests.certify.mutants import AREAS, MUTANTS, pairs

LIMIT, ORDER = "Query `limit`: integer 1..100, default 50.", "Order is newest first."


def test_every_mutant_quotes_the_document() -> None:
    assert all(places(quoted) for one in MUTANTS.values() for quoted in one.sentences)


def test_every_change_applies() -> None:
    for one in MUTANTS.values():
        with one.change():
            pass


def test_no_two_mutants_have_one_name() -> None:
    names = Counter(one.id for area in AREAS for one in area.MUTANTS)
    assert [name for name, times in names.items() if times > 1] == []


def test_pairs_are_of_different_areas_and_always_the_same() -> None:
    assert [(a.id, b.id) for a, b in pairs()] == [(a.id, b.id) for a, b in pairs()]
    assert len(pairs()) == 60
    assert all(first.area != second.area for first, second in pairs())


@pytest.mark.parametrize(
    ("departures", "missed", "wrong"),
    [
        ({}, ("limit-0",), ()),
        ({"a": [LIMIT]}, (), ()),
        ({"a": ["integer 1..100"]}, (), ()),
        ({"a": [ORDER]}, ("limit-0",), ("a",)),
        ({"a": [LIMIT], "b": [ORDER]}, (), ("b",)),
        ({"a": [ORDER, LIMIT]}, (), ()),
    ],
)
def test_a_mutant_is_found_by_a_check_of_its_sentence_alone(
    departures: dict[str, list[str]], missed: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    assert judge([MUTANTS["limit-0"]], departures) == Verdict(missed, wrong)


def test_each_of_a_pair_must_be_found() -> None:
    two = [MUTANTS["limit-0"], MUTANTS["order-old"]]
    assert judge(two, {"a": [LIMIT]}) == Verdict(("order-old",), ())
    assert judge(two, {"a": [LIMIT], "b": [ORDER]}) == Verdict((), ())


def test_a_sentence_that_the_document_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="does not have: Money is a float"):
        places("Money is a float.")

"""A sample of the proof of certify; ``python -m tests.prove certify`` runs all of it."""

import pytest

from tests.certify.cell import of_choices, of_mutants
from tests.certify.mutants import MUTANTS, pairs

pytestmark = pytest.mark.slow
EVERY = 70
"""Of the mutants, so many are left out between two."""
SAMPLE = [*MUTANTS][::EVERY]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_departure_is_named_and_nothing_else(name: str) -> None:
    outcome = of_mutants((name,))
    assert (outcome.missed, outcome.wrong, outcome.stopped) == ((), (), ""), (
        f"python -m tests.certify --only {name}"
    )


def test_two_departures_are_both_named() -> None:
    first, second = pairs(1)[0]
    assert of_mutants((first.id, second.id)).missed == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_deployment_that_chooses_otherwise_is_not_blamed(seed: int) -> None:
    outcome = of_choices(seed)
    assert outcome.wrong == (), outcome

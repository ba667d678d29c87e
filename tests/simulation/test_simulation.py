"""A sample of the simulations; ``make prove`` runs a thousand."""

import pytest

from tests.mutants.table import MUTANTS
from tests.simulation.scenario import run

SAMPLE = 24
"""So many seeds are run here."""
PARTS = 6
DAILY = 3
"""``make test`` runs so many parts."""


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.slow] * (part >= DAILY)) for part in range(PARTS)]
)
def test_no_promise_is_broken_under_random_faults(part: int) -> None:
    for seed in range(part, SAMPLE, PARTS):
        result = run(seed)
        assert result.problems == [], f"python -m tests.simulation --first {seed} --seeds 1 --log"


def test_a_seed_repeats_the_same_run() -> None:
    assert run(9).log == run(9).log


@pytest.mark.parametrize(
    ("step", "seed"),
    [("an accepted server must live", 80), ("addresses of unknown origin stop a purchase", 48)],
)
def test_a_missing_safety_step_is_noticed(step: str, seed: int) -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.step == step)
    assert run(seed).problems == []
    with mutant.switched_off():
        assert run(seed).problems != []

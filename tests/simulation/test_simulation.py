"""A sample of the simulations; ``make simulate`` runs thousands."""

import pytest

from tests.simulation.mutants import switched_off
from tests.simulation.scenario import run

SAMPLE = 24
"""So many seeds are run here."""
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_under_random_faults(part: int) -> None:
    for seed in range(part, SAMPLE, PARTS):
        verdict = run(seed)
        assert verdict.problems == [], f"python -m tests.simulation --first {seed} --seeds 1 --log"


def test_a_seed_repeats_the_same_run() -> None:
    assert run(9).log == run(9).log


@pytest.mark.parametrize(
    ("missing", "seed"),
    [("a dead server is believed", 80), ("addresses of unknown origin are not looked for", 11)],
)
def test_a_missing_safety_step_is_noticed(missing: str, seed: int) -> None:
    assert run(seed).problems == []
    with switched_off(missing):
        assert run(seed).problems != []

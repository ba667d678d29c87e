"""Every safety step has a test that fails without it."""

import subprocess
import sys

import pytest

from tests.mutants.table import MUTANTS, Mutant
from tests.support.named_tests import ROOT, is_there


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.step)
def test_the_named_test_is_there(mutant: Mutant) -> None:
    assert is_there(mutant.caught_by), mutant.caught_by


@pytest.mark.slow
def test_every_missing_step_is_noticed() -> None:
    run = subprocess.run([sys.executable, "-m", "tests.mutants"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("\ncaught:") + run.stdout.startswith("caught:") == len(MUTANTS)

"""Every safety step has a test that fails without it."""

import os
import subprocess
import sys

import pytest

from tests.mutants.automatic import Survivor
from tests.mutants.table import MUTANTS, Mutant
from tests.support.named_tests import ROOT, is_there


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.step)
def test_the_named_test_is_there(mutant: Mutant) -> None:
    assert is_there(mutant.caught_by), mutant.caught_by


@pytest.mark.parametrize(
    ("before", "after", "is_wording"),
    [
        ('raise X("a b", "c")', 'raise X("XXa bXX", "c")', True),
        ('raise X("a b", "c")', 'raise X("A B", "c")', True),
        ('raise X("a b", "c")', 'raise X("a b", "C")', False),
        ('raise X("a b", "c")', 'raise X(None, "c")', False),
        ('raise X("a b", "c")', 'raise X("a b")', False),
        ('raise X("a b") or y', 'raise X("A B") and y', False),
        ("f\"a {x('')} b\"", "f\"a {x('XXXX')} b\"", False),
    ],
)
def test_a_mutant_of_letters_only_is_wording(before: str, after: str, is_wording: bool) -> None:
    assert Survivor("", before, after).is_wording() is is_wording


@pytest.mark.slow
def test_every_missing_step_is_noticed() -> None:
    # That each test passes with its step is what the run of all tests shows.
    command = [sys.executable, "-m", "tests.mutants", "--without"]
    # Not counted as covered: that costs four times as much.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environ)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("\ncaught:") + run.stdout.startswith("caught:") == len(MUTANTS)

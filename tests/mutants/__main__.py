"""Switch every safety step off and run the test that must notice: ``python -m tests.mutants``. Each test runs
in a process of its own, once with the step and once without; with ``--without`` only without, where a run of
all tests shows the other half.
"""

import contextlib
import importlib
import io
import os
import sys

import pytest

from tests.mutants.table import MUTANTS, Mutant

PASSED, FAILED = 0, 1
BEFORE = ("hypothesis.strategies", "pulumi.dynamic", "pulumi_hosting.emulator", "pulumi_hosting.offline")
"""What tests import and no mutant changes: imported once, not in each process."""
OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


def result(mutant: Mutant, *, switched_off: bool) -> int:
    """How the named test ends, as pytest's exit code."""
    if (child := os.fork()) == 0:
        code = 70
        try:
            step = mutant.switched_off() if switched_off else contextlib.nullcontext()
            with contextlib.redirect_stdout(io.StringIO()), step:
                code = int(pytest.main([mutant.caught_by, *OPTIONS]))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    """Exit 1 where a test does not pass with its step, or does not fail without it."""
    only, wrong = [text for text in sys.argv[1:] if text != "--without"], 0
    ways = (True,) if "--without" in sys.argv else (False, True)
    for name in BEFORE:
        importlib.import_module(name)
    chosen = [mutant for mutant in MUTANTS if not only or any(part in mutant.step for part in only)]
    for mutant in chosen:
        results = [result(mutant, switched_off=way) for way in ways]
        is_caught = results == [PASSED, FAILED][-len(ways) :]
        wrong += not is_caught
        print(f"{'caught' if is_caught else f'NOT CAUGHT {results}'}: {mutant.step}: {mutant.caught_by}")
    print(f"{len(chosen)} safety steps, {wrong} not caught")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

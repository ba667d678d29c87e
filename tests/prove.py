"""Runs the long proofs, one after the other, and says what each took.

``python -m tests.prove`` runs all, ``python -m tests.prove simulation --seeds 10000`` one, with its options.
A proof that fails, or takes longer than its limit, does not stop the others. Its last lines are its figures,
which stand in ``docs/crashes.md`` with date and commit. A sample of each is in ``make test-all``.
"""

import argparse
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import NamedTuple


class Proof(NamedTuple):
    """``module`` is run as ``python -m``, for ``minutes`` at most; ``sample``: tests that run part of it."""

    module: str
    minutes: int
    what: str
    sample: str


PROOFS = {
    "answers": Proof(
        "tests.client.fuzz",
        20,
        "every answer of the API, damaged at every place",
        "tests/client/test_response_fuzz.py",
    ),
    "exchanges": Proof(
        "tests.client.transport_faults",
        20,
        "every answer with every fault of connection, framing, encoding, status and proxy",
        "tests/client/test_transport_faults.py",
    ),
    "openapi": Proof(
        "tests.contract.schema_cases",
        20,
        "every request that the OpenAPI document allows, and many that it does not, in both dialects",
        "tests/contract/test_schemathesis.py",
    ),
    "between-runs": Proof(
        "tests.between_runs",
        30,
        "what the account does between two runs",
        "tests/between_runs/test_between_runs.py",
    ),
    "certify": Proof(
        "tests.certify",
        60,
        "deployments that depart from the API document, each named by certify, and others that do not",
        "tests/certify/test_proof.py",
    ),
    "crash": Proof(
        "tests.crash",
        90,
        "a kill at every request, in one process and of real processes",
        "tests/crash/test_kill_matrix.py",
    ),
    "year": Proof(
        "tests.a_year",
        10,
        "a year of 50 servers and 20 domains, kept by the nightly job and merges alone",
        "tests/test_a_year.py",
    ),
    "teams": Proof(
        "tests.teams",
        20,
        "machines that share a store: 1,000 orders at once, kills, stops, a lost store, a budget, relays",
        "tests/teams/test_teams.py",
    ),
    "simulation": Proof(
        "tests.simulation",
        60,
        "random crashes, faults and waits on one account",
        "tests/simulation/test_simulation.py",
    ),
    "histories": Proof(
        "tests.simulation.histories",
        30,
        "edits, commands, faults and waits in any order, shortened by hypothesis",
        "tests/simulation/test_stateful.py",
    ),
}


def main(arguments: list[str]) -> int:
    """Exit 1 if a proof failed."""
    listed = "\n".join(f"  {name:13} {proof.what}" for name, proof in PROOFS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.prove",
        description=f"Run the long proofs:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("proof", nargs="?", choices=[*PROOFS], metavar="PROOF", help="this one alone")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="OPTION", help="given to the proof")
    given = parser.parse_args(arguments)
    chosen = [given.proof] if given.proof else [*PROOFS]
    commit = _output("git", "rev-parse", "--short", "HEAD")
    dirty = " with changes" if _output("git", "--no-optional-locks", "status", "--porcelain") else ""
    outcomes = [f"{name}: {prove(name, given.options)}" for name in chosen]
    print(f"\nproofs of {datetime.now(UTC):%Y-%m-%d} at {commit}{dirty}:", *outcomes, sep="\n  ")
    return 1 if any("FAILED" in outcome for outcome in outcomes) else 0


def prove(name: str, options: list[str]) -> str:
    """Run a proof; how it ended."""
    proof = PROOFS[name]
    print(f"== {name}: {proof.what}", flush=True)
    began, used = time.monotonic(), _cpu_seconds()
    try:
        status = subprocess.run(
            [sys.executable, "-m", proof.module, *options], check=False, timeout=proof.minutes * 60
        ).returncode
        ended = f"FAILED with exit code {status}" if status else "passed"
    except subprocess.TimeoutExpired:
        ended = f"FAILED: more than {proof.minutes} minutes"
    return f"{ended} after {time.monotonic() - began:.0f} s, {_cpu_seconds() - used:.0f} s of CPU time"


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``make prove`` runs every long proof, goes on after one that fails, and gives options to the one named."""

import subprocess
from pathlib import Path

import pytest

from tests import prove

ROOT = Path(__file__).parent.parent


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three proofs in place of the long ones: one passes and prints its options, one fails, one hangs."""
    for name, text in {
        "passes": "import sys; print('given', sys.argv[1:])",
        "fails": "raise SystemExit(3)",
        "hangs": "import time; time.sleep(60)",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    proofs = {
        name: prove.Proof(name, minutes, "it", "")
        for name, minutes in {"hangs": 0, "fails": 1, "passes": 1}.items()
    }
    monkeypatch.setattr(prove, "PROOFS", proofs)


@pytest.mark.usefixtures("modules")
def test_a_proof_that_fails_or_hangs_does_not_stop_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    assert prove.main([]) == 1
    hangs, fails, passes = capfd.readouterr().out.splitlines()[-3:]
    assert "hangs: FAILED: more than 0 minutes after 0 s" in hangs
    assert "fails: FAILED with exit code 3 after " in fails
    assert "passes: passed after " in passes


@pytest.mark.usefixtures("modules")
def test_one_proof_is_given_its_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert prove.main(["passes", "--seeds", "7"]) == 0
    shown = capfd.readouterr().out
    assert "given ['--seeds', '7']" in shown
    assert "fails" not in shown


@pytest.mark.parametrize("name", prove.PROOFS)
def test_each_proof_exists_and_has_a_sample(name: str) -> None:
    proof = prove.PROOFS[name]
    listed = subprocess.run(
        ["git", "ls-files", proof.sample, "tests"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert proof.sample in listed
    module = proof.module.replace(".", "/")
    assert {f"{module}.py", f"{module}/__main__.py"} & {*listed}

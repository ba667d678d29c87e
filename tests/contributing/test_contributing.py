"""What CONTRIBUTING.md promises: a new operation costs at most 5 files edited by hand, a new resource at most
8.

Two patches, kept beside this file, add one of each. What ``make generate`` writes is not in them.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
CONTRACT_TESTS = (
    "tests/test_descriptions.py",
    "tests/client/test_methods.py",
    "tests/emulator/test_every_operation.py",
    "tests/emulator/test_handlers.py",
    "tests/contract/test_operations.py",
    "tests/provider/test_lookups.py",
    "tests/provider/test_schema.py",
    "tests/ansible/test_specs.py",
)
SAMPLES = {"operation": 5, "resource": 8}
"""The patches, and how many files each may touch."""


def patch(sample: str) -> Path:
    return Path(__file__).parent / f"{sample}.patch"


def edited(sample: str) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.+)$", patch(sample).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("sample", "most"), SAMPLES.items())
def test_few_files_are_edited_by_hand(sample: str, most: int) -> None:
    assert len(edited(sample)) <= most
    subprocess.run(["git", "apply", "--check", "-C1", str(patch(sample))], cwd=ROOT, check=True)


def test_the_contract_tests_are_there() -> None:
    assert [name for name in CONTRACT_TESTS if not (ROOT / name).is_file()] == []


def test_the_guide_names_the_contract_tests() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in CONTRACT_TESTS if name not in guide] == []


def test_the_guide_names_the_files() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for sample in SAMPLES:
        for name in edited(sample):
            folder = str(Path(name).parent)
            assert name in guide or folder in guide, name


def test_the_guide_names_the_keys_of_the_module_files() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    keys = {
        key
        for path in (ROOT / "generate" / "modules").glob("*.yml")
        for module in yaml.safe_load(path.read_text(encoding="utf-8")).values()
        for key in module
    }
    assert sorted(key for key in keys if f"`{key}`" not in guide) == []


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_generator_and_the_contract_tests_accept_them(sample: str, tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    subprocess.run(["git", "apply", "-C1", str(patch(sample))], cwd=tmp_path, check=True)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    written = [name for name in edited(sample) if name.startswith("tests/")]
    for command in (
        ["generate"],
        ["generate", "--check"],
        ["pytest", "-q", "-p", "no:cacheprovider", *CONTRACT_TESTS, *written],
    ):
        ran = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]

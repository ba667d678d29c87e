"""What CONTRIBUTING.md promises: a new operation costs at most 5 files edited by hand, a new resource at most
8, a new field that changes in place at most 5.

Three patches, kept beside this file, add one of each. What ``make generate`` writes is not in them.
"""

import contextlib
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
EVERY_INPUT = "tests/resources/test_every_input.py"
SAMPLES = {"operation": 5, "resource": 8, "field": 5}
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
    applied(patch(sample).read_text(encoding="utf-8"), tmp_path)
    written = [name for name in edited(sample) if name.startswith("tests/")]
    for command in (
        ["generate"],
        ["generate", "--check"],
        ["pytest", "-q", "-p", "no:cacheprovider", *CONTRACT_TESTS, EVERY_INPUT, *written],
    ):
        ran = run(tmp_path, *command)
        assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]


def applied(text: str, tree: Path) -> None:
    """The project in ``tree``, with a patch applied, and what is compiled of it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for folder in {str(Path(name).parent) for name in listed.split("\0") if name.endswith(".py")}:
        with contextlib.suppress(FileNotFoundError):
            shutil.copytree(ROOT / folder / "__pycache__", tree / folder / "__pycache__")
    subprocess.run(["git", "apply", "-C1", "--recount"], cwd=tree, check=True, input=text, text=True)


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    # What the changed tree covers says nothing of this one, and would cost half as much again.
    given = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environ = {**given, "PYTHONPATH": str(tree), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=tree, env=environ, capture_output=True, text=True, check=False
    )


def parts() -> dict[str, str]:
    """The patch of a field without each of its parts, by what is missing."""
    files = re.split(r"(?m)^(?=diff --git )", patch("field").read_text(encoding="utf-8"))[1:]
    split = [re.split(r"(?m)^(?=@@ )", text) for text in files]
    found = {}
    for number, (head, *hunks) in enumerate(split):
        for place, hunk in enumerate(hunks):
            left = [*hunks[:place], *hunks[place + 1 :]]
            rest = [*split[:number], *([[head, *left]] if left else []), *split[number + 1 :]]
            missing = re.findall(r"^@@ .* @@ (?:class )?(\w+)", hunk)[0]
            found[missing] = "".join("".join(file) for file in rest)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("missing", parts())
def test_no_part_of_a_field_can_be_forgotten(missing: str, tmp_path: Path) -> None:
    """Without the model of the answer or of the change, the input, the output, or the emulator's column a
    test fails, and what it prints names the field.
    """
    applied(parts()[missing], tmp_path)
    generated = run(tmp_path, "generate")
    ran = run(tmp_path, "pytest", "-qx", "-p", "no:cacheprovider", EVERY_INPUT)
    assert ran.returncode != 0, missing
    assert "description" in generated.stderr + ran.stdout

"""The public Python API is what tests/public_api.txt lists, and the documentation uses nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

from pulumi_hosting.api.operations import OPERATIONS
from tests import public_api

ROOT = Path(__file__).parent.parent
IMPORT = re.compile(r"\bfrom (pulumi_hosting[\w.]*) import (\([^)]*\)|[\w, ]+)")


def test_a_change_of_the_public_api_is_a_visible_diff() -> None:
    listed = public_api.LIST.read_text(encoding="utf-8").splitlines()
    found = public_api.text().splitlines()
    changed = [f"- {line}" for line in listed if line not in found] + [
        f"+ {line}" for line in found if line not in listed
    ]
    assert changed == [], (
        "the public API changed: run `python -m tests.public_api`, and name the change in the changelog"
    )
    assert listed == found


def test_every_operation_has_a_public_method() -> None:
    listed = public_api.LIST.read_text(encoding="utf-8").splitlines()
    names = {re.split(r"[(:]", line.removeprefix("pulumi_hosting."))[0] for line in listed}
    assert {f"Client.{row.call}" for row in OPERATIONS} <= names


def documentation() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "pulumi_hosting/emulator/README.md")
    yield from ROOT.glob("docs/**/*.md")
    yield from ROOT.glob("examples/**/*.py")
    yield from ROOT.glob("ansible_collections/hosting/cloud/**/*.md")


def test_what_docs_and_examples_import_is_public() -> None:
    public = public_api.names()
    found = [
        (path.relative_to(ROOT).as_posix(), module, name.split(" as ")[0].strip())
        for path in documentation()
        for module, names in IMPORT.findall(path.read_text(encoding="utf-8"))
        for name in names.strip("()").split(",")
        if name.strip()
    ]
    assert len(found) > 20  # the pattern finds imports
    assert [
        line
        for line in found
        if line[2] not in public.get(line[1], ()) and f"{line[1]}.{line[2]}" not in public
    ] == []

"""How large the parts are: lines per folder, long files, functions with many branches."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.measures import code

LONG = 400
COMPLEX = 15
SUFFIXES = (".py", ".j2")


def lines_by_folder(root: Path) -> list[tuple[str, int, int]]:
    """Folder, hand-written lines, generated lines. Parts of the package and of the collection are folders of
    their own.
    """
    written, generated = Counter[str](), Counter[str]()
    for path, lines, is_generated in _files(root):
        (generated if is_generated else written)[_folder(path)] += lines
    return [(folder, written[folder], generated[folder]) for folder in sorted({*written, *generated})]


def long_files(root: Path) -> list[tuple[str, int]]:
    """Hand-written files of more than 400 lines, the longest first."""
    found = [
        (str(path), lines) for path, lines, is_generated in _files(root) if lines > LONG and not is_generated
    ]
    return sorted(found, key=lambda file: -file[1])


def complex_functions(root: Path) -> list[str]:
    """Functions of a complexity over 15, as ruff counts it, exceptions included: ``file:line name
    (complexity)``.
    """
    rule = [
        "--isolated",
        "--ignore-noqa",
        "--select",
        "C901",
        "--config",
        f"lint.mccabe.max-complexity = {COMPLEX}",
    ]
    run = subprocess.run(
        [str(Path(sys.executable).parent / "ruff"), "check", *rule, "--output-format", "json", str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(
        f"{Path(found['filename']).relative_to(root)}:{found['location']['row']} {found['message']}"
        for found in json.loads(run.stdout)
    )


def _files(root: Path) -> Iterator[tuple[Path, int, bool]]:
    """The tracked files: path, lines, whether generated."""
    for path in code.tracked(root):
        if path.suffix in SUFFIXES:
            text = (root / path).read_text(encoding="utf-8")
            yield path, len(text.splitlines()), path.suffix == ".py" and code.is_generated(text)


def _folder(path: Path) -> str:
    parts = path.parts[:-1]
    if parts[:1] == ("pulumi_hosting",):
        return "/".join(parts[:2])
    if parts[:1] == ("ansible_collections",):
        return "collection/" + "/".join(parts[3:5])
    return parts[0] if parts else "."

"""Files, folders, Python names and messages that the documentation mentions exist."""

import ast
import errno
import inspect
import os
import re
import subprocess
import textwrap
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

import pulumi_hosting
from tests.support.texts import texts

ROOT = Path(__file__).parent.parent
PAGES = [
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "examples"),
    *("pulumi_hosting/emulator/README.md", "ansible_collections/hosting/cloud/README.md"),
]
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:py|pyi|j2|toml|lock)|(?:[\w.-]+/)+[\w-]+\.(?:yml|txt|md|patch)")
FOLDER = re.compile(r"(?:[\w.-]+/)+")
PYTHON = re.compile(r"\bpulumi_hosting(?:\.\w+)+")
OF_USERS = re.compile(r"(?:sdks|tests/integration)/.*|.*\.(?:password|example)|Pulumi\.\w+|__main__\.py")
"""What users have, or make, in a folder of their own."""


def pages() -> list[Path]:
    named = [ROOT / name for name in PAGES]
    found = [path for name in named for path in ([name] if name.is_file() else sorted(name.rglob("*.md")))]
    return [
        path for path in found if "`make generate`" not in path.read_text(encoding="utf-8").split("\n")[0]
    ]


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [f"/{name}" for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def test_no_file_holds_the_marks_of_a_merge_that_was_not_finished() -> None:
    marks = ["git", "grep", "-nE", "^(<{7}|>{7}) "]
    assert not subprocess.run(marks, cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_folders_that_a_page_names_exist(page: Path) -> None:
    files = tracked()
    if page.parent == ROOT / "pulumi_hosting" / "emulator":  # names the files beside it
        files = [
            name for name in files if name.startswith("/pulumi_hosting/emulator/") or name.count("/") == 1
        ]
    named = [text for text in CODE.findall(page.read_text(encoding="utf-8")) if not OF_USERS.fullmatch(text)]
    missing = [
        text
        for text in named
        if (FILE.fullmatch(text) and not any(file.endswith(f"/{text}") for file in files))
        or (FOLDER.fullmatch(text) and not any(f"/{text}" in file for file in files))
    ]
    assert missing == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_names_that_a_page_mentions_exist(page: Path) -> None:
    missing = []
    for name in PYTHON.findall(page.read_text(encoding="utf-8")):
        try:
            import_module(name)
        except ImportError:
            module, _, attribute = name.rpartition(".")
            is_pattern = attribute.endswith("_")  # `pulumi_hosting.get_…`
            if not is_pattern and not hasattr(import_module(module), attribute):
                missing.append(name)
    assert missing == []


BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_arguments_that_a_page_gives_exist(page: Path) -> None:
    """Of the classes and lookups of ``hosting``; those of YAML are in `tests.ansible.test_docs`."""
    unknown = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("hosting."):
                name = ast.unparse(node.func).removeprefix("hosting.")
                called = attrgetter(name)(pulumi_hosting)
                given = {keyword.arg for keyword in node.keywords}
                unknown += [f"{name}: {one}" for one in given - {*inspect.signature(called).parameters}]
    assert unknown == []


TASKS = ("order", "change", "cancel", "paid-time", "move", "adopt", "webhooks")


@pytest.mark.parametrize("task", [*TASKS, "unit-testing", "gitops", "several-stacks"])
def test_a_task_says_what_it_costs_and_what_can_go_wrong_in_both_frontends(task: str) -> None:
    text = (ROOT / "docs" / f"{task}.md").read_text(encoding="utf-8")
    assert "\n## What it costs\n" in text
    assert "\n## What can go wrong\n" in text
    assert task not in TASKS or ("```python\n" in text and re.search(r"```yaml\n\s*- hosting\.cloud\.", text))


TABLE_OF_MESSAGES = re.compile(r"^\| (?:It stops with|Message) \|.*\n\|.*\n((?:\|.*\n)+)", re.MULTILINE)
VARYING = re.compile(r"…|\bN\b|[();:,]| and |'[^']*'")
"""Between the parts of a message that are the same each time."""


def test_messages_that_a_page_quotes_exist() -> None:
    quoted = {
        part.strip()
        for page in pages()
        for rows in TABLE_OF_MESSAGES.findall(page.read_text(encoding="utf-8"))
        for row in rows.splitlines()
        for message in CODE.findall(row.split(" | ")[0])
        for part in VARYING.split(message)
        if " " in part.strip()
    }
    assert len(quoted) > 15
    known = "\n".join([*(text for _, text in texts(ROOT / "pulumi_hosting")), os.strerror(errno.EROFS)])
    assert sorted(part for part in quoted if part not in known) == []

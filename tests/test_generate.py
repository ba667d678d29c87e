"""Generated files: up to date, marked as such on their first lines, and no others."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import pulumi_hosting
from generate import __main__ as generate
from generate import unasync
from generate.render import ROOT


@pytest.fixture(autouse=True, scope="module")
def _once() -> Iterator[None]:
    """Each generator runs once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        for generator in generate.GENERATORS:
            patch.setattr(generator, "files", cache(generator.files))
        yield


@pytest.mark.slow  # make lint checks it too
def test_the_generated_files_are_up_to_date() -> None:
    assert list(generate.stale()) == [], "Next: make generate"


@pytest.mark.slow
def test_a_changed_a_missing_and_an_unknown_file_are_noticed(tmp_path: Path) -> None:
    for name, text in generate.stale(tmp_path).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text or "", encoding="utf-8")
    assert generate.stale(tmp_path) == {}
    pages = tmp_path / "docs" / "reference"
    (pages / "errors.md").write_text("something else\n", encoding="utf-8")
    (pages / "more.md").write_text("a page that no generator writes\n", encoding="utf-8")
    (pages / "models.md").unlink()
    assert sorted(generate.stale(tmp_path)) == [
        f"docs/reference/{name}.md" for name in ("errors", "models", "more")
    ]
    assert generate.stale(tmp_path)["docs/reference/more.md"] is None


def test_a_check_names_what_is_out_of_date(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "stale", lambda: {"docs/reference/errors.md": "new"})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/reference/errors.md is out of date\nNext: make generate\n"
    assert (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8") != "new"


def test_a_text_that_the_synchronous_client_has_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        unasync, "TEXTS", {"client.py": {"for server in client.servers": "", "not there": ""}}
    )
    with pytest.raises(ValueError, match=r"client\.py has no 'not there'\. Next: "):
        unasync.texts()


def test_generated_files_say_so_in_their_first_lines(tmp_path: Path) -> None:
    for name, text in generate.stale(tmp_path).items():
        # Not pages by hand with a generated table, and not what has no room for a comment.
        if "<!-- make generate: " not in (text or "") and not name.endswith(("/aliases", "/meta/main.yml")):
            assert "`make generate`" in "".join((text or "").splitlines(keepends=True)[:4]), name


CERTIFIED = ("document.json", "reads.py")
"""Files that name the version of the API."""


def test_the_version_is_written_once(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == metadata.version("pulumi-hosting") == pulumi_hosting.__version__
    by_hand = re.compile(rf"(?<![\d.]){re.escape(project['version'])}(?![\d.])")
    generated = set(generate.stale(tmp_path))
    of_the_api = {"pulumi_hosting/api/openapi.py", *(f"pulumi_hosting/certify/{name}" for name in CERTIFIED)}
    suffixes = (".py", ".toml", ".yml", ".yaml", ".json", ".cfg")
    for name in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines():
        others = name in generated | of_the_api or name.startswith("tests/") or "package-lock" in name
        if not name.endswith(suffixes) or others:
            continue
        lines = [
            line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if by_hand.search(line)
        ]
        # When a module or plugin was added does not change with the version.
        assert [line for line in lines if "version_added" not in line] == (
            [f'version = "{project["version"]}"'] if name == "pyproject.toml" else []
        ), name

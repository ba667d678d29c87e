"""The collection's documentation: what antsibull says of it, the pages it becomes, its changelog."""

import re
import subprocess
import textwrap
from pathlib import Path

import pytest
import yaml

from tests.ansible.conftest import BIN, COLLECTION, ROOT
from tests.ansible.test_sanity import CORES
from tests.ansible.test_specs import MODULES

GUIDES = sorted(path.stem for path in (COLLECTION / "docs" / "docsite" / "rst").glob("*.rst"))
ENVIRON = {"PATH": f"{BIN}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "ANSIBLE_COLLECTIONS_PATH": str(ROOT)}


def run(home: Path, *command: str, cwd: Path = COLLECTION) -> str:
    """What a program prints. It must end well."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**ENVIRON, "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def code_blocks(guide: str, language: str = "yaml") -> list[str]:
    """The blocks of a guide that are in this language, without their indentation."""
    blocks: list[list[str]] = []
    open_block: list[str] | None = None
    for line in (
        (COLLECTION / "docs" / "docsite" / "rst" / f"{guide}.rst").read_text(encoding="utf-8").splitlines()
    ):
        if line == f".. code-block:: {language}":
            blocks.append(open_block := [])
        elif line and not line.startswith("   "):
            open_block = None
        elif open_block is not None:
            open_block.append(line[3:])
    return ["\n".join(lines).strip() + "\n" for lines in blocks]


@pytest.mark.slow
def test_antsibull_finds_no_error(tmp_path: Path) -> None:
    options = (
        "--plugin-docs",
        "--validate-collection-refs=self",
        "--check-extra-docs-refs",
        "--skip-rstcheck",
    )  # sphinx reads the pages below
    assert run(tmp_path, "antsibull-docs", "lint-collection-docs", *options, ".") == ""


@pytest.mark.slow
def test_the_pages_are_built(tmp_path: Path) -> None:
    run(tmp_path, "bash", "tools/collection_docs.sh", str(tmp_path / "built"), str(BIN), cwd=ROOT)
    html = tmp_path / "built" / "html"
    plugins = [f"{name}_module" for name in MODULES] + ["drift_callback", "servers_inventory"]
    assert [name for name in plugins if not (html / f"{name}.html").exists()] == []
    front = (html / "index.html").read_text(encoding="utf-8")
    assert [guide for guide in GUIDES if f'href="docsite/{guide}.html"' not in front] == []


def test_every_guide_is_listed_and_shows_yaml() -> None:
    listed = yaml.safe_load((COLLECTION / "docs" / "docsite" / "extra-docs.yml").read_text())["sections"][0][
        "toctree"
    ]
    assert sorted(listed) == GUIDES
    for guide in GUIDES:
        for block in code_blocks(guide):
            assert yaml.safe_load(block), guide


PAGES = {
    page.stem: [
        textwrap.dedent(block)
        for block in re.findall(r"^ *```yaml\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.M | re.S)
    ]
    for page in sorted((ROOT / "docs").glob("*.md"))
}


@pytest.mark.parametrize("guide", [*GUIDES, *(page for page, blocks in PAGES.items() if blocks)])
def test_the_options_in_a_guide_exist(guide: str) -> None:
    from tests.ansible.test_specs import module

    blocks = PAGES[guide] if guide in PAGES else code_blocks(guide)
    tasks = [task for block in blocks for task in _mappings(yaml.safe_load(block))]
    for task in tasks:
        for name, options in task.items():
            short = str(name).removeprefix("hosting.cloud.")
            if short in MODULES and name != short and options:
                assert set(options) <= set(module(short).MODULE.argument_spec), (guide, name)


def _mappings(value: object) -> list[dict[object, dict[str, object]]]:
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _mappings(item))]
    if isinstance(value, list):
        return [found for item in value for found in _mappings(item)]
    return []


def test_the_readme_names_every_module_and_guide() -> None:
    readme = (COLLECTION / "README.md").read_text(encoding="utf-8")
    assert [name for name in MODULES if f"`{name}`" not in readme] == []
    assert [name for name in ("servers", "drift", "webhook") if f"`hosting.cloud.{name}`" not in readme] == []
    assert [guide for guide in GUIDES if f"(docs/docsite/rst/{guide}.rst)" not in readme] == []


def test_the_readme_has_what_a_community_package_asks_for() -> None:
    readme = (COLLECTION / "README.md").read_text(encoding="utf-8")
    cores = [*CORES]
    for page in (readme, (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")):
        assert re.findall(r"2\.\d\d", page) == cores
    runtime = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    assert runtime["requires_ansible"] == f">={cores[0]}.0"
    sections = ("Code of conduct", "Requirements", "Tests", "Support", "Releases", "Licence")
    assert [name for name in sections if f"\n## {name}\n" not in readme] == []
    links = re.findall(r"\]\((?!https:)([^)#]+)\)", readme)
    assert {"CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "CHANGELOG.rst"} < set(links)
    assert [link for link in links if not (COLLECTION / link).is_file()] == []


@pytest.mark.slow
def test_the_changelog_is_complete(tmp_path: Path) -> None:
    assert run(tmp_path, "antsibull-changelog", "lint") == ""
    assert run(tmp_path, "antsibull-changelog", "lint-changelog-yaml", "changelogs/changelog.yaml") == ""
    released = yaml.safe_load((COLLECTION / "changelogs" / "changelog.yaml").read_text())["releases"].values()
    named = {
        (kind, entry["name"])
        for release in released
        for kind, entries in release.get("plugins", {}).items()
        for entry in entries
    }
    assert named == {("inventory", "servers"), ("callback", "drift")}
    (source,) = (
        path.stem for path in (COLLECTION / "extensions" / "eda" / "plugins" / "event_source").glob("*.py")
    )
    written = (COLLECTION / "CHANGELOG.rst").read_text()
    assert all(f"hosting.cloud.{name}" in written for name in (*MODULES, "servers", "drift", source))

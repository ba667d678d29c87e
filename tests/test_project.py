"""Files for those who maintain the project: CI definitions, metadata, templates."""

import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = {
    name.rpartition(" ")[2]
    for name in PROJECT["classifiers"]
    if name.startswith("Programming Language :: Python :: 3.")
}


def test_both_ci_definitions_run_ci_run_and_every_declared_python() -> None:
    github = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    assert {"run": ".ci/run"} in github["ci"]["steps"]
    assert gitlab["ci"]["script"] == [".ci/run"]
    assert {"run": "make test"} in github["python"]["steps"]
    assert gitlab["python"]["script"] == ["make test"]
    (main,) = {"3.11"} & DECLARED
    assert {main, *github["python"]["strategy"]["matrix"]["python"]} == DECLARED
    assert {main, *gitlab["python"]["parallel"]["matrix"][0]["PYTHON_VERSION"]} == DECLARED
    assert gitlab["default"]["image"].endswith(f":{main}")


def test_ci_run_is_executable() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--stage", ".ci/run"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert listed.stdout.startswith("100755 ")


def test_project_urls_are_on_a_host_for_documentation() -> None:
    galaxy = yaml.safe_load(
        (ROOT / "ansible_collections" / "hosting" / "cloud" / "galaxy.yml").read_text(encoding="utf-8")
    )
    urls = [*PROJECT["urls"].values(), galaxy["repository"], galaxy["issues"]]
    assert [url for url in urls if not url.startswith("https://pulumi-hosting.example/")] == []


def test_hooks_are_local() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in config["repos"][0]["hooks"]:
        assert f"\n{hook['entry'].split()[-1]}:" in makefile

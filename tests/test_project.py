"""Files for those who maintain the project: CI definitions, metadata, templates."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible.test_sanity import CORES
from tests.support.shards import shard

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
    shards = github["ci"]["strategy"]["matrix"]["shard"]
    assert shards == [*range(1, len(shards) + 1)]
    assert {"run": f".ci/run ${{{{ matrix.shard }}}}/{len(shards)}"} in github["ci"]["steps"]
    assert gitlab["ci"]["script"] == [".ci/run $CI_NODE_INDEX/$CI_NODE_TOTAL"]
    assert {"run": "make coverage"} in github["coverage"]["steps"]
    assert gitlab["coverage"]["script"] == ["make coverage"]
    assert {"run": "make test"} in github["python"]["steps"]
    assert gitlab["python"]["script"] == ["make test"]
    (main,) = {"3.11"} & DECLARED
    assert {main, *github["python"]["strategy"]["matrix"]["python"]} == DECLARED
    assert {main, *gitlab["python"]["parallel"]["matrix"][0]["PYTHON_VERSION"]} == DECLARED
    assert gitlab["default"]["image"].endswith(f":{main}")


def test_every_supported_ansible_core_is_tested_each_week() -> None:
    ci = workflow("ci.yml")
    assert ci[True]["schedule"] == [{"cron": "23 3 * * 1"}]
    steps = ci["jobs"]["cores"]["steps"]
    assert {"run": "make test-matrix"} in steps
    pythons = steps[1]["with"]["python-version"].split()
    assert [core for core, runs_with in CORES.items() if not {*runs_with} & {*pythons}] == []


def test_both_ci_definitions_build_the_container() -> None:
    github = workflow("ci.yml")["jobs"]["container"]["steps"]
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text(encoding="utf-8"))["container"]["script"]
    for commands in ([step.get("run", "") for step in github], gitlab):
        assert sum(" --file Containerfile " in command for command in commands) == 1


@pytest.mark.slow
def test_each_test_is_in_one_part_of_a_sharded_run() -> None:
    def collected(*options: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "tests/session", *options]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        return [line for line in done.stdout.splitlines() if "::" in line]

    parts = [collected("--shard", f"{number}/3") for number in (1, 2, 3)]
    assert all(parts)
    assert sorted(test for part in parts for test in part) == sorted(collected())


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0"])
def test_a_part_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="--shard"):
        shard(text)


@pytest.mark.parametrize("script", [".ci/run", ".ci/build"])
def test_scripts_of_ci_are_executable(script: str) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--stage", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert listed.stdout.startswith("100755 ")


def workflow(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(
        (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    )
    return found


def before(jobs: dict[str, Any], name: str) -> set[str]:
    """The jobs that a job waits for."""
    needs = jobs[name].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*(before(jobs, needed) for needed in direct))


def test_a_release_is_tested_built_signed_and_published_in_this_order() -> None:
    release = workflow("release.yml")
    jobs = release["jobs"]
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML reads the key "on" as true
    assert release["permissions"] == {}
    assert before(jobs, "build") == {"ci"}
    assert before(jobs, "package") == {"ci", "build"}
    assert before(jobs, "collection") == {"ci", "build", "package"}
    assert before(jobs, "notes") == set(jobs) - {"notes"}
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in workflow("ci.yml")[True]


def test_a_release_signs_what_it_publishes_and_gives_each_job_its_rights_alone() -> None:
    jobs = workflow("release.yml")["jobs"]
    used = {
        name: [step["uses"].partition("@")[0] for step in job.get("steps", []) if "uses" in step]
        for name, job in jobs.items()
    }
    ran = {name: [step.get("run", "") for step in job.get("steps", [])] for name, job in jobs.items()}
    assert '.ci/build dist "$GITHUB_REF_NAME"' in ran["build"]
    assert {"actions/attest-build-provenance", "sigstore/gh-action-sigstore-python"} < set(used["build"])
    assert "pypa/gh-action-pypi-publish" in used["package"]
    assert "ansible-galaxy collection publish dist/hosting-cloud-*.tar.gz" in ran["collection"]
    rights = {name: job["permissions"] for name, job in jobs.items()}
    assert {name for name, given in rights.items() if "id-token" in given} == {"build", "package"}
    assert {name for name, given in rights.items() if given.get("contents") == "write"} == {"notes"}
    assert [name for name, job in jobs.items() if "environment" in job] == ["package", "collection"]
    for steps in (job.get("steps", []) for job in jobs.values()):
        assert not [step for step in steps if "secrets." in step.get("run", "")]  # a log shows commands


WORKFLOWS = [
    *(ROOT / ".github" / "workflows").glob("*.y*ml"),
    ROOT / "examples" / "gitops" / "github-actions.yml",
]
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")
"""An action by its whole commit: a tag or a branch can be moved to other code."""


def used_by(part: Any) -> Iterator[str]:
    """The actions and workflows that a part of a workflow runs."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        if key == "uses":
            yield value
        elif isinstance(value, dict | list):
            yield from used_by(value)


def unpinned(text: str) -> list[str]:
    """What a workflow runs that is neither of this repository nor pinned, with its version behind it."""
    return [
        used
        for used in used_by(yaml.safe_load(text))
        if not used.startswith("./")
        and not (PINNED.fullmatch(used) and re.search(rf"{re.escape(used)} # v\d+\.\d+\.\d+\b", text))
    ]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # Each once, also where several jobs have the same steps.
    assert len({*used_by(yaml.safe_load(text))}) == len({*re.findall(r"\buses: (\S+)", text)}) > 1
    assert unpinned(text) == []


@pytest.mark.parametrize(
    "action",
    [
        "actions/checkout@v4",
        "actions/checkout@main # v4.4.0",
        "actions/checkout@11d5960 # v4.4.0",
        "actions/checkout@11d5960a326750d5838078e36cf38b85af677262",
        "docker://alpine:3",
    ],
)
def test_an_action_that_is_not_pinned_is_found(action: str) -> None:
    step = f"{{jobs: {{a: {{steps: [\n  uses: {action}\n]}}}}}}"
    assert unpinned(step) == [action.partition(" ")[0]]


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


def test_a_program_that_is_not_here_is_named_by_its_marker_alone() -> None:
    """Else the summary would not say that it did not run."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if re.search(
            r"skipif\([^)]*which\(|which\([^)]*\)[^\n]*\n[^\n]*\n? +pytest\.skip", path.read_text("utf-8")
        )
    ]
    assert found == []

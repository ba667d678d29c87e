"""The files of examples/gitops that other programs read: workflows, the image of an execution environment."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pulumi_hosting.cli import main
from tests.gitops.conftest import SCRIPT

FOLDER = SCRIPT.parent
COMMANDS = {"pull-request", "merge", "nightly", "closed"}


def parsed(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("schema", "name", "wrong"),
    [
        ("github-workflows", "github-actions.yml", ("timeout", "time-out")),
        ("gitlab-ci", "gitlab-ci.yml", ("when: manual", "when: sometimes")),
    ],
)
def test_workflows_follow_the_schema_of_their_service(
    schema: str, name: str, wrong: tuple[str, str], tmp_path: Path
) -> None:
    command = [str(Path(sys.executable).parent / "check-jsonschema"), "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, str(FOLDER / name)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / name
    broken.write_text((FOLDER / name).read_text(encoding="utf-8").replace(*wrong))
    assert subprocess.run([*command, str(broken)], check=False, capture_output=True).returncode == 1


def test_workflows_run_every_subcommand() -> None:
    jobs = parsed("github-actions.yml")["jobs"].values()
    named = {word for job in jobs for word in re.findall(r"[a-z-]+", job["env"]["COMMAND"])}
    assert named >= COMMANDS
    assert all(job["steps"][-1]["run"] == 'python pipeline/pipeline.py "$COMMAND"' for job in jobs)
    gitlab = parsed("gitlab-ci.yml")
    scripts = {job["script"][0] for job in gitlab.values() if isinstance(job, dict) and "script" in job}
    assert scripts == {f"python pipeline/pipeline.py {command}" for command in COMMANDS}


def test_the_live_key_is_used_outside_pull_requests_alone() -> None:
    """A job that runs a pull request's code is given the environment `review` and no live key."""
    workflow = parsed("github-actions.yml")
    assert set(workflow["on"]) == {"pull_request", "push", "schedule", "workflow_dispatch"}
    jobs = workflow["jobs"]
    assert {name: job["environment"] for name, job in jobs.items()} == {
        **{"review": "review", "merge": "production", "nightly": "nightly"},
    }
    assert jobs["review"]["if"] == "github.event_name == 'pull_request'"
    assert "pull_request" not in jobs["merge"]["if"] + jobs["nightly"]["if"]
    assert "HOSTING_LIVE_KEY" not in jobs["review"]["env"]
    assert not any("HOSTING_TEST_KEY" in jobs[name]["env"] for name in ("merge", "nightly"))
    gitlab = parsed("gitlab-ci.yml")
    for name in ("pull-request", "closed"):
        assert gitlab[name]["environment"]["name"].startswith("review/")


def test_each_job_may_write_only_what_its_command_writes() -> None:
    workflow = parsed("github-actions.yml")
    assert workflow["permissions"] == {"contents": "read"}
    written = {
        name: [what for what, access in job["permissions"].items() if access == "write"]
        for name, job in workflow["jobs"].items()
    }
    assert written == {"review": ["pull-requests"], "merge": [], "nightly": ["issues"]}


@pytest.mark.parametrize(("argument", "code"), [("tariff_id", 0), ("tarif_id", 7)])
def test_the_hook_before_a_commit_finds_a_wrong_argument(
    argument: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hook,) = parsed("pre-commit-config.yaml")["repos"][0]["hooks"]
    program = {
        "Pulumi.yaml": "name: shop\nruntime: python\n",
        "Pulumi.prod.yaml": "config: {}\n",
        "__main__.py": f"from pulumi_hosting import Server\nServer('web', {argument}=1, os='debian-12')\n",
    }
    for name, text in program.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert re.search(hook["files"], name)
        assert re.search(hook["files"], f"shop/{name}")
    assert not re.search(hook["files"], "README.md")
    assert not hook["pass_filenames"]
    monkeypatch.chdir(tmp_path)
    command, *arguments = hook["entry"].split()
    answer = CliRunner().invoke(main, arguments)
    assert (command, answer.exit_code) == ("pulumi-hosting", code), answer.output


def test_the_execution_environment_is_one() -> None:
    found = parsed("awx/execution-environment.yml")
    assert wrong_in(found) == ""
    assert "imagess" in wrong_in({**found, "imagess": {}})


def wrong_in(environment: Any) -> str:
    """What ansible-builder says. In a process of its own: its import changes the loggers of this one."""
    code = (
        "import json, sys; from ansible_builder.ee_schema import validate_schema; "
        "validate_schema(json.load(sys.stdin))"
    )
    given = json.dumps(environment)
    run = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, check=False
    )
    return run.stderr.strip()

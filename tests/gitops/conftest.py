"""A repository with branches, a CI service that runs the pipeline's script, and the account it works on."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.ansible.conftest import BIN, ansible_environ
from tests.gitops.forge_server import Repository, serving
from tests.support.account import AccountView

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "gitops" / "pipeline.py"


INTRODUCTION = (
    "The jobs of the test of `examples/gitops/`, in order, without what is folded in the comments: "
    "[pipelines](gitops.md)."
)


class CI(AccountView):
    """Commits go to a bare repository; each job runs in a fresh clone, with the environment of a job."""

    def __init__(self, emulator: Any, service: Repository, folder: Path, python: str) -> None:
        self.emulator, self.service, self.folder, self.python = emulator, service, folder, python
        self.control = Control(emulator.control_url)
        roomy = {"rate_per_minute": 10000, "rate_expensive_per_minute": 10000}
        self.live = self.control("POST", "/keys", {"mode": "live", **roomy})["key"]
        self.test = self.control("POST", "/keys", {"mode": "test", **roomy})["key"]
        self.account = AccountCheck(self.control)
        self.printed = ""
        self.jobs = 0
        self.log: list[tuple[str, str, int, str]] = []
        self.state = folder / "state"
        self.state.mkdir()
        self.git("init", "--quiet", "--bare", "--initial-branch=main", "origin.git", cwd=folder)
        self.git("clone", "--quiet", "origin.git", "work", cwd=folder)
        self.work = folder / "work"
        self.git("checkout", "--quiet", "-b", "main")

    # --- the repository

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        known = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **{f"GIT_{role}_{what}": "me" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.work,
            env=known,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def push(self, branch: str, files: Mapping[str, str] | None = None) -> str:
        """Commit these files on the branch, which starts at ``main``."""
        if branch != "main":
            exists = branch in self.git("branch", "--format=%(refname:short)").split()
            self.git("checkout", "--quiet", *([branch] if exists else ["-b", branch, "main"]))
        for name, text in (files or {}).items():
            (self.work / name).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "change")
        self.git("push", "--quiet", "origin", branch)
        return self.git("rev-parse", "HEAD")

    def merge_branch(self, branch: str, number: int) -> str:
        """What a person does with the button of the service; the new commit of ``main``."""
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "-m", f"Merge {branch}", branch)
        self.git("push", "--quiet", "origin", "main")
        commit = self.git("rev-parse", "HEAD")
        self.service.merged[commit] = [number]
        return commit

    # --- its jobs

    def job(self, command: str, ref: str = "main", **environ: str) -> int:
        """Run one subcommand in a fresh clone of ``ref``; its exit code. Then the account must hold what the
        saved stacks say.
        """
        self.jobs += 1
        clone = self.folder / f"job-{self.jobs}"
        self.git("clone", "--quiet", "--branch", ref, "origin.git", clone.name, cwd=self.folder)
        done = subprocess.run(
            [self.python, str(SCRIPT), command],
            cwd=clone,
            env={**self.environ(), **self.service.environ(), "COMMIT": self.git("rev-parse", ref), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.printed = done.stdout + done.stderr
        assert "Traceback" not in self.printed, self.printed
        for secret in (self.live, self.test):
            assert secret not in self.printed + str(self.service.comments) + str(self.service.issues)
        shutil.rmtree(clone)
        self.log.append((command, ref, done.returncode, self.printed))
        return done.returncode

    def environ(self) -> dict[str, str]:
        hosting = f"{shlex.quote(self.python)} -m pulumi_hosting.cli"
        return {
            **os.environ,
            "STACK": "prod",
            "PULUMI": f"{hosting} offline",
            "PULUMI_HOSTING": hosting,
            "REHEARSE_ARGS": "--engine offline",
            "PULUMI_PYTHON_CMD": self.python,
            "PULUMI_BACKEND_URL": self.state.resolve().as_uri(),
            "PULUMI_HOME": str(self.folder / "pulumi"),
            "PULUMI_CONFIG_PASSPHRASE": "not a secret",
            "HOSTING_BASE_URL": self.emulator.base_url,
            "HOSTING_TEST_KEY": self.test,
            "HOSTING_LIVE_KEY": self.live,
            "HOSTING_MAX_CHARGE": "20.00",
            "HOSTING_SCOPE": "prod",
        }

    def playbook(self) -> dict[str, str]:
        """The environment of a job that has a playbook in place of a stack."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        own = ansible_environ(self.emulator, home)
        kept = ("HOME", "LC_ALL", "ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_NOCOLOR")
        return {
            **{name: own[name] for name in kept},
            "STACK": "",
            "PLAYBOOK": "site.yml",
            "ANSIBLE_PLAYBOOK": shlex.join([self.python, str(BIN / "ansible-playbook")]),
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
        }

    def pulumi(self, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """A command that a person runs in the working tree."""
        return subprocess.run(
            [*shlex.split(self.environ()["PULUMI"]), *arguments, "--non-interactive"],
            cwd=self.work,
            env={**self.environ(), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def order_by_hand(self, name: str) -> str:
        with Client(self.live, self.emulator.base_url) as client:
            client.servers.create(
                name=name, tariff_id=1, os="debian-12", months=1, idempotency_key=f"by-hand-{name:0>16}"
            )
        return next(str(server["id"]) for server in self.living if server["name"] == name)

    def repair(self) -> None:
        """What a person does about drift."""
        live = {"HOSTING_API_KEY": self.live, "HOSTING_MODE": "live"}
        done = self.pulumi("up", "--yes", "--refresh", "--skip-preview", "--stack", "prod", **live)
        assert done.returncode == 0, done.stdout + done.stderr

    def write_log(self, path: Path) -> None:
        """Every job with what it printed, without the folded details, as a page of the documentation."""
        lines = ["# A run of the pipeline", "", INTRODUCTION, ""]
        for command, ref, code, printed in self.log:
            shown = re.sub(r"\n<details>.*?</details>\n", "", printed, flags=re.DOTALL)
            shown = re.sub(r"^(?:\$ .*|  .* s(?: so far)?)\n", "", shown, flags=re.M).strip()
            lines += [
                f"## {command}, on {ref}: exit code {code}",
                "",
                re.sub("^## ", "### ", shown, flags=re.M),
                "",
            ]
        path.write_text("\n".join(lines), encoding="utf-8")

    def stacks(self) -> list[str]:
        return sorted(path.stem for path in (self.state / ".pulumi" / "stacks").rglob("*.json"))

    def compare(self, *bought_by_hand: str) -> None:
        """The account holds what the saved stacks say, and every movement of money has its reason."""
        self.account.allowed |= set(bought_by_hand)
        saved = [json.loads(path.read_text()) for path in (self.state / ".pulumi" / "stacks").rglob("*.json")]
        exports = [
            {"version": 3, "deployment": (data.get("checkpoint") or {}).get("latest") or {}} for data in saved
        ]
        assert self.account.check(ManagedObjects.of_stack(*exports), printed=self.printed) == []


@pytest.fixture(params=["github", "gitlab"])
def service(request: pytest.FixtureRequest) -> Iterator[Repository]:
    with serving(request.param) as repository:
        yield repository


@pytest.fixture
def ci(engine: Engine, emulator: Any, service: Repository, warm: WarmPython, tmp_path: Path) -> CI:
    return CI(emulator, service, tmp_path, sys.executable)

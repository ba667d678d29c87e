"""`pulumi-hosting rehearse`: the whole life of a program on an emulator, on every engine."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main
from pulumi_hosting.rehearsal import runner
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine, Run, Stack, Step
from tests.support.warm import WarmPython

SERVER = "hosting:index:Server"
DEMO = Path(__file__).parent.parent / "examples" / "demo" / "program"


def rehearse(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pulumi_hosting.cli", "rehearse", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


ROUNDS = [
    "mail-ptr.domain, web-ptr.domain, shop.nameservers, web-1.name, laptop.name, news.url",
    "shop.privacy, web-1.autoRenew, news.events",
    "shop.autoRenew, web-1.notes, news.description",
    "web-1.power, news.active",
    "web-1.os",
    "all deleted",
]


@pytest.mark.parametrize(
    ("module", "dialect"), [("pulumi_hosting", "live"), pytest.param("pulumi_hosting.native", "spec", marks=pytest.mark.slow)]
)
def test_every_step_of_the_demo_program_is_as_expected(engine: Engine, module: str, dialect: str, tmp_path: Path) -> None:
    shutil.copy(DEMO / "Pulumi.yaml", tmp_path)
    program = (DEMO / "__main__.py").read_text(encoding="utf-8")
    (tmp_path / "__main__.py").write_text(program.replace("from pulumi_hosting import", f"from {module} import"), encoding="utf-8")
    done = rehearse(str(tmp_path), "--engine", engine.name, "--dialect", dialect)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"engine: {engine.name}")
    steps = ["preview", "up", "up again", "drift check"]
    for number, changed in enumerate(ROUNDS, 1):
        steps += [f"drift {number}: {changed}", f"repair {number}"]
    steps += ["drift check", "destroy"]
    reported = lines[2:-2]
    assert len(reported) == len(steps), done.stdout
    for line, step in zip(reported, steps, strict=True):
        assert line.startswith(f"ok     {step} "), line
    assert lines[-1] == "rehearsal: everything as expected"
    assert re.fullmatch(r"cost: [0-9.]+ charged, [0-9.]+ refunded, in [0-9]+ requests", lines[-2])
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"Pulumi.yaml", "__main__.py"}


def test_unmanaged_fields_are_not_changed(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: bare\nruntime: python\n", encoding="utf-8")
    declared = (
        "from pulumi_hosting.native import WebhookSubscription\nWebhookSubscription('w', url='https://h.example.com/', events=['*'])\n"
    )
    (tmp_path / "__main__.py").write_text(declared, encoding="utf-8")
    done = rehearse(str(tmp_path), "--engine", "offline")
    assert done.returncode == 0, done.stdout + done.stderr
    drifts = re.findall(r"^ok     drift [0-9]+: (\S+)", done.stdout, re.MULTILINE)
    assert drifts == ["w.url", "w.events", "w.active", "all"]


def test_a_program_that_changes_with_every_run_fails(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: unstable\nruntime: python\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text(
        "import time\nfrom pulumi_hosting import Server\nServer('web', tariff_id=1, os='debian-12', notes=str(time.time_ns()))\n",
        encoding="utf-8",
    )
    done = rehearse(str(tmp_path), "--engine", "offline")
    assert done.returncode == 1
    assert "FAILED up again" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_error_of_a_failed_program_is_reported(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: broken\nruntime: python\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text(
        "from pulumi_hosting import Server\nServer('web', tariff_id=0, os='debian-12')\n", encoding="utf-8"
    )
    done = rehearse(str(tmp_path), "--engine", "offline")
    assert done.returncode == 1
    assert "tariffId" in done.stdout


@pytest.mark.parametrize("arguments", [("nowhere",), ("--engine", "steam", ".")])
def test_wrong_arguments_are_one_line(arguments: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(main, ["rehearse", *arguments])
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1].startswith("Error: Invalid value for ")


@dataclass
class ForgetfulStack(Stack):
    """A stack whose destroy reports the deletion of its server and deletes nothing. It needs no engine."""

    control: Control = field(kw_only=True)
    server: int | None = None

    def run(self, *arguments: str) -> Run:
        steps: tuple[Step, ...] = ()
        command = arguments[0]
        exists = any(row["id"] == self.server for row in self.control("GET", "/objects")["servers"])
        if command in ("preview", "up") and not exists:
            steps = (Step("create", "web", SERVER),)
            if command == "up":
                self.server = self.control("POST", "/servers", {"name": "web"})["id"]
        elif (command == "refresh" and not exists) or command == "destroy":
            steps = (Step("delete", "web", SERVER),)
        exit_code = 7 if command == "refresh" and steps else 0
        if command == "destroy":
            self.server = None
        return Run(arguments, exit_code, "", steps, {step.op: 1 for step in steps})

    def export(self, *flags: str) -> dict[str, Any]:
        held = {"urn": "urn:pulumi:dev::p::t::web", "type": SERVER, "id": str(self.server), "inputs": {}, "outputs": {}}
        return {"deployment": {"resources": [held] if self.server else []}}

    def saved(self) -> list[dict[str, Any]]:
        return [self.export()]


class ForgetfulEngine(Engine):
    def stack(self, program: Path, home: Path, environ: Mapping[str, str] | None = None, name: str = "dev") -> Stack:
        assert environ is not None
        control_url = environ["HOSTING_BASE_URL"].replace("/v1", "/_control")
        return ForgetfulStack(self, program, home, name, dict(environ), control=Control(control_url))


def test_a_deletion_that_deletes_nothing_fails(warm: WarmPython, tmp_path: Path) -> None:
    """The defect that green exit codes hid: destroy reports success, and the server still runs and is billed."""
    lines: list[str] = []
    passed = runner.rehearse(ForgetfulEngine("forgetful", "", ()), tmp_path, lines.append)
    assert not passed, lines
    report = "\n".join(lines)
    ((step, problem),) = re.findall(r"^(FAILED .*)\n +\| (.*)$", report, re.MULTILINE)
    assert step.startswith("FAILED destroy ")
    assert re.fullmatch(r"server 2\d+ \(web, 5\.00 EUR per month\) is live and in no state", problem)
    assert lines[-1] == "rehearsal: not as expected: destroy"

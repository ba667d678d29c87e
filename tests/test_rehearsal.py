"""`pulumi-hosting rehearse`: the whole life of a program on an emulator, on every engine."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize(("form", "dialect"), [("pulumi_hosting", "live"), ("pulumi_hosting.native", "spec")])
def test_the_demo_program_holds_what_it_promises(engine: Any, form: str, dialect: str, tmp_path: Path) -> None:
    shutil.copy(DEMO / "Pulumi.yaml", tmp_path)
    program = (DEMO / "__main__.py").read_text(encoding="utf-8")
    (tmp_path / "__main__.py").write_text(program.replace("from pulumi_hosting import", f"from {form} import"), encoding="utf-8")
    done = rehearse(str(tmp_path), "--engine", engine.name, "--dialect", dialect)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"engine: {engine.name}")
    acts = ["preview", "up", "up again", "drift check"]
    for number, changed in enumerate(ROUNDS, 1):
        acts += [f"drift {number}: {changed}", f"repair {number}"]
    acts += ["drift check", "destroy"]
    told = lines[2:-2]
    assert len(told) == len(acts), done.stdout
    for line, act in zip(told, acts, strict=True):
        assert line.startswith(f"ok     {act} "), line
    assert lines[-1] == "rehearsal: everything as expected"
    assert re.fullmatch(r"cost: [0-9.]+ charged, [0-9.]+ refunded, in [0-9]+ requests", lines[-2])
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"Pulumi.yaml", "__main__.py"}


def test_what_the_program_does_not_manage_does_not_drift(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: bare\nruntime: python\n", encoding="utf-8")
    declared = (
        "from pulumi_hosting.native import WebhookSubscription\nWebhookSubscription('w', url='https://h.example.com/', events=['*'])\n"
    )
    (tmp_path / "__main__.py").write_text(declared, encoding="utf-8")
    done = rehearse(str(tmp_path), "--engine", "offline")
    assert done.returncode == 0, done.stdout + done.stderr
    drifts = re.findall(r"^ok     drift [0-9]+: (\S+)", done.stdout, re.MULTILINE)
    assert drifts == ["w.url", "w.events", "w.active", "all"]


def test_a_program_that_changes_with_every_run_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: restless\nruntime: python\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text(
        "import time\nfrom pulumi_hosting import Server\nServer('web', tariff_id=1, os='debian-12', notes=str(time.time_ns()))\n",
        encoding="utf-8",
    )
    done = rehearse(str(tmp_path), "--engine", "offline")
    assert done.returncode == 1
    assert "FAILED up again" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_program_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: broken\nruntime: python\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text(
        "from pulumi_hosting import Server\nServer('web', tariff_id=0, os='debian-12')\n", encoding="utf-8"
    )
    done = rehearse(str(tmp_path), "--engine", "offline")
    assert done.returncode == 1
    assert "tariffId" in done.stdout


@pytest.mark.parametrize("arguments", [("nowhere",), ("--engine", "steam", ".")])
def test_wrong_arguments_are_one_line(arguments: tuple[str, ...]) -> None:
    done = rehearse(*arguments)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr


MUTANT = """
import sys

if "pulumi.dynamic" in sys.orig_argv:
    from pulumi_hosting.provider.adapter import Adapter

    Adapter.delete = lambda *_, **__: None
"""


def test_a_deletion_that_deletes_nothing_is_found_out(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The defect that green exit codes hid: everything is reported as deleted, and the server runs on and is billed."""
    program = tmp_path / "program"
    program.mkdir()
    (program / "Pulumi.yaml").write_text("name: leaving\nruntime: python\n", encoding="utf-8")
    (program / "__main__.py").write_text(
        "from pulumi_hosting import Server\nServer('web', tariff_id=1, os='debian-12')\n", encoding="utf-8"
    )
    (tmp_path / "sitecustomize.py").write_text(MUTANT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = rehearse(str(program), "--engine", engine.name)
    assert done.returncode == 1, done.stdout
    step, problem = re.findall(r"^(FAILED .*)\n +\| (.*)$", done.stdout, re.MULTILINE)[-1]
    assert step.startswith("FAILED destroy ")
    assert re.fullmatch(r"server 2\d+ \(web, 5\.00 EUR per month\) is live and in no state", problem)
    assert done.stdout.splitlines()[-1].startswith("rehearsal: not as expected: ")

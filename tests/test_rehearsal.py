"""`pulumi-hosting rehearse`: the whole life of a program on an emulator, on every engine."""

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


def test_the_demo_program_holds_what_it_promises(engine: Any, dialect: str) -> None:
    done = rehearse(str(DEMO), "--engine", engine.name, "--dialect", dialect)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"engine: {engine.name}")
    for act in (
        "preview",
        "up",
        "up again",
        "drift: Server.notes of web-1",
        "drift: Server.auto_renew of web-1",
        "drift: Server.name of web-1",
        "destroy",
    ):
        assert any(line.startswith(f"ok     {act}") for line in lines), act
    assert "ok     drift: SshKey.name of laptop" in done.stdout
    assert "ok     drift: SshKey.(gone) of laptop" in done.stdout
    assert lines[-1] == "rehearsal: everything as expected"
    assert lines[-2].startswith("cost: ")


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

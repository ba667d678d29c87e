"""`pulumi-hosting certify` as a process, over HTTP, and an emulator that behaves like its profile."""

import json
import os
import subprocess
import sys
from pathlib import Path

from pulumi_hosting.certify import CHECKS
from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.control_client import Control
from tests.support.emulators import EmulatorPool
from tests.support.programs import ROOMY

MOST = 220
"""Requests: a simulated order is over, and the limits, which take minutes, are not reached."""


def test_report_files_and_profile(emulator_pool: EmulatorPool, tmp_path: Path) -> None:
    deployment = emulator_pool.start(dialect="live")
    control = Control(deployment.control_url)
    control("PATCH", "/service", {"readings": {"sandbox_echo": "server"}})
    key = control("POST", "/keys", {**ROOMY, "mode": "test"})["key"]
    profile, junit = tmp_path / "profile.json", tmp_path / "junit.xml"
    command = [
        sys.executable,
        "-m",
        "pulumi_hosting.cli",
        "certify",
        "--base-url",
        deployment.base_url,
        "--json",
    ]
    command += ["--max-requests", str(MOST), "--save", str(profile), "--junit", str(junit)]
    done = subprocess.run(
        command, env={**os.environ, "HOSTING_API_KEY": key}, capture_output=True, text=True, check=False
    )
    report = json.loads(done.stdout)
    assert done.stderr.startswith("part 1 of ")
    assert [one for one in report["results"] if one["verdict"] == "departure"] == []
    assert (report["exit_code"], report["charged"], report["left_behind"]) == (1, "0.00", [])
    assert done.returncode == 1, done.stderr  # not finished: out of requests
    assert report["counts"]["ok"] > 60
    assert "--max-requests" in report["unfinished"]
    assert f'tests="{len(CHECKS) + 1}" failures="0" errors="1"' in junit.read_text()  # and the run itself
    assert not any(key in text for text in (done.stdout, done.stderr, junit.read_text(), profile.read_text()))
    assert json.loads(profile.read_text())["dialect"] == "live"

    with running(profile=profile) as other:
        control = Control(other.control_url)
        control("POST", "/reset", {})
        service = control("PATCH", "/service", {})
    assert (service["dialect"], service["readings"]["sandbox_echo"]) == ("live", "server")

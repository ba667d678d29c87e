"""The example with DNS records at another provider, whose plugin is a stand-in, on the offline engine."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import OFFLINE, choose
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.checked import CheckedStack, checked
from tests.support.dns_provider import NAME_SERVERS
from tests.test_examples_pulumi import DOMAIN, EXAMPLES, done

ROOT = EXAMPLES.parent


@pytest.fixture
def stack(emulator: Running, tmp_path: Path) -> CheckedStack:
    kept = shutil.ignore_patterns("__pycache__", "Pulumi.*.yaml")
    program = Path(shutil.copytree(EXAMPLES / "dns-elsewhere", tmp_path / "program", ignore=kept))
    plugin = tmp_path / "bin" / "pulumi-resource-hcloud"
    plugin.parent.mkdir()
    module = f"PYTHONPATH={ROOT} exec {PYTHON} -u -m tests.support.dns_provider"
    plugin.write_text(f'#!/bin/sh\n{module} "$@"\n', encoding="utf-8")
    plugin.chmod(0o755)
    environ = {
        "HOSTING_API_KEY": emulator.live_key,
        "HOSTING_BASE_URL": emulator.base_url,
        "DNS_RECORDS": str(tmp_path / "records.json"),
        "PATH": f"{plugin.parent}{os.pathsep}{os.environ['PATH']}",
    }
    made = choose(OFFLINE).stack(program, tmp_path / "home", environ)
    return checked(made, Control(emulator.control_url))


@pytest.mark.slow
def test_the_domain_has_the_name_servers_of_the_zone_and_the_records_lead_to_the_server(
    stack: CheckedStack, emulator: Running, tmp_path: Path
) -> None:
    def records() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((tmp_path / "records.json").read_text(encoding="utf-8"))
        return {
            id: [row["value"] for row in found["records"]]
            for id, found in found.items()
            if "records" in found
        }

    control = Control(emulator.control_url)
    done(stack.run("config", "set", "domain", DOMAIN))
    preview = done(stack.run("preview"))
    assert "run total 17.00 EUR" in preview.output
    assert not (tmp_path / "records.json").exists()
    done(stack.up())
    ((domain,), addresses) = control("GET", "/objects")["domains"], control("GET", "/objects")["addresses"]
    assert domain["name"] == DOMAIN
    assert domain["nameservers"] == [name.rstrip(".") for name in NAME_SERVERS]
    ip = stack.outputs()["ip"]
    assert [row["ptr"] for row in addresses if row["address"] == ip] == [DOMAIN]
    assert records() == {f"{DOMAIN}/@": [ip], f"{DOMAIN}/www": [f"{DOMAIN}."]}
    assert done(stack.up("--expect-no-changes")).changed == {}
    done(stack.destroy())
    assert records() == {}

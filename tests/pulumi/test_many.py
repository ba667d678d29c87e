"""Many resources of every kind in one program: they come up, and again nothing changes."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine
from tests.support.programs import FORMS, make_program

# Each group of twelve is a small site.
PROGRAM = """
import base64
import {module} as hosting

def public_key(number):
    head = b"\\0\\0\\0\\x0bssh-ed25519\\0\\0\\0\\x20"
    return "ssh-ed25519 " + base64.b64encode(head + number.to_bytes(32, "big")).decode()

for site in range({sites}):
    keys = [hosting.SshKey(f"key-{{site}}-{{number}}", public_key=public_key(1000 * number + site + 1)) for number in range(3)]
    for number in range(3):
        server = hosting.Server(f"web-{{site}}-{{number}}", tariff_id=1, os="debian-12", ssh_key_ids=[key.id for key in keys])
        hosting.Ptr(f"web-{{site}}-{{number}}", server_id=server.id, domain=f"web-{{number}}.site-{{site}}.com")
    address = hosting.ServerIp(f"mail-{{site}}", server_id=server.id)
    hosting.Domain(f"site-{{site}}", name=f"site-{{site}}.com", nameservers=["ns1.example.com", "ns2.example.com"])
    hosting.WebhookSubscription(f"news-{{site}}", url=f"https://hooks-{{site}}.example.com/", events=["server.created"])
"""
OF_A_SITE = {"SshKey": 3, "Server": 3, "Ptr": 3, "ServerIp": 1, "Domain": 1, "WebhookSubscription": 1}


@pytest.mark.parametrize("sites", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_many_resources_of_every_kind(
    sites: int, form: str, engine: Engine, emulator: Any, tmp_path: Path
) -> None:
    control = Control(emulator.control_url)
    control("PATCH", "/account", {"balance": "1000000"})
    fast = {"mode": "live", "scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
    environ = {
        "HOSTING_API_KEY": control("POST", "/keys", fast)["key"],
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
    }
    program = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", form, **environ)
    (program.directory / "__main__.py").write_text(
        PROGRAM.format(module=FORMS[form], sites=sites), encoding="utf-8"
    )

    made = program.run(program.stack.up(), {"create": 12 * sites + 1})
    assert Counter(
        step.type.rpartition(":")[2] for step in made.steps if step.op == "create" and "hosting:" in step.type
    ) == {kind: sites * number for kind, number in OF_A_SITE.items()}
    assert len(program.living) == 3 * sites
    assert len({address["ptr"] for address in program.objects("addresses")} - {None}) == 3 * sites

    before = control.requests()
    assert program.run(program.stack.up("--expect-no-changes"), {}).changes == {"same": 12 * sites + 1}
    assert control.requests() - before <= 10

"""Pulumi and Ansible on one account: each sees what the other made, and leaves it as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.ansible.conftest import Ansible, ansible_environ
from tests.support.programs import PUBLIC_KEY, Program, Ref, make_program

PROGRAM: dict[str, tuple[str, dict[str, Any]]] = {
    "key": ("SshKey", {"public_key": PUBLIC_KEY}),
    "web": (
        "Server",
        {
            "tariff_id": 1,
            "os": "debian-12",
            "name": "web",
            "notes": "one",
            "auto_renew": True,
            "power": "running",
        },
    ),
    "site": (
        "Domain",
        {"name": "example-1.com", "nameservers": ["ns1.example.net", "ns2.example.net"], "privacy": True},
    ),
    "spare": ("ServerIp", {"server_id": Ref("web.id")}),
    "rev": ("Ptr", {"server_id": Ref("web.id"), "domain": "mail.example.com"}),
    "hook": (
        "WebhookSubscription",
        {"url": "https://hooks.example.com/x", "events": ["server.created"], "description": "ops"},
    ),
}

# The same declarations for Ansible.
PLAY: list[dict[str, Any]] = [
    {"hosting.cloud.ssh_key": {"name": "key", "public_key": PUBLIC_KEY}},
    {
        "hosting.cloud.server": {
            "name": "web",
            "tariff_id": 1,
            "os": "debian-12",
            "notes": "one",
            "auto_renew": True,
            "state": "started",
        }
    },
    {
        "hosting.cloud.domain": {
            "name": "Example-1.com",
            "nameservers": ["NS2.example.net", "ns1.example.net."],
            "privacy": True,
        }
    },
    {"hosting.cloud.server_ip": {"server_name": "web"}},
    {"hosting.cloud.ptr": {"server_name": "web", "domain": "Mail.example.com"}},
    {
        "hosting.cloud.webhook_subscription": {
            "url": "https://hooks.example.com/x",
            "events": ["server.created"],
            "description": "ops",
        }
    },
]


@pytest.fixture
def play(emulator: Any, warm_python: WarmPython, tmp_path: Path) -> Iterator[Ansible]:
    home = tmp_path / "ansible"
    home.mkdir()
    with Client(emulator.live_key, emulator.base_url) as client:
        yield Ansible(emulator, client, home, ansible_environ(emulator, home), (str(warm_python.command),))


@pytest.fixture
def program(engine: Engine, emulator: Any, tmp_path: Path) -> Program:
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "dynamic")


def test_what_pulumi_made_is_as_it_should_be_for_ansible(
    program: Program, play: Ansible, dialect: str
) -> None:
    program.declare(PROGRAM)
    program.run(program.stack.up())
    writes, charges = play.writes(), program.charges
    played = play.play(*PLAY)
    assert played.changed == [False] * 6, played.output
    assert (play.writes(), program.charges) == (writes, charges)
    program.run(program.stack.refresh("--preview-only", "--expect-no-changes"), {})
    # What Ansible changes is drift for Pulumi, and no more than that: the marks it knows its objects by are
    # still there.
    marks = [row["notes"] for row in program.living] + [
        row["description"] for row in program.objects("subscriptions")
    ]
    play.play(
        {"hosting.cloud.server": {"name": "web", "notes": "two"}},
        {"hosting.cloud.webhook_subscription": {"url": "https://hooks.example.com/x", "description": "team"}},
    )
    now = [row["notes"] for row in program.living] + [
        row["description"] for row in program.objects("subscriptions")
    ]
    assert now == [mark.replace("one", "two").replace("ops", "team") for mark in marks]
    assert all("[iac2:" in mark for mark in now)
    program.run(program.stack.up("--refresh"))
    assert play.play(*PLAY).changed == [False] * 6
    assert program.charges == charges


def test_what_ansible_made_is_taken_over_by_pulumi_as_it_is(
    program: Program, play: Ansible, dialect: str
) -> None:
    played = play.play(*PLAY)
    assert played.changed == [True] * 6, played.output
    charges = program.charges
    ids = {
        kind: result[kind]["id"]
        for result in played.results
        for kind in result
        if isinstance(result[kind], dict) and "id" in result[kind]
    }
    adopted = {
        "web": ids["server"],
        "site": ids["domain"],
        "spare": ids["server_ip"].rpartition("/")[2],
        "hook": ids["webhook_subscription"],
    }
    program.declare(
        {
            name: (kind, {**given, **({"adopt_id": adopted[name]} if name in adopted else {})})
            for name, (kind, given) in PROGRAM.items()
        }
    )
    program.run(program.stack.up())
    assert program.charges == charges
    assert {name: item["id"] for name, item in program.resources().items()} == {
        "key": ids["ssh_key"],
        "web": ids["server"],
        "site": ids["domain"],
        "spare": ids["server_ip"],
        "rev": ids["ptr"],
        "hook": ids["webhook_subscription"],
    }
    program.run(program.stack.refresh("--preview-only", "--expect-no-changes"), {})
    assert play.play(*PLAY).changed == [False] * 6
    assert program.charges == charges

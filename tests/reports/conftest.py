"""An account with something of everything, and the commands that report on it, run as a person runs them."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulumi_hosting.cli import main
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from tests.support.account import AccountView
from tests.support.programs import PUBLIC_KEY

Command = Callable[..., Result]
"""``command("audit", "--json")``; ``key=`` is another API key, ``""`` none; ``NAME=`` another variable."""


def public_key(number: int) -> str:
    head = b"\0\0\0\x0bssh-ed25519\0\0\0\x20"
    return f"ssh-ed25519 {base64.b64encode(head + number.to_bytes(32, 'big')).decode()} key-{number}"


def roomy_key(control: Control) -> str:
    """A key whose limits per minute no test waits for."""
    limits = {"mode": "live", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
    return str(control("POST", "/keys", limits)["key"])


class Owner(AccountView):
    """An account that was used by hand, in the control panel."""

    control: Control

    def __init__(self, emulator: Running) -> None:
        self.emulator = emulator
        self.control = Control(emulator.control_url)
        self.client = Client(emulator.live_key, emulator.base_url)

    def order(self, name: str) -> str:
        """A server, ordered by hand; its id."""
        self.client.servers.create(
            name=name, tariff_id=1, os="debian-12", months=1, idempotency_key=f"by-hand-{name:0>16}"
        )
        return next(str(server.id) for server in self.client.servers.list() if server.name == name)

    def add_key(self, name: str = "laptop", line: str = PUBLIC_KEY) -> str:
        return str(self.client.ssh_keys.create(name=name, public_key=line).id)

    def untagged(self) -> dict[str, Any]:
        """Every object, without what an ownership tag is written behind."""
        kinds = ("servers", "addresses", "domains", "ssh_keys", "subscriptions")
        rows = {kind: [dict(row) for row in self.objects(kind)] for kind in kinds}
        for row in (*rows["servers"], *rows["subscriptions"]):
            for text in ("notes", "description"):
                if row.get(text) is not None:
                    row[text] = row[text].partition(" [iac2:")[0].partition("[iac2:")[0]
            row.pop("updated_at", None)
        return rows


def writes(owner: Owner, since: int) -> set[str]:
    """Requests that are no reads, without the ids in them."""
    requests = owner.control("GET", "/requests?since=0")[since:]
    return {
        f"{entry['method']} {entry['path'].rpartition('/')[0]}"
        for entry in requests
        if entry["method"] != "GET"
    }


def unmanaged(audited: Result) -> list[str]:
    """The ids of what an audit found. The suspended servers are managed, and named each time."""
    facts = json.loads(audited.stdout)
    assert {row["name"] for row in facts["ended"]} <= {"unpaid"}
    assert audited.exit_code == (7 if facts["unmanaged"] or facts["ended"] else 0), audited.output
    return [row["id"] for row in facts["unmanaged"]]


@pytest.fixture
def owner(emulator: Running) -> Owner:
    return Owner(emulator)


@pytest.fixture
def command(emulator: Running) -> Command:
    def run(*arguments: object, key: str | None = None, **variables: str) -> Result:
        chosen = emulator.live_key if key is None else key
        environ = {"HOSTING_API_KEY": chosen, "HOSTING_BASE_URL": emulator.base_url, **variables}
        return CliRunner().invoke(main, [str(argument) for argument in arguments], env=environ)

    return run

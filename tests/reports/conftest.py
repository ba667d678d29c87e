"""An account with something of everything, and the commands that report on it, run as a person runs them."""

from collections.abc import Callable

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


class Owner(AccountView):
    """An account that was used by hand, in the control panel."""

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

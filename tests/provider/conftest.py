"""What the tests of the provider share."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from pulumi_hosting.resources import RESOURCES
from tests.contract.harness import HOOKS, ApiHarness, Receiver
from tests.provider.fake_engine import FORMS, Engine
from tests.provider.plugin_client import Asked, asked
from tests.provider.processes import Start, provider_process
from tests.support.account import Account
from tests.support.emulators import EmulatorPool


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """The server that webhook deliveries are sent to."""
    with Receiver() as listening:
        yield listening


@pytest.fixture
def api(dialect: str, receiver: Receiver) -> Iterator[ApiHarness]:
    """A fresh account in process, whose servers are orders for a minute."""
    with ApiHarness.in_process(dialect, receiver, provisioning_delay=60) as harness:
        yield harness


@pytest.fixture
def api_over_http(emulator_pool: EmulatorPool, dialect: str, receiver: Receiver) -> Iterator[ApiHarness]:
    """The same over HTTP, for programs that make their own clients."""
    emulator = emulator_pool.get(
        dialect=dialect, clock="manual", provisioning_delay=60, webhook_route={HOOKS: receiver.url}
    )
    with ApiHarness(emulator, dialect, receiver) as harness:
        yield harness


@pytest.fixture
def processes(account: Account) -> Start:
    """Starts a provider process with the given settings."""
    return partial(provider_process, account)


@pytest.fixture
def plugin(emulator: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    for variable in ("HOSTING_API_KEY", "HOSTING_BASE_URL", "HOSTING_MODE", "HOSTING_MAX_CHARGE"):
        monkeypatch.delenv(variable, raising=False)
    with asked(emulator) as made:
        yield made


@pytest.fixture
def pretended() -> Engine:
    return Engine()


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=RESOURCES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)

"""A fresh account for each contract test, in process or over HTTP."""

from collections.abc import Iterator

import pytest

from tests.contract.harness import HOOKS, ApiHarness, Receiver
from tests.support.emulators import EmulatorPool


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """The server that webhook deliveries are sent to."""
    with Receiver() as listening:
        yield listening


@pytest.fixture
def api(dialect: str, receiver: Receiver) -> Iterator[ApiHarness]:
    """A fresh account in process, with a client for each mode and the control interface."""
    receiver.got.clear()
    with ApiHarness.in_process(dialect, receiver) as harness:
        yield harness


@pytest.fixture
def api_over_http(emulator_pool: EmulatorPool, dialect: str, receiver: Receiver) -> Iterator[ApiHarness]:
    """The same over HTTP, with one emulator per dialect and session: for what depends on real connections."""
    receiver.got.clear()
    emulator = emulator_pool.get(dialect=dialect, clock="manual", webhook_route={HOOKS: receiver.url})
    with ApiHarness(emulator, dialect, receiver) as harness:
        yield harness

"""One emulator per dialect for all contract tests, over real HTTP; every test begins with a fresh account."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.contract.stage import HOOKS, ApiHarness, Receiver


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """Where webhook deliveries really go."""
    with Receiver() as listening:
        yield listening


@pytest.fixture(scope="session")
def emulators(receiver: Receiver) -> Iterator[dict[str, Any]]:
    """An emulator for each dialect. Its clock stands still, so no rate window moves on by itself."""
    from pulumi_hosting.emulator import running

    with ExitStack() as stack:
        yield {
            dialect: stack.enter_context(running(dialect=dialect, clock="manual", webhook_route={HOOKS: receiver.url}))
            for dialect in ("spec", "live")
        }


@pytest.fixture
def stage(emulators: dict[str, Any], dialect: str, receiver: Receiver) -> Iterator[ApiHarness]:
    """A fresh account in the dialect of the test, a client for each kind of key, and the control interface."""
    receiver.got.clear()
    with ApiHarness(emulators[dialect], dialect, receiver) as ready:
        yield ready

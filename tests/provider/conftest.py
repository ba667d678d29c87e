"""What the tests of the provider share."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.contract.harness import HOOKS, ApiHarness, Receiver


@pytest.fixture(scope="module")
def emulators() -> Iterator[dict[str, tuple[Any, Receiver]]]:
    """An emulator for each dialect, whose clock stands still, with a receiver for its webhooks."""
    from pulumi_hosting.emulator import running

    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        options: dict[str, Any] = {"clock": "manual", "provisioning_delay": 60}  # so an order is seen while it is one
        yield {
            dialect: (stack.enter_context(running(dialect=dialect, **options, webhook_route={HOOKS: receiver.url})), receiver)
            for dialect in ("spec", "live")
        }


@pytest.fixture
def stage(emulators: dict[str, tuple[Any, Receiver]], dialect: str) -> Iterator[ApiHarness]:
    """A fresh account in the dialect of the test."""
    emulator, receiver = emulators[dialect]
    with ApiHarness(emulator, dialect, receiver) as ready:
        yield ready

"""The pytest plugin. It loads nothing of the package until a test asks for one of its fixtures.

Each test has an emulator of its own, in the process of the test; nothing is left behind.
"""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi_hosting.client.client import Client
    from pulumi_hosting.testing.doubles import HostingAccount, HostingClock, HostingEmulator

_MARKERS = (
    "hosting_emulator(**options): options of the fixture `hosting_emulator`: dialect, seed, now, …",
    "hosting_data(sections): what the account starts with: sections of an account file, or its path",
    "hosting_fault(action, **matching): a fault that is armed at the start; the first mark comes first",
)
_NUMBERS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.fixture
def hosting_emulator(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[HostingEmulator]:
    """The API with a fresh account, in this process: a ``HostingEmulator``, as ``doubles.py`` describes it.

    Locks, notes and the rate limit of the test's clients are in a directory of its own.
    """
    from pulumi_hosting.testing.doubles import HostingEmulator  # who asks for none, does not wait for it

    directory = tmp_path_factory.getbasetemp() / f"hosting-{next(_NUMBERS)}"
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(directory))
    options = {
        name: value
        for marker in reversed([*request.node.iter_markers("hosting_emulator")])
        for name, value in marker.kwargs.items()
    }
    data = request.node.get_closest_marker("hosting_data")
    emulator = HostingEmulator(data.args[0] if data else None, runtime_dir=directory, **options)
    for marker in reversed([*request.node.iter_markers("hosting_fault")]):
        emulator.fault(*marker.args, **marker.kwargs)
    armed = _armed(emulator)
    yield emulator
    emulator.close()
    for fault in sorted(armed & _armed(emulator)):
        sent = ", ".join(dict.fromkeys(emulator.account.requests)) or "nothing"
        step = f"correct its method or path; the test sent {sent}"
        warnings.warn(f"hosting_fault {fault} changed no answer. Next: {step}", stacklevel=1)


def _armed(emulator: HostingEmulator) -> set[str]:
    """The faults that are armed, with what is left of their ``times``."""
    return {
        f"of {row['method'] or 'any method'}, {row['path'] or 'any path'}, times={row['times']}"
        for row in emulator.control("GET", "/faults")
    }


@pytest.fixture
def hosting_client(hosting_emulator: HostingEmulator) -> Iterator[Client]:
    """A client of the emulator with its live key. It never sleeps: its pauses move the emulator's clock."""
    with hosting_emulator.client() as client:
        yield client


@pytest.fixture
def hosting_account(hosting_emulator: HostingEmulator) -> HostingAccount:
    """What is alive on the emulator's account, and what was charged."""
    return hosting_emulator.account


@pytest.fixture
def hosting_clock(hosting_emulator: HostingEmulator) -> HostingClock:
    """The emulator's clock, which stands still until it is moved."""
    return hosting_emulator.clock

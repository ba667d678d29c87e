"""Machines that share a store: the run that is killed is on one, and the runs after it are on another.

The store's clock is the account's. A machine that was killed asks the store nothing more, so what it held
stays held until its leases end.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import fakeredis

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import redis_store
from pulumi_hosting.client.redis_store import Redis
from pulumi_hosting.client.shared_store import StoreUnavailable
from tests.crash.killing import KillingNetwork

URL = Secret("redis://store.example.com/0")
VARIABLE = "CRASH_MACHINES"
"""Set where runs are on machines that share a store, in the processes of the matrix too."""
T = TypeVar("T")


class Machines:
    """``network``: what the present run sends through; it has the time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.network: KillingNetwork | None = None
        self.server = fakeredis.FakeServer()
        known = fakeredis.FakeRedis(server=self.server)
        known.hset("hosting:server", mapping={"run": "unknown", "since": "1"})

    def now(self) -> float:
        return 1_000_000.0 + (self.network.monotonic() if self.network else 0.0)

    def another(self) -> None:
        """The next runs are on a machine that has none of the files of those before."""
        self.number += 1
        os.environ["HOSTING_RUNTIME_DIR"] = str(self.folder / f"machine-{self.number}")
        redis_store._stores[URL] = _Machine(self)


class _Machine(Redis):
    def __init__(self, machines: Machines) -> None:
        self.machines, self.of_run = machines, machines.number
        super().__init__(URL, fakeredis.FakeRedis(server=machines.server))

    def is_woken(self, key: str, seconds: float) -> bool:
        assert self.machines.network is not None
        self.machines.network.sleep(max(0.01, seconds))
        return False

    def _ask(self, question: Callable[[], T]) -> T:
        network = self.machines.network
        if self.of_run != self.machines.number or (network is not None and network.is_dead):
            raise StoreUnavailable("the machine was killed")
        return super()._ask(question)


current: list[Machines] = []
"""The machines of the present cell, if they share a store."""


@contextmanager
def sharing(folder: Path) -> Iterator[None]:
    """Within, all runs share a store."""
    machines = Machines(folder)
    current.append(machines)
    try:
        with (
            patch.dict(os.environ, HOSTING_STORE=URL.reveal()),
            patch.dict(redis_store._stores),
            patch.object(redis_store, "elapsed", machines.now),
            patch.object(redis_store, "_keep_beating", lambda found: None),
            patch("time.time", machines.now),
        ):
            machines.another()
            yield
    finally:
        current.remove(machines)


def joined(network: KillingNetwork) -> None:
    """An account begins."""
    for machines in current:
        machines.network = network


def another() -> None:
    """The run was killed: the next ones are on another machine."""
    for machines in current:
        machines.another()

"""A declaration of a server against an emulator whose time stands still, and processes that die where a test says."""

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import running
from pulumi_hosting.planning import engine
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.resources.server import ServerState
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.clock import Clock
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

GOOD: dict[str, Any] = {"tariff_id": 1, "os": "debian-12", "name": "web-1"}


SHARED = ("ownership", "reads", "clock", "declared_mode", "scope", "strict", "poll_interval")
"""What a session has; everything else is a request's."""
_MACHINES = itertools.count()


class Killed(BaseException):
    """The process died here; nothing of it may catch this."""


@dataclass
class Dying(httpx.BaseTransport):
    """Real HTTP; dies at exchange ``at``, before it is sent or after it was processed."""

    at: int | None = None
    after: bool = True
    sent: list[str] = field(default_factory=list)
    inner: httpx.BaseTransport = field(default_factory=httpx.HTTPTransport)
    kill_after: tuple[str, int] | None = None
    """A request line, and how many of them are processed before the end."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        number = len(self.sent)
        self.sent.append(f"{request.method} {request.url.path}")
        if number == self.at and not self.after:
            raise Killed
        response = self.inner.handle_request(request)
        if number == self.at or (self.kill_after and self.sent.count(self.kill_after[0]) == self.kill_after[1]):
            response.read()
            response.close()
            raise Killed
        return response

    def close(self) -> None:
        self.inner.close()


class Together(httpx.BaseTransport):
    """Real HTTP; requests of one method and path leave when all of their threads have come that far, and are answered in any order."""

    def __init__(self, barrier: threading.Barrier, path: str, inner: httpx.BaseTransport | None = None) -> None:
        self.barrier, self.path, self.inner = barrier, path, inner or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith(self.path):
            self.barrier.wait(20)
            answer = self.inner.handle_request(request)
            answer.read()
            self.barrier.wait(20)  # both were processed before either looks again
            return answer
        return self.inner.handle_request(request)

    def close(self) -> None:
        self.inner.close()


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results; what fails is a result too."""

    def result(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  # the test judges it
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return [*pool.map(result, works)]


@dataclass
class EmulatorClock(Clock):
    """Sleeping moves the emulator's time, so that nothing is waited for."""

    control: Control
    elapsed: float = 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        self.control("POST", "/clock", {"advance": seconds})


@dataclass
class House:
    """An account and the means to declare things on it, each time as a new process that remembers nothing."""

    emulator: Any
    control: Control
    home: Path
    told: list[str] = field(default_factory=list)
    transports: list[Dying] = field(default_factory=list)

    def reset(self) -> None:
        """A fresh account, and a machine that knows nothing of the one before: ids begin anew."""
        self.control("POST", "/reset", {})
        self.another_machine()

    def another_machine(self) -> None:
        """From now on everything runs where no local file of the runs before is seen."""
        os.environ["HOSTING_RUNTIME_DIR"] = str(self.home / f"run-{next(_MACHINES)}")

    def context(
        self, *, identity: str = "pulumi:t/dev/server/web-1", owned: frozenset[str] = frozenset(), key: str | None = None, **more: Any
    ) -> Request:
        transport = more.pop("transport", None) or Dying()
        self.transports.append(transport)
        client = more.pop("client", None) or Client(
            key or self.emulator.live_key, self.emulator.base_url, transport=transport, sleep=lambda seconds: None
        )
        shared = {name: more.pop(name) for name in SHARED if name in more}
        session = Session(client, **{"clock": EmulatorClock(self.control), **shared})
        return Request(session, identity, owned=owned, info=self.told.append, warn=self.told.append, **more)

    def order(self, inputs: dict[str, Any] | None = None, **context: Any) -> ServerState:
        checked = engine.check(SERVER, inputs or GOOD)
        assert not checked.failures
        state: ServerState = engine.create(self.context(**context), SERVER, checked.inputs)
        return state

    def arm(self, action: dict[str, Any], path: str = "^/servers$", method: str = "POST", **more: Any) -> None:
        self.control("POST", "/faults", {"method": method, "path": path, "action": action, **more})

    def read_as(self, **readings: Any) -> None:
        self.control("PATCH", "/service", {"readings": readings})

    @property
    def living(self) -> list[dict[str, Any]]:
        return [server for server in self.control("GET", "/objects")["servers"] if server["status"] not in ("cancelled", "terminated")]

    @property
    def charges(self) -> int:
        """Purchases of servers that were not returned."""
        rows = [
            row
            for row in self.control.ledger()
            if row["operation"] in ("create_server", "order", "refund", "delete_server") or row["type"] in ("payment", "refund")
        ]
        return sum(1 if row["direction"] == "debit" else -1 for row in rows if row["type"] in ("payment", "refund"))


@pytest.fixture(scope="session")
def standing() -> Iterator[Any]:
    """One emulator for many tests: each begins with a fresh account on it."""
    with running(clock="manual", provisioning_delay=30) as emulator:
        yield emulator


@pytest.fixture
def house(standing: Any, tmp_path: Path) -> Iterator[House]:
    made = House(standing, Control(standing.control_url), tmp_path)
    made.control("POST", "/reset", {})
    made.control("DELETE", "/faults")
    yield made
    for transport in made.transports:
        transport.close()


Declare = Callable[..., ServerState]

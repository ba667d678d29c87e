"""Resources on an account in this process, and processes that are killed where a test says."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.exactly_once import local_files, purchase_journal
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.provider.failures import WORDS
from pulumi_hosting.resources.server_fields import ServerState
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session
from tests.support.account import Account, AccountView

GOOD: dict[str, Any] = {"tariff_id": 1, "os": "debian-12", "name": "web-1"}
SHARED = ("ownership", "reads", "clock", "declared_mode", "scope", "strict", "poll_interval")
"""What a session has; everything else is a request's."""
_MACHINES = itertools.count()


class ProcessKilled(BaseException):
    """The process was killed here; nothing of it may catch this."""


@dataclass
class KillingTransport(httpx.BaseTransport):
    """Kills the process at request number ``at``, before it is sent or after it was processed."""

    at: int | None = None
    after: bool = True
    sent: list[str] = field(default_factory=list)
    inner: httpx.BaseTransport | None = None
    """The way to the account; :meth:`ResourceHarness.context` sets it."""
    kill_after: tuple[str, int] | None = None
    """A request line, and how many of them are processed before the process is killed."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert self.inner is not None
        number = len(self.sent)
        self.sent.append(f"{request.method} {request.url.path}")
        if number == self.at and not self.after:
            raise ProcessKilled
        response = self.inner.handle_request(request)
        if number == self.at or (
            self.kill_after and self.sent.count(self.kill_after[0]) == self.kill_after[1]
        ):
            raise ProcessKilled
        return response


@dataclass
class AtTheOrder(KillingTransport):
    """``meanwhile`` happens once, just before the first request of that ``line`` leaves."""

    line: str = ""
    meanwhile: Callable[[], Any] = lambda: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if f"{request.method} {request.url.path}" == self.line and self.line not in self.sent:
            self.meanwhile()
        return super().handle_request(request)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is on a machine of its own: nothing is locked between them."""
    monkeypatch.setattr(local_files, "lock", lambda *_, **__: nullcontext())


@dataclass
class SimultaneousTransport(httpx.BaseTransport):
    """POST requests to one path leave when all of their threads have come that far, and are answered in
    any order.
    """

    barrier: threading.Barrier
    path: str
    inner: httpx.BaseTransport | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert self.inner is not None
        if request.method != "POST" or not request.url.path.endswith(self.path):
            return self.inner.handle_request(request)
        self.barrier.wait()
        answer = self.inner.handle_request(request)
        self.barrier.wait()  # both were processed before either looks again
        return answer


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
class EmulatorClock(RunClock):
    """Sleeping moves the account's time, so that nothing is waited for."""

    control: Callable[..., Any]
    elapsed: float = 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        self.control("POST", "/clock", {"advance": seconds})


@dataclass
class ResourceHarness(AccountView):
    """An account and the means to declare resources on it, each time as a new process that remembers
    nothing.
    """

    account: Account
    home: Path
    messages: list[str] = field(default_factory=list)
    """What the processes reported."""
    transports: list[Any] = field(default_factory=list)
    """Of the processes, in order."""

    def __post_init__(self) -> None:
        self.control = self.account.control

    def fault(
        self, action: dict[str, Any], path: str = "^/servers$", method: str = "POST", **more: Any
    ) -> None:
        """What happens to the next request of this kind; to orders of servers, where nothing else is said."""
        self.account.fault(action, path=path, method=method, **more)

    def reset(self) -> None:
        """A fresh account, and a machine that knows nothing of the one before: ids begin again."""
        self.control("POST", "/reset", {})
        self.another_machine()

    def roomy_key(self, mode: str = "live") -> str:
        """A key whose rate limits are not in the way."""
        limits = {"rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
        key: str = self.control("POST", "/keys", {"mode": mode, "scopes": "full", **limits})["key"]
        return key

    def another_machine(self) -> None:
        """From now on everything runs where no local file of the runs before is seen."""
        os.environ["HOSTING_RUNTIME_DIR"] = str(self.home / f"run-{next(_MACHINES)}")

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """What runs inside runs on another machine, and waits for no request of this one."""
        here = os.environ["HOSTING_RUNTIME_DIR"]
        self.another_machine()
        try:
            yield
        finally:
            os.environ["HOSTING_RUNTIME_DIR"] = here

    def context(
        self,
        *,
        identity: str = "pulumi:t/dev/server/web-1",
        owned: frozenset[str] = frozenset(),
        key: str | None = None,
        transport: Any = None,
        **more: Any,
    ) -> Request:
        """A process. ``transport``: what stands between it and the account."""
        transport = transport or KillingTransport()
        transport.inner = self.account.transport()
        self.transports.append(transport)
        client = more.pop("client", None)
        if client is None:
            client = Client(
                key or self.account.live_key,
                self.account.base_url,
                transport=transport,
                sleep=lambda seconds: None,
            )
            client.words = WORDS
            client.rate_limiter.sleep = time.sleep  # requests of two processes that leave together
        shared = {name: more.pop(name) for name in SHARED if name in more}
        session = Session(client, **{"clock": EmulatorClock(self.control), **shared})
        return Request(
            session, identity, owned=owned, info=self.messages.append, warn=self.messages.append, **more
        )

    def order(self, inputs: dict[str, Any] | None = None, **context: Any) -> ServerState:
        checked = check(SERVER, inputs or GOOD)
        assert not checked.failures
        request = self.context(**context)
        state: ServerState = apply.create(request, SERVER, checked.inputs)
        purchase_journal.reported(request.unreported)  # as a frontend does, with the state saved
        return state


@pytest.fixture
def harness(tmp_path: Path) -> ResourceHarness:
    return ResourceHarness(Account(provisioning_delay=30), tmp_path)


Declare = Callable[..., ServerState]


@pytest.fixture
def server(harness: ResourceHarness) -> str:
    return harness.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id


@pytest.fixture
def any_dialect(dialect: str, tmp_path: Path) -> ResourceHarness:
    """An account in the dialect of the document, and one in that of a live deployment."""
    return ResourceHarness(Account(provisioning_delay=30, dialect=dialect), tmp_path)

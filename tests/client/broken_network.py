"""A network in memory below the client's HTTP, in virtual time. Connections break where a fault says so."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import httpcore
import httpx

from pulumi_hosting.client import httpx_connection
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.rate_limit.state_file import WindowsInMemory
from tests.client.support import KEY, FakeTime, dice

HOST, PORT = "127.0.0.1", 1
TIMEOUT, DEADLINE, RATE_LIMIT_TIMEOUT = 30.0, 120.0, 60.0
LONGEST_CALL = DEADLINE + RATE_LIMIT_TIMEOUT + 1
MOST_READS = 5000
"""More pieces than any answer has that the client reads to its end."""


@dataclass(frozen=True)
class Pause:
    """The service sends nothing for so many seconds."""

    seconds: float


SILENCE = Pause(float("inf"))
Event = bytes | Pause | Exception
"""What a read of a connection meets; after the last event the service has closed it."""
Talk = Callable[[bytes], Iterable[Event]]
"""What the service sends after a request."""


@dataclass
class Network(httpcore.NetworkBackend):
    """``connecting`` and ``writing``: what happens then, instead of success."""

    time: FakeTime
    talk: Talk = field(default=lambda request: ())
    connecting: Pause | Exception | None = None
    writing: Pause | Exception | None = None
    requests: list[bytes] = field(default_factory=list)
    places: set[tuple[str, int]] = field(default_factory=set)
    reads: int = 0

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *_: Any) -> "_Connection":
        self.places.add((host, port))
        if isinstance(self.connecting, Pause):
            self.wait(self.connecting, timeout, httpcore.ConnectTimeout)
        elif self.connecting is not None:
            raise self.connecting
        return _Connection(self)

    def wait(self, pause: Pause, timeout: float | None, error: type[Exception]) -> None:
        assert timeout is not None, "a wait without an end"
        if pause.seconds > timeout:
            self.time.now += timeout
            raise error
        self.time.now += pause.seconds


class _Connection(httpcore.NetworkStream):
    def __init__(self, network: Network) -> None:
        self._network = network
        self._sent = b""
        self._events: Iterator[Event] | None = None
        self._rest = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        network = self._network
        if self._events is not None or not self._sent:
            self._sent, self._events = b"", None
            network.requests.append(b"")
        self._sent += buffer
        network.requests[-1] = self._sent
        if isinstance(network.writing, Pause):
            network.wait(network.writing, timeout, httpcore.WriteTimeout)
        elif network.writing is not None:
            raise network.writing

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._network.reads += 1
        if self._network.reads > MOST_READS:
            raise httpcore.ReadError("the client reads without end")
        if self._events is None:
            self._events = iter(self._network.talk(self._sent))
        while not self._rest:
            event = next(self._events, None)
            if event is None:
                return b""
            if isinstance(event, Exception):
                raise event
            if isinstance(event, Pause):
                self._network.wait(event, timeout, httpcore.ReadTimeout)
            else:
                self._rest = event
        found, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return found

    def close(self) -> None:
        """Nothing is open."""

    def get_extra_info(self, info: str) -> Any:
        return info == "is_readable" or None  # the service closes an idle connection, or has sent too much


def client_on(network: Network) -> Client:
    """A client whose requests go through this network."""
    transport = httpx.HTTPTransport(verify=False)  # plain http; certificates take long to load
    pool: Any = transport._pool
    pool._network_backend = network
    client = Client(
        KEY,
        f"http://{HOST}:{PORT}/v1",
        transport=transport,
        timeout=TIMEOUT,
        deadline=DEADLINE,
        rate_limit_timeout=RATE_LIMIT_TIMEOUT,
        clock=network.time.clock,
        sleep=network.time.sleep,
        rng=dice(),
    )
    client.rate_limiter.store = WindowsInMemory()
    return client


def in_time_of(network: Network) -> Any:
    """While this is entered, the time limits of exchanges follow the network's clock."""
    clock = mock.Mock(monotonic=network.time.clock)
    return mock.patch.object(httpx_connection, "time", clock)

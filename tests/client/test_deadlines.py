"""Each wait of a connection gets what is left of the time for its exchange. With a clock that only moves when
a connection waits; real sockets are in ``test_time_limits``.
"""

import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx
import pytest

from pulumi_hosting.client import httpx_connection as deadlines


class Clock:
    """Stands in for the module ``time``. Exact in binary, so that the tests can compare."""

    def __init__(self) -> None:
        self.now = 1024.0

    def monotonic(self) -> float:
        return self.now


class Stream(httpcore.NetworkStream):
    """Notes what each wait may last, and takes ``takes`` seconds for it."""

    def __init__(self, clock: Clock, takes: float = 0.0) -> None:
        self.clock, self.takes = clock, takes
        self.calls: list[tuple[Any, ...]] = []

    def _wait(self, *call: Any) -> None:
        self.calls.append(call)
        self.clock.now += self.takes

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._wait("read", max_bytes, timeout)
        return b"answer"

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._wait("write", buffer, timeout)

    def close(self) -> None:
        self._wait("close")

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._wait("start_tls", ssl_context, server_hostname, timeout)
        return self

    def get_extra_info(self, info: str) -> Any:
        return f"the {info}"


class Backend(httpcore.NetworkBackend):
    """Connects to the addresses of ``works``; each attempt takes ``takes`` seconds."""

    def __init__(self, clock: Clock, works: Iterable[str], takes: float = 0.0) -> None:
        self.clock, self.works, self.takes = clock, works, takes
        self.calls: list[tuple[Any, ...]] = []
        self.stream = Stream(clock)
        self.failure: type[Exception] = httpcore.ConnectError

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        self.calls.append((host, port, timeout, local_address, socket_options))
        self.clock.now += self.takes
        if host not in self.works:
            raise self.failure(host)
        return self.stream


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadlines, "time", clock)
    return clock


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the name of every host resolves to."""
    found: list[str] = []

    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        assert (host, port, options) == ("api.example.com", 443, {"type": socket.SOCK_STREAM})
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return found


def connect(backend: Backend, timeout: float | None = None) -> httpcore.NetworkStream:
    return deadlines._Backend(backend).connect_tcp("api.example.com", 443, timeout, "192.0.2.9", [(1, 2, 3)])


# --- a stream


def test_without_a_time_for_the_exchange_the_given_time_is_kept(clock: Clock) -> None:
    inner = Stream(clock, takes=60)
    stream = deadlines._Stream(inner)
    assert stream.read(10, 5) == b"answer"
    assert stream.read(10) == b"answer"
    stream.write(b"body", 4)
    assert inner.calls == [("read", 10, 5), ("read", 10, None), ("write", b"body", 4)]


def test_every_wait_gets_at_most_what_is_left(clock: Clock) -> None:
    inner = Stream(clock, takes=3)
    stream = deadlines._Stream(inner)
    context = ssl.create_default_context()
    with deadlines.until(10):
        stream.read(10, 5)
        secure = stream.start_tls(context, "api.example.com", 6)
        secure.write(b"body", None)
        secure.read(10, 60)
    assert inner.calls == [
        ("read", 10, 5),
        ("start_tls", context, "api.example.com", 6),
        ("write", b"body", 4),
        ("read", 10, 1),
    ]
    assert isinstance(secure, deadlines._Stream)


def test_nothing_is_waited_for_when_no_time_is_left(clock: Clock) -> None:
    inner = Stream(clock)
    stream = deadlines._Stream(inner)
    over = "^the time for this exchange is over$"
    with deadlines.until(10):
        clock.now += 10
        with pytest.raises(httpcore.ReadTimeout, match=over):
            stream.read(10, 5)
        with pytest.raises(httpcore.WriteTimeout, match=over):
            stream.write(b"body", 5)
        with pytest.raises(httpcore.ConnectTimeout, match=over):
            stream.start_tls(ssl.create_default_context())
    assert inner.calls == []
    stream.read(10, 5)  # the next exchange has its own time
    assert inner.calls == [("read", 10, 5)]


def test_a_long_request_is_written_in_pieces_and_the_clock_is_read_for_each(clock: Clock) -> None:
    inner = Stream(clock, takes=3)
    body = bytes(range(256)) * 80  # 2.5 pieces of 8 KiB
    with deadlines.until(10):
        deadlines._Stream(inner).write(body, 60)
    assert [(len(call[1]), call[2]) for call in inner.calls] == [(8192, 10), (8192, 7), (4096, 4)]
    assert b"".join(call[1] for call in inner.calls) == body


def test_the_head_of_a_request_goes_with_its_body_or_before_the_answer_is_read(clock: Clock) -> None:
    inner = Stream(clock)
    stream, head = deadlines._Stream(inner), b"POST / HTTP/1.1\r\n\r\n"
    stream.write(head, 5)
    stream.write(b"{}", 4)
    stream.write(head, 5)
    stream.read(10, 3)
    assert inner.calls == [("write", head + b"{}", 4), ("write", head, 3), ("read", 10, 3)]


def test_the_rest_of_a_stream_is_that_of_the_connection(clock: Clock) -> None:
    inner = Stream(clock)
    stream = deadlines._Stream(inner)
    assert stream.get_extra_info("socket") == "the socket"
    stream.close()
    assert inner.calls == [("close",)]


# --- a connection


def test_each_address_is_tried_with_its_share_of_the_time(clock: Clock, addresses: list[str]) -> None:
    addresses.extend(["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"])
    backend = Backend(clock, ["192.0.2.3"], takes=2)
    with deadlines.until(12):
        stream = connect(backend, 11)
        stream.read(10, 60)
    rest = ("192.0.2.9", [(1, 2, 3)])
    assert backend.calls == [
        ("192.0.2.1", 443, 11 / 3, *rest),
        ("192.0.2.2", 443, 5, *rest),
        ("192.0.2.3", 443, 8, *rest),
    ]
    assert backend.stream.calls == [("read", 10, 6)]  # what it connects is bounded too


def test_an_address_that_does_not_answer_in_time_is_not_the_last(clock: Clock, addresses: list[str]) -> None:
    addresses.extend(["192.0.2.1", "192.0.2.2"])
    backend = Backend(clock, ["192.0.2.2"])
    backend.failure = httpcore.ConnectTimeout
    connect(backend, None)
    assert [call[2] for call in backend.calls] == [None, None]


@pytest.mark.parametrize("failure", [httpcore.ConnectError, httpcore.ConnectTimeout])
def test_the_failure_of_the_last_address_is_the_one_that_is_raised(
    clock: Clock, addresses: list[str], failure: type[Exception]
) -> None:
    addresses.extend(["192.0.2.1", "192.0.2.2"])
    backend = Backend(clock, [])
    backend.failure = failure
    with pytest.raises(failure, match=r"192\.0\.2\.2"):
        connect(backend, 60)
    assert len(backend.calls) == 2


def test_no_address_is_tried_when_no_time_is_left(clock: Clock, addresses: list[str]) -> None:
    addresses.append("192.0.2.1")
    backend = Backend(clock, ["192.0.2.1"])
    with deadlines.until(10):
        clock.now += 10
        with pytest.raises(httpcore.ConnectTimeout):
            connect(backend)
    assert backend.calls == []


def test_a_host_without_an_address_is_not_reached(clock: Clock, addresses: list[str]) -> None:
    with pytest.raises(httpcore.ConnectError, match=r"^the host has no address$"):
        connect(Backend(clock, []))


def test_a_name_that_is_not_known_is_a_failure_to_connect(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(httpcore.ConnectError, match="Name or service not known") as caught:
        connect(Backend(clock, []))
    assert caught.value.__context__ is None


# --- a client


def test_all_connections_of_a_client_are_bounded_those_through_proxies_too() -> None:
    mounts: dict[str, httpx.BaseTransport | None] = {
        "all://direct.example": None,
        "all://other.example": httpx.MockTransport(lambda _: httpx.Response(200)),
        "http://": httpx.HTTPTransport(proxy="http://proxy.example:3128"),
        "https://": httpx.HTTPTransport(),
    }
    with httpx.Client(mounts=mounts) as client:
        deadlines.bound(client)
        pools = [
            transport._pool
            for transport in (client._transport, *client._mounts.values())
            if isinstance(transport, httpx.HTTPTransport)
        ]
        assert len(pools) == 3
        for pool in pools:
            backend = pool._network_backend
            assert isinstance(backend, deadlines._Backend)
            assert isinstance(backend._inner, httpcore.NetworkBackend)


def test_the_names_of_httpx_that_hold_its_connections() -> None:
    """None of them is public: a httpx that renames one fails here first."""
    with httpx.Client() as client:
        assert isinstance(client._transport, httpx.HTTPTransport)
        assert isinstance(client._mounts, dict)
        assert isinstance(client._transport._pool, httpcore.ConnectionPool)
        assert isinstance(client._transport._pool._network_backend, httpcore.NetworkBackend)


@pytest.mark.parametrize("renamed", ["_transport", "_mounts", "_pool", "_network_backend"])
def test_a_httpx_that_renamed_one_is_reported(renamed: str, caplog: pytest.LogCaptureFixture) -> None:
    with httpx.Client() as client:
        transport: Any = client._transport
        holder = {"_pool": transport, "_network_backend": transport._pool}.get(renamed, client)
        kept = vars(holder).pop(renamed)
        try:
            deadlines.bound(client)
        finally:
            vars(holder)[renamed] = kept
    (line,) = caplog.messages
    assert line.startswith(f"httpx {httpx.__version__} does not show its connections (")
    assert "a call may last longer than timeout and deadline. Next: " in line

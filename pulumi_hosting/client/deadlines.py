"""Sockets whose every wait ends in time: the network backend that the client's connections are made of.

httpx bounds each single wait, so a peer that sends one byte of a header now and then holds a call for hours.
Here a thread says when its exchange must be over (:func:`until`), and each connect, handshake, read and write
waits at most for what is left of that.
"""

import logging
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl


log = logging.getLogger("pulumi_hosting")

_PIECE = 8 * 1024  # bytes written between two looks at the clock


class _Limit(threading.local):
    at: float | None = None


_limit = _Limit()


@contextmanager
def until(seconds: float) -> Iterator[None]:
    """Within, no wait of this thread on a bounded connection lasts beyond ``seconds`` from now, all
    together."""
    _limit.at = time.monotonic() + seconds
    try:
        yield
    finally:
        _limit.at = None


def _left(timeout: float | None, error: type[Exception]) -> float | None:
    """Seconds that may be waited; ``error`` is raised when none are left."""
    if _limit.at is None:
        return timeout
    left = _limit.at - time.monotonic()
    if left <= 0:
        raise error("the time for this exchange is over")
    return left if timeout is None else min(timeout, left)


def bound(client: httpx.Client) -> None:
    """Makes all connections of ``client``, those through proxies too, of bounded sockets. httpx has no public
    names for them: if a later one renames them, it says so, since each wait alone is bounded then.
    """
    try:
        for transport in (client._transport, *client._mounts.values()):
            pool: Any = getattr(transport, "_pool", None)
            is_pooled = isinstance(transport, httpx.HTTPTransport) or isinstance(
                pool, httpcore.ConnectionPool
            )
            if is_pooled and not isinstance(pool._network_backend, _Backend):
                pool._network_backend = _Backend(pool._network_backend)
    except AttributeError as error:
        log.warning(
            "httpx %s does not show its connections (%s): a call may last longer than timeout and deadline. "
            "Next: install httpx 0.28",
            httpx.__version__,
            error,
        )


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._inner.write(buffer[start : start + _PIECE], _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: "ssl.SSLContext", server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(
            self._inner.start_tls(ssl_context, server_hostname, _left(timeout, httpcore.ConnectTimeout))
        )

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        # One address after the other: the socket library would give each of them the whole time.
        addresses = _addresses(host, port)
        for number, address in enumerate(addresses):
            left = _left(timeout, httpcore.ConnectTimeout)
            share = None if left is None else left / (len(addresses) - number)
            try:
                return _Stream(self._inner.connect_tcp(address, port, share, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses) - 1:
                    raise
        raise httpcore.ConnectError("the host has no address")


def _addresses(host: str, port: int) -> list[str]:
    failure: str
    try:
        return list(
            dict.fromkeys(
                str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        )
    except OSError as error:
        failure = str(error)
    raise httpcore.ConnectError(failure)

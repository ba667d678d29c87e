"""What the transport does with httpx: connections, the bytes of a request and an answer, and the reasons of a
failure. Loaded with the first request.
"""

import logging
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
from httpx import AsyncClient as AsyncClient
from httpx import Client as Client
from httpx import Request as Request

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.client.exceptions import (
    ConfigurationError,
    HostingError,
    InvalidResponse,
    TimedOut,
    TransportError,
)
from pulumi_hosting.client.requests import MAX_ANSWER_BYTES, HttpRequest, HttpResponse
from pulumi_hosting.client.settings import OUR_HEADERS, Settings

log = logging.getLogger("pulumi_hosting")

_LATE = {
    "ConnectTimeout": "no connection to",
    "PoolTimeout": "no free connection to",
    "WriteTimeout": "the request could not be sent to",
    "ReadTimeout": "no whole answer from",
}
"""What did not come in time, by the class of the failure."""
_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_UNSENT = (*_NO_CONNECTION, httpx.ProxyError, httpx.UnsupportedProtocol)
# Shorter than the five seconds after which common servers close an idle connection: a mutation without a key
# must not be lost in that gap.
KEEPALIVE_SECONDS = 2.0


Connection = Client | httpx.BaseTransport
AsyncConnection = AsyncClient | httpx.AsyncBaseTransport
"""The caller's client, or our own connections: those of a client would prepare cookies and redirects for each
request, which takes as long as the request itself.
"""


def facts_of(
    connection: Connection | AsyncConnection, request: HttpRequest, request_id: str, agent: str, wait: float
) -> dict[str, Any]:
    """The request for httpx, without its body. Its headers are those of the caller's client, and ours, which
    take precedence: the key is in them. Each wait takes at most ``wait`` seconds.
    """
    theirs = connection.headers.multi_items() if isinstance(connection, Client | AsyncClient) else ()
    headers = httpx.Headers([(name, value) for name, value in theirs if name.lower() not in OUR_HEADERS])
    identity = {"User-Agent": agent, "Accept-Encoding": "gzip"}
    headers.update({**request.headers, "X-Request-ID": request_id, **identity})
    return {
        "method": request.operation.method,
        "url": request.url,
        "params": request.query or None,
        "headers": headers,
        "extensions": {"timeout": httpx.Timeout(wait).as_dict()},
    }


def opened(settings: Settings, transport: httpx.BaseTransport | None) -> httpx.BaseTransport:
    """Connections to this deployment, of bounded sockets; those of the caller's ``transport`` if there is
    one."""
    made = transport or httpx.HTTPTransport(**_options(settings))
    bound(made)
    return made


def async_opened(settings: Settings, transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncBaseTransport:
    """The same for the tasks of one event loop. Its sockets need no bounds: a task is cancelled in time."""
    return transport or httpx.AsyncHTTPTransport(**_options(settings))


def _options(settings: Settings) -> dict[str, Any]:
    tls = settings.base_url.startswith("https:")
    return {
        "verify": tls_context(settings.ca_file) if tls else False,
        # A proxy would read what goes to this machine over plain http.
        "proxy": _proxy(httpx.URL(settings.base_url).host) if tls else None,
        "limits": httpx.Limits(
            max_connections=None, max_keepalive_connections=16, keepalive_expiry=KEEPALIVE_SECONDS
        ),
    }


def _proxy(host: str) -> str | None:
    """The proxy that the environment names for https to this host."""
    proxies = getproxies()
    found = None if proxy_bypass(host) else proxies.get("https") or proxies.get("all")
    return f"http://{found}" if found and "://" not in found else found


def read(
    operation: Operation,
    response: httpx.Response,
    host: str,
    is_over: Callable[[], bool],
    arrived: list[bytes] | None = None,
) -> HttpResponse | HostingError:
    """The whole answer, or why there is none: returned, so that no frame of the error holds a part of the
    body. ``arrived``: what :func:`received` has read of it.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if arrived is not None:
        pieces: Iterable[bytes] = arrived
    elif response.is_stream_consumed:  # an in-process transport has it all in memory already, unpacked
        pieces, encoding = response.iter_bytes(), ""
    else:
        pieces = response.iter_raw()
    if encoding in ("gzip", "x-gzip"):
        pieces = _unpacked(pieces)
    elif encoding not in ("", "identity"):
        raise httpx.DecodingError("an encoding that was not asked for")
    parts, size = [], 0
    for part in pieces:
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            what = f"the answer is larger than {MAX_ANSWER_BYTES // 1024 // 1024} MiB"
            return InvalidResponse(what, operation=operation.id, status=response.status_code)
        if is_over():
            return late(operation, "ReadTimeout", host)
        parts.append(part)
    return HttpResponse(response.status_code, response.headers, b"".join(parts))


async def received(response: httpx.Response) -> list[bytes] | None:
    """The body as it came, no more than an answer may have; None if it is in memory already."""
    if response.is_stream_consumed:
        return None
    parts, size = list[bytes](), 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            break
    return parts


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """gzip in pieces of bounded size, so that a small answer cannot fill the memory."""
    unpack, has_begun = _unpacker(), False
    for piece in pieces:
        while piece:
            if unpack.eof:  # a further member of the same file
                unpack = _unpacker()
            has_begun = True
            yield unpack.decompress(piece, 1024 * 1024)
            piece = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
    yield unpack.flush()
    if has_begun and not unpack.eof:
        raise httpx.DecodingError("the compressed answer ends early")


def _unpacker() -> "zlib._Decompress":
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def failure(operation: Operation, error: Exception, host: str) -> HostingError:
    """What went wrong in an attempt, in our words."""
    if _is_certificate(error):
        return ConfigurationError(
            f"the certificate of {host} is not trusted; nothing was sent. Next: check the "
            f"base URL, or pass ca_file"
        )
    unsent = isinstance(error, _UNSENT)
    if isinstance(error, httpx.TimeoutException):
        return late(operation, type(error).__name__, host, unsent=unsent)
    # Only the text of a failed connect is safe to repeat: those of protocol errors may hold header lines.
    why = clean_text(str(error), 200) if isinstance(error, httpx.ConnectError) else ""
    what = (
        f"{'cannot reach' if unsent else 'no usable answer from'} {host} "
        f"({type(error).__name__}{': ' if why else ''}{why})"
    )
    found = TransportError(what, outcome_unknown=operation.is_write and not unsent, operation=operation.id)
    found.is_final = not isinstance(
        error, httpx.HTTPError | httpx.StreamError | httpx.InvalidURL | zlib.error | OSError
    )
    return found


def _is_certificate(error: BaseException | None) -> bool:
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


@lru_cache(maxsize=8)
def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """The one context for all clients of this process: verified, TLS 1.2 or newer. Building it costs more
    than a hundred requests.
    """
    context: ssl.SSLContext | None = None
    with suppress(ssl.SSLError, OSError):  # refused below, so that our error has no context
        context = ssl.create_default_context(cafile=ca_file) if ca_file else httpx.create_ssl_context()
    if context is None:
        raise ConfigurationError(
            "the certificates could not be read: check ca_file (PEM form), SSL_CERT_FILE and SSL_CERT_DIR"
        )
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def late(operation: Operation, failure: str, host: str, *, unsent: bool = False) -> TimedOut:
    """The error of what did not come in time. ``failure``: the class of what httpx raised."""
    what = _LATE.get(failure, "no usable answer from")
    return TimedOut(
        f"{what} {host} in time",
        outcome_unknown=operation.is_write and not unsent,
        operation=operation.id,
    )


# --- sockets whose every wait ends in time
#
# httpx bounds each single wait, so a peer that sends one byte of a header now and then holds a call for
# hours. Here a thread says when its exchange must be over (:func:`until`), and each connect, handshake, read
# and write waits at most for what is left of that.

_PIECE = 8 * 1024  # bytes written between two looks at the clock


_limit = threading.local()


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
    at: float | None = getattr(_limit, "at", None)
    if at is None:
        return timeout
    left = at - time.monotonic()
    if left <= 0:
        raise error("the time for this exchange is over")
    return left if timeout is None else min(timeout, left)


def bound(connection: Connection) -> None:
    """Makes all connections, those through proxies too, of bounded sockets. httpx has no public names for
    them: if a later one renames them, it says so, since each wait alone is bounded then.
    """
    try:
        transports: list[httpx.BaseTransport | None]
        if isinstance(connection, Client):
            transports = [connection._transport, *connection._mounts.values()]
        else:
            transports = [connection]
        for transport in transports:
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
        self._inner, self._head = inner, b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._head:
            self.write(b"", timeout)
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # The head of a request waits for its body, or for the end: one packet in place of two.
        if buffer.endswith(b"\r\n\r\n") and not self._head:
            self._head = buffer
            return
        buffer, self._head = self._head + buffer, b""
        for start in range(0, len(buffer), _PIECE):
            self._inner.write(buffer[start : start + _PIECE], _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
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
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [*dict.fromkeys(str(address[0]) for *_, address in found)]
    except OSError as error:
        failure = str(error)
    raise httpcore.ConnectError(failure)

"""One request and its response over HTTP, through httpx.

Safe by construction: redirects are not followed, cookies not kept, netrc never read, proxies of the
environment used for https only, and an answer is read no further than :data:`MAX_ANSWER_BYTES`. Every failure
becomes a :class:`TransportError` that says whether the request may have been processed; the failure
underneath is not chained to it, since it may hold headers.
"""

import os
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.client.exceptions import (
    ConfigurationError,
    HostingError,
    InvalidResponse,
    TimedOut,
    TransportError,
)
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.client.settings import Settings

# httpx, ssl and cookies are loaded with the first request: whoever only checks arguments or reads help does
# not wait for them.
if TYPE_CHECKING:
    import ssl

    import httpx

MAX_ANSWER_BYTES = 16 * 1024 * 1024
# Shorter than the five seconds after which common servers close an idle connection: a mutation without a key
# must not be lost in that gap.
KEEPALIVE_SECONDS = 2.0
LOCATION = "hosting_location"
_LATE = {
    "ConnectTimeout": "no connection to",
    "PoolTimeout": "no free connection to",
    "WriteTimeout": "the request could not be sent to",
    "ReadTimeout": "no whole answer from",
}
"""What did not come in time, by the class of the failure."""
OUR_HEADERS = frozenset(
    ["accept", "accept-encoding", "authorization", "content-length", "content-type", "cookie", "host"]
).union(["idempotency-key", "transfer-encoding", "user-agent", "x-request-id"])
"""Headers that the client decides alone: those of these names in an ``http_client`` are not sent."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Status, headers (names in any case) and the whole body."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class HttpTransport:
    """Sends requests over kept-alive connections, from any thread. Nothing is opened before the first
    request.

    ``observer`` is called after each attempt, with the request and its response; None where there was none.
    """

    observer: "Callable[[HttpRequest, HttpResponse | None], None] | None" = None

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        transport: "httpx.BaseTransport | None" = None,
        http_client: "httpx.Client | None" = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._transport = transport
        self._own_client = http_client is None
        self._lock = threading.Lock()
        self._client: httpx.Client | None = http_client
        self._pid = os.getpid()
        if http_client is not None:
            from pulumi_hosting.client import deadlines

            deadlines.bound(http_client)

    def send(self, request: HttpRequest, request_id: str, stop_at: float) -> HttpResponse:
        """The answer, whatever its status. ``stop_at`` (by the clock) is when to give up; the attempt takes
        at most ``timeout`` seconds.

        Raises ``TransportError``, ``TimedOut``, ``InvalidResponse`` (an answer too large),
        ``ConfigurationError`` (certificate refused).
        """
        import httpx

        from pulumi_hosting.client import deadlines

        # Translated inside, raised outside of the except block: the failure underneath does not even become
        # __context__.
        failure: HostingError
        response: httpx.Response | None = None
        try:
            # Seconds for the whole attempt, and so for each wait in it.
            wait = max(0.001, min(self._settings.timeout, stop_at - self._clock()))
            with deadlines.until(wait):
                client = self._connected()
                response = client.send(
                    # Not by the client: it would add its cookies and parameters.
                    httpx.Request(
                        request.operation.method,
                        request.url,
                        params=request.query or None,
                        headers=self._headers(client, request.headers, request_id),
                        content=request.body,
                        extensions={"timeout": httpx.Timeout(wait).as_dict()},
                    ),
                    stream=True,
                    auth=None,  # the key is in the headers already
                    follow_redirects=False,
                )
                with closing(response):
                    found = self._read(request.operation, response, stop_at)
            if isinstance(found, HttpResponse):
                if self.observer is not None:
                    self.observer(request, found)
                return found
            failure = found
        except HostingError as error:
            failure = error
        except Exception as error:  # noqa: BLE001  # a transport of the caller's may raise anything
            failure = self._failure(request.operation, error)
        response = None  # nor may the frame of the failure hold it: its request carries the key
        if self.observer is not None:
            self.observer(request, None)
        raise failure

    def _headers(self, client: "httpx.Client", ours: Mapping[str, str], request_id: str) -> "httpx.Headers":
        """The headers of the client, and ours, which take precedence."""
        import httpx

        headers = httpx.Headers(
            [(name, value) for name, value in client.headers.multi_items() if name.lower() not in OUR_HEADERS]
        )
        headers.update({**ours, "X-Request-ID": request_id, **self._identity})
        return headers

    @property
    def _identity(self) -> Mapping[str, str]:
        return {"User-Agent": self._settings.user_agent, "Accept-Encoding": "gzip"}

    def close(self) -> None:
        """Closes the connections; the next request opens new ones. Those of the caller's own client stay."""
        if not self._own_client:
            return
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> "httpx.Client":
        with self._lock:
            if not self._own_client and self._pid != os.getpid():
                # Two processes on one connection would read each other's answers.
                raise ConfigurationError(
                    "http_client was made before this process was forked; nothing was sent. Next: make it, "
                    "and the Client, in the process that uses them"
                )
            # Connections cannot be shared with a forked child: it opens its own.
            if self._client is None or self._pid != os.getpid():
                self._client, self._pid = self._open(), os.getpid()
                # A client that is not closed closes its connections when it is collected.
                weakref.finalize(self, self._client.close)
            return self._client

    def _open(self) -> "httpx.Client":
        from http.cookiejar import DefaultCookiePolicy

        import httpx

        tls = self._settings.is_tls
        from pulumi_hosting.client import deadlines

        client = httpx.Client(
            transport=self._transport,
            verify=tls_context(self._settings.ca_file) if tls and self._transport is None else False,
            # A proxy would read what goes to this machine over plain http.
            trust_env=tls and self._transport is None,
            follow_redirects=False,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=16, keepalive_expiry=KEEPALIVE_SECONDS
            ),
            event_hooks={"response": [_hide_location]},
        )
        deadlines.bound(client)
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        return client

    def _read(
        self, operation: Operation, response: "httpx.Response", stop_at: float
    ) -> HttpResponse | HostingError:
        """The whole answer, or why there is none: returned, so that no frame of the error holds a part of the
        body.
        """
        parts: list[bytes] = []
        size = 0
        for part in _decoded(response):
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                return InvalidResponse(
                    f"{operation.id}: the answer is larger than {MAX_ANSWER_BYTES // 1024 // 1024} MiB",
                    operation=operation.id,
                    status=response.status_code,
                )
            if self._clock() > stop_at:
                return self._too_late(operation)
            parts.append(part)
        if LOCATION in response.extensions:
            response.headers["Location"] = response.extensions[LOCATION]
        return HttpResponse(response.status_code, response.headers, b"".join(parts))

    def _too_late(self, operation: Operation) -> TimedOut:
        return TimedOut(
            f"{operation.id}: {_LATE['ReadTimeout']} {self._settings.host} in time",
            outcome_unknown=operation.is_write,
            operation=operation.id,
        )

    def _failure(self, operation: Operation, error: Exception) -> HostingError:
        import httpx

        if _is_certificate(error):
            return ConfigurationError(
                f"the certificate of {self._settings.host} is not trusted; nothing was sent. Next: check the "
                f"base URL, or pass ca_file"
            )
        unsent = isinstance(
            error,
            httpx.ConnectError
            | httpx.ConnectTimeout
            | httpx.PoolTimeout
            | httpx.ProxyError
            | httpx.UnsupportedProtocol,
        )
        unknown = operation.is_write and not unsent
        host = self._settings.host
        if isinstance(error, httpx.TimeoutException):
            late = _LATE.get(type(error).__name__, "no usable answer from")
            return TimedOut(
                f"{operation.id}: {late} {host} in time", outcome_unknown=unknown, operation=operation.id
            )
        # Only the text of a failed connect is safe to repeat: those of protocol errors may hold header lines.
        why = clean_text(str(error), 200) if isinstance(error, httpx.ConnectError) else ""
        what = (
            f"{operation.id}: {'cannot reach' if unsent else 'no usable answer from'} {host} "
            f"({type(error).__name__}{': ' if why else ''}{why})"
        )
        failure = TransportError(what, outcome_unknown=unknown, operation=operation.id)
        failure.is_final = not isinstance(
            error, httpx.HTTPError | httpx.StreamError | httpx.InvalidURL | zlib.error | OSError
        )
        return failure


def _hide_location(response: "httpx.Response") -> None:
    """Keep httpx from preparing the request that a redirect asks for: it is never sent, and an unreadable
    address would be an error.
    """
    if "Location" in response.headers:
        response.extensions[LOCATION] = response.headers.pop("Location")


def _is_certificate(error: BaseException | None) -> bool:
    import ssl

    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def _decoded(response: "httpx.Response") -> Iterator[bytes]:
    """The body in pieces of bounded size: gzip is unpacked step by step, so that a small answer cannot fill
    the memory.
    """
    import httpx

    if response.is_stream_consumed:  # an in-process transport has it all in memory already
        yield response.content
        return
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        yield from response.iter_raw()
        return
    if encoding not in ("gzip", "x-gzip"):
        raise httpx.DecodingError("an encoding that was not asked for", request=response.request)
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    begun = False
    for raw in response.iter_raw():
        while raw:
            if unpack.eof:  # a further member of the same file
                unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
            begun = True
            yield unpack.decompress(raw, 1024 * 1024)
            raw = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
    yield unpack.flush()
    if not unpack.eof and begun:
        raise httpx.DecodingError("the compressed answer ends early", request=response.request)


@lru_cache(maxsize=8)
def tls_context(ca_file: str | None) -> "ssl.SSLContext":
    """The one context for all clients of this process: verified, TLS 1.2 or newer. Building it costs more
    than a hundred requests.
    """
    import ssl

    import httpx

    context: ssl.SSLContext
    try:
        context = ssl.create_default_context(cafile=ca_file) if ca_file else httpx.create_ssl_context()
    except (ssl.SSLError, OSError):
        context = None  # type: ignore[assignment]  # raised below, outside of the except block
    if context is None:
        raise ConfigurationError(
            "the certificates could not be read: check ca_file (PEM form), SSL_CERT_FILE and SSL_CERT_DIR"
        )
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

"""One request and its response over HTTP, through httpx.

Safe by construction: redirects are not followed, cookies not kept, netrc never read, proxies of the
environment used for https only, and an answer is read no further than :data:`MAX_ANSWER_BYTES`. Every failure
becomes a :class:`TransportError` that says whether the request may have been processed; the failure
underneath is not chained to it, since it may hold headers.
"""

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from pulumi_hosting.client.exceptions import ConfigurationError, HostingError, TimedOut
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.client.requests import HttpResponse as HttpResponse
from pulumi_hosting.client.settings import Settings

# The module ``httpx_connection`` loads httpx, ssl and cookies with the first request: whoever only checks
# arguments or reads help does not wait for them.
if TYPE_CHECKING:
    import httpx


class HttpTransport:
    """Sends requests over kept-alive connections, from any thread. Nothing is opened before the first
    request.
    """

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
        self._own = http_client is None
        self._lock = threading.Lock()
        self._connection: httpx.Client | httpx.BaseTransport | None = http_client
        self._pid = os.getpid()
        if http_client is not None:
            from pulumi_hosting.client import httpx_connection

            httpx_connection.bound(http_client)

    def send(self, request: HttpRequest, request_id: str, stop_at: float) -> HttpResponse:
        """The answer, whatever its status. ``stop_at`` (by the clock) is when to give up; the attempt takes
        at most ``timeout`` seconds. Raises ``TransportError``, ``TimedOut``, ``InvalidResponse`` (too large)
        and ``ConfigurationError`` (certificate refused)."""
        from pulumi_hosting.client import httpx_connection

        # Translated inside, raised outside of the except block: the failure underneath does not even become
        # __context__.
        failure: HostingError
        wait = seconds_for(request, self._settings, stop_at, self._clock())
        response: httpx.Response | None = None
        made: httpx.Request | None = None
        try:
            with httpx_connection.until(wait):
                connection, agent = self._connected(httpx_connection.opened), self._settings.user_agent
                # Not made by the caller's client: it would add its cookies and parameters.
                made = httpx_connection.Request(
                    content=request.body,
                    **httpx_connection.facts_of(connection, request, request_id, agent, wait),
                )
                response = (
                    connection.send(made, stream=True, auth=None, follow_redirects=False)
                    if isinstance(connection, httpx_connection.Client)
                    else connection.handle_request(made)
                )
                with closing(response):
                    found = httpx_connection.read(
                        request.operation, response, self._settings.host, lambda: self._clock() > stop_at
                    )
            if isinstance(found, HttpResponse):
                return found
            failure = found
        except HostingError as error:
            failure = error
        except Exception as error:  # noqa: BLE001  # a transport of the caller's may raise anything
            failure = httpx_connection.failure(request.operation, error, self._settings.host)
        response = made = None  # nor may the frame of the failure hold them: they carry the key
        raise failure

    def close(self) -> None:
        """Closes the connections; the next request opens new ones. Those of the caller's own client stay."""
        if not self._own:
            return
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(
        self, opened: "Callable[[Settings, httpx.BaseTransport | None], httpx.BaseTransport]"
    ) -> "httpx.Client | httpx.BaseTransport":
        with self._lock:
            if not self._own and self._pid != os.getpid():
                # Two processes on one connection would read each other's answers.
                raise ConfigurationError(
                    "http_client was made before this process was forked; nothing was sent. Next: make it, "
                    "and the Client, in the process that uses them"
                )
            # Connections cannot be shared with a forked child: it opens its own.
            if self._connection is None or self._pid != os.getpid():
                self._connection = opened(self._settings, self._transport)
                self._pid = os.getpid()
                # A client that is not closed closes its connections when it is collected.
                weakref.finalize(self, self._connection.close)
            return self._connection


class AsyncHttpTransport:
    """Sends requests of the tasks of an event loop. Nothing is opened before the first request; in another
    loop it opens connections of its own."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        transport: "httpx.AsyncBaseTransport | None" = None,
        http_client: "httpx.AsyncClient | None" = None,
    ) -> None:
        self._settings, self._clock = settings, clock
        self._transport, self._http_client = transport, http_client
        self._opened: tuple[object, httpx.AsyncBaseTransport] | None = None

    async def send(self, request: HttpRequest, request_id: str, stop_at: float) -> HttpResponse:
        """The answer, as :meth:`HttpTransport.send` gives it, with the same errors."""
        import asyncio  # who has no loop does not wait for it

        from pulumi_hosting.client import httpx_connection

        failure: HostingError  # as there: translated inside, raised outside
        wait = seconds_for(request, self._settings, stop_at, self._clock())
        response: httpx.Response | None = None
        made: httpx.Request | None = None
        step = ""  # of the exchange, as httpcore names it

        async def noted(name: str, info: object) -> None:
            nonlocal step
            step = name

        try:
            connection = self._http_client or self._connected(
                asyncio.get_running_loop(), httpx_connection.async_opened
            )
            agent = self._settings.user_agent
            made = httpx_connection.Request(
                content=request.body,
                **httpx_connection.facts_of(connection, request, request_id, agent, wait),
            )
            made.extensions["trace"] = noted
            async with asyncio.timeout(wait):
                response = (
                    await connection.send(made, stream=True, auth=None, follow_redirects=False)
                    if isinstance(connection, httpx_connection.AsyncClient)
                    else await connection.handle_async_request(made)
                )
                try:
                    arrived = await httpx_connection.received(response)
                finally:
                    await response.aclose()
            found = httpx_connection.read(
                request.operation, response, self._settings.host, lambda: self._clock() > stop_at, arrived
            )
            if isinstance(found, HttpResponse):
                return found
            failure = found
        except HostingError as error:
            failure = error
        except TimeoutError:
            failure = httpx_connection.late(
                request.operation,
                "ConnectTimeout" if step.startswith("connection.") else "ReadTimeout",
                self._settings.host,
                unsent=step.startswith("connection."),
            )
        except Exception as error:  # noqa: BLE001  # a transport of the caller's may raise anything
            failure = httpx_connection.failure(request.operation, error, self._settings.host)
        response = made = None
        raise failure

    def _connected(
        self,
        loop: object,
        opened: "Callable[[Settings, httpx.AsyncBaseTransport | None], httpx.AsyncBaseTransport]",
    ) -> "httpx.AsyncBaseTransport":
        if self._opened is None or self._opened[0] is not loop:
            self._opened = loop, opened(self._settings, self._transport)
        return self._opened[1]

    async def close(self) -> None:
        """Closes the connections; those of the caller's own client stay."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[1].aclose()


def seconds_for(request: HttpRequest, settings: Settings, stop_at: float, now: float) -> float:
    """Seconds for a whole attempt, and so for each wait in it. Raises ``TimedOut`` if this process was
    stopped meanwhile: what a write rests on may have ended."""
    if stop_at <= now:
        raise TimedOut(
            "its time was over before it was sent", outcome_unknown=False, operation=request.operation.id
        )
    return max(0.001, min(request.timeout or settings.timeout, stop_at - now))

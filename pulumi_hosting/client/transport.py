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
        self._own_client = http_client is None
        self._lock = threading.Lock()
        self._client: httpx.Client | None = http_client
        self._pid = os.getpid()
        if http_client is not None:
            from pulumi_hosting.client import httpx_connection

            httpx_connection.bound(http_client)

    def send(self, request: HttpRequest, request_id: str, stop_at: float) -> HttpResponse:
        """The answer, whatever its status. ``stop_at`` (by the clock) is when to give up; the attempt takes
        at most ``timeout`` seconds.

        Raises ``TransportError``, ``TimedOut``, ``InvalidResponse`` (an answer too large),
        ``ConfigurationError`` (certificate refused).
        """
        from pulumi_hosting.client import httpx_connection

        # Translated inside, raised outside of the except block: the failure underneath does not even become
        # __context__.
        failure: HostingError
        if stop_at <= self._clock():  # this process was stopped: what a write rests on may have ended
            raise TimedOut(
                f"{request.operation.id}: its time was over before it was sent",
                outcome_unknown=False,
                operation=request.operation.id,
            )
        response: httpx.Response | None = None
        made: httpx.Request | None = None
        try:
            # Seconds for the whole attempt, and so for each wait in it.
            wait = max(0.001, min(self._settings.timeout, stop_at - self._clock()))
            with httpx_connection.until(wait):
                client = self._connected()
                agent = self._settings.user_agent
                # Not made by the client: it would add its cookies and parameters.
                made = httpx_connection.Request(
                    **httpx_connection.facts_of(client, request, request_id, agent, wait),
                    content=request.body,
                )
                # The key is in the headers already.
                response = client.send(made, stream=True, auth=None, follow_redirects=False)
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
                from pulumi_hosting.client import httpx_connection

                self._client = httpx_connection.opened(self._settings, self._transport)
                self._pid = os.getpid()
                # A client that is not closed closes its connections when it is collected.
                weakref.finalize(self, self._client.close)
            return self._client

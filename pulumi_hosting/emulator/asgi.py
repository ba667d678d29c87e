"""The HTTP server: an ASGI application around the core. It also delays, truncates and drops responses."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from math import inf
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pulumi_hosting.api.operations import MAX_BODY_BYTES
from pulumi_hosting.emulator.browser_requests import Names
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer
from pulumi_hosting.emulator.site import API, api_response, other_response, request_of

Message = MutableMapping[str, Any]
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# The name of the ASGI extension that holds the connection.
CONNECTION = "pulumi_hosting.connection"
# How long the delivery loop waits after an internal error.
RECOVER_SECONDS = 1.0

log = logging.getLogger("pulumi_hosting.emulator")


class Protocol(HttpToolsProtocol):
    """Gives the application access to the connection, so that it can close it."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: {"transport": self.transport}}


async def _body(receive: Receive, limit: float) -> bytes | None:
    """The whole body; None if the client is gone before its end.

    What exceeds ``limit`` is read, so that the client gets the refusal, but not kept.
    """
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        if len(body) <= limit:
            body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


class Application:
    """Everything that is served. ``names``: host names, besides those of this machine, to which the control
    interface and the console answer. ``on_ready`` is called at the start of the server.
    """

    def __init__(self, core: Core, names: Names = (), on_ready: Callable[[], None] = lambda: None) -> None:
        self.core = core
        self.names = names
        self.on_ready = on_ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path: str = scope["raw_path"].decode("latin-1").partition("?")[0]
        body = await _body(receive, MAX_BODY_BYTES if path.startswith(API) else inf)
        if body is None:
            return
        query: str = scope["query_string"].decode("latin-1")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope["client"][0] if scope["client"] else "127.0.0.1"
        request, is_api = request_of(scope["method"], path, query, headers, body, client)
        if is_api:
            answer = await api_response(self.core, request)
        else:
            # In a thread: a control call may wait.
            answer = await asyncio.to_thread(other_response, self.core, request, self.names)
        await self._send(answer, scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Run the delivery loop from the start of the server to its end."""
        await receive()
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self.core.wake = lambda: loop.call_soon_threadsafe(woken.set)
        task = asyncio.create_task(delivery_loop(self.core, woken))
        await send({"type": "lifespan.startup.complete"})
        self.on_ready()  # the socket listens already
        await receive()
        self.core.wake = lambda: None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await send({"type": "lifespan.shutdown.complete"})

    async def _send(self, response: Answer, scope: Scope, receive: Receive, send: Send) -> None:
        if response.drop:
            _transport(scope).abort()
            await _gone(receive)
            return
        # ``Date`` is the time of the emulator's clock at the moment of sending.
        sent = response.headers_to_send(self.core.clock.now())
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        content = response.content[: response.truncate]
        is_cut = len(content) < len(response.content)
        await send({"type": "http.response.body", "body": content, "more_body": is_cut})
        if is_cut:
            _transport(scope).close()
            await _gone(receive)


def _transport(scope: Scope) -> asyncio.Transport:
    transport: asyncio.Transport = scope["extensions"][CONNECTION]["transport"]
    return transport


async def _gone(receive: Receive) -> None:
    """Wait until the server has noticed that the connection is closed; otherwise it would send a 500."""
    while (await receive())["type"] != "http.disconnect":
        pass


def server_of(
    core: Core,
    names: Names = (),
    on_ready: Callable[[], None] = lambda: None,
    tls: tuple[str, str] | None = None,
) -> uvicorn.Server:
    """The server of a core, not started. ``names`` and ``on_ready`` are those of :class:`Application`;
    ``tls``: files of certificate and key.
    """
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        Application(core, names, on_ready),
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # The caller's address is that of the connection, as in one process.
        proxy_headers=False,
        server_header=False,
        # The emulator sets the Date header from its own clock.
        date_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


async def delivery_loop(core: Core, woken: asyncio.Event) -> None:
    """Deliver webhooks and run tasks at their time; with a manual clock only those that are due now."""
    while True:
        woken.clear()
        try:
            await asyncio.to_thread(core.deliver_due)
            due = core.next_due()
            wait = None if due is None or core.clock.manual else max(0.01, due - core.clock.now())
        except Exception:  # without this loop nothing would be delivered any more
            log.exception("the delivery loop failed")
            wait = RECOVER_SECONDS
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), wait)

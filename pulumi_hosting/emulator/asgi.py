"""The HTTP server: an ASGI application around the core. It also delays, truncates and drops responses."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import cached_property, lru_cache
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pulumi_hosting.api.operations import MAX_BODY_BYTES
from pulumi_hosting.emulator.browser_requests import Names
from pulumi_hosting.emulator.console import console_response, is_console
from pulumi_hosting.emulator.core import Core, Pending
from pulumi_hosting.emulator.messages import Answer, ApiRequest, outside_the_api

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


async def _body(receive: Receive, limit: int | None = None) -> bytes:
    """The whole body. What exceeds ``limit`` is read, so that the client gets the refusal, but not kept."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(chunks)
        chunk = message.get("body", b"")
        size += len(chunk)
        if limit is None or size <= limit + 1:
            chunks.append(chunk)
        elif sum(map(len, chunks)) <= limit:
            chunks.append(chunk[: limit + 1])
        if not message.get("more_body", False):
            return b"".join(chunks)


def _path(scope: Scope) -> str:
    # Not decoded: an escaped slash is part of a segment, not a separator.
    path: str = scope["raw_path"].decode("latin-1")
    return path.partition("?")[0].removeprefix("/v1")


class Api:
    """Everything under ``/v1``."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = ApiRequest(
            method=scope["method"],
            path=_path(scope),
            query=scope["query_string"].decode("latin-1"),
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
            body=await _body(receive, MAX_BODY_BYTES),
            client=scope["client"][0] if scope["client"] else "127.0.0.1",
        )
        step = self.core.begin(request)
        if isinstance(step, Pending):
            # The only calls that use the network before they are answered.
            outcome = await asyncio.to_thread(self.core.try_send, step.attempt)
            step = self.core.resume(step, outcome)
        try:
            if step.delay:
                await asyncio.sleep(step.delay)
        finally:
            self.core.finish(step)
        await self._send(step, scope, receive, send)

    async def _send(self, response: Answer, scope: Scope, receive: Receive, send: Send) -> None:
        if response.drop:
            _transport(scope).abort()
            await _gone(receive)
            return
        await _start(send, response, self.core)
        if response.truncate is not None and response.truncate < len(response.content):
            await send(
                {
                    "type": "http.response.body",
                    "body": response.content[: response.truncate],
                    "more_body": True,
                }
            )
            _transport(scope).close()
            await _gone(receive)
            return
        await send({"type": "http.response.body", "body": response.content})


def _transport(scope: Scope) -> asyncio.Transport:
    transport: asyncio.Transport = scope["extensions"][CONNECTION]["transport"]
    return transport


async def _gone(receive: Receive) -> None:
    """Wait until the server has noticed that the connection is closed; otherwise it would send a 500."""
    while (await receive())["type"] != "http.disconnect":
        pass


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


class ControlInterface:
    """The control interface, loaded with its first request."""

    def __init__(self, core: Core, names: Names) -> None:
        self._core = core
        self._names = names

    @cached_property
    def _application(self) -> ASGIApp:
        from pulumi_hosting.emulator import control

        return control.application(self._core, names=self._names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)


class OtherPaths:
    """Other paths: the console, the control interface without its slash, or a wrong base URL."""

    def __init__(self, core: Core, control: ASGIApp, names: Names) -> None:
        self._core = core
        self._control = control
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/_control":
            await self._control({**scope, "path": "/"}, receive, send)
            return
        if is_console(scope["path"]):
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            response = console_response(scope["method"], host, self._names)
        else:
            response = outside_the_api()
        await _start(send, response, self._core)
        await send({"type": "http.response.body", "body": response.content})


async def _start(send: Send, response: Answer, core: Core) -> None:
    """Status and headers; ``Date`` is the time of the emulator's clock at the moment of sending."""
    sent = response.headers_to_send(core.clock.now())
    headers = [(_header_name(name), value.encode("latin-1")) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})


@lru_cache(256)
def _header_name(name: str) -> bytes:
    return name.lower().encode("latin-1")


class Application:
    """Everything that is served. Requests of the API do not go through Starlette: it would take a third of
    their time. ``names``: host names, besides those of this machine, to which the control interface and the
    console answer.
    """

    def __init__(self, core: Core, names: Names = ()) -> None:
        self._api = Api(core)
        self._others = _starlette(core, self._api, names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] == "http" and scope["raw_path"].startswith(b"/v1/")
        await (self._api if is_api else self._others)(scope, receive, send)


def _starlette(core: Core, api: ASGIApp, names: Names) -> Starlette:
    """The API under ``/v1``, the control interface under ``/_control``."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        core.wake = wake
        task = asyncio.create_task(delivery_loop(core, woken))
        try:
            yield {}
        finally:
            core.wake = lambda: None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    steering = ControlInterface(core, names)
    app = Starlette(routes=[Mount("/v1", app=api), Mount("/_control", app=steering)], lifespan=lifespan)
    app.router.default = OtherPaths(core, steering, names)
    app.router.redirect_slashes = False  # the API never redirects
    return app

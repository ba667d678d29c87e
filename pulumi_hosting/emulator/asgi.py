"""The ASGI skin: bytes to requests, answers to bytes, and the misbehaviour a pure core cannot act out itself."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pulumi_hosting.api.operations import MAX_BODY_BYTES
from pulumi_hosting.emulator import control
from pulumi_hosting.emulator.core import Core, Pending
from pulumi_hosting.emulator.messages import Request, Response

CUT = "pulumi_hosting.cut"
# How long the courier rests after a failure that is not one delivery's.
RECOVER_SECONDS = 1.0

log = logging.getLogger("pulumi_hosting.emulator")


class Protocol(HttpToolsProtocol):
    """Hands the connection to the application, so that it can really be cut."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CUT: {"transport": self.transport}}


async def _body(receive: Receive, limit: int | None = None) -> bytes:
    """The whole body; beyond ``limit`` it is read to its end, so that the refusal arrives, but not kept."""
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
    # As it was sent: an escaped slash is part of a segment, not a separator.
    path: str = scope["raw_path"].decode("latin-1")
    return path.partition("?")[0][len(scope.get("root_path", "")) :]


class Api:
    """Everything under ``/v1``."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(
            method=scope["method"],
            path=_path(scope),
            query=scope["query_string"].decode("latin-1"),
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
            body=await _body(receive, MAX_BODY_BYTES),
            client=scope["client"][0] if scope["client"] else "127.0.0.1",
        )
        step = self.core.begin(request)
        if isinstance(step, Pending):
            # The only calls that ask the network while somebody waits for the answer.
            outcome = await asyncio.to_thread(self.core.try_send, step.attempt)
            step = self.core.resume(step, outcome)
        try:
            if step.delay:
                await asyncio.sleep(step.delay)
        finally:
            self.core.finish(step)
        await self._answer(step, scope, receive, send)

    async def _answer(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        transport = scope.get("extensions", {}).get(CUT, {}).get("transport")
        if response.drop:
            transport.abort()
            await _gone(receive)
            return
        await _start(send, response, self.core)
        if response.truncate is not None and response.truncate < len(response.content):
            await send({"type": "http.response.body", "body": response.content[: response.truncate], "more_body": True})
            transport.close()
            await _gone(receive)
            return
        await send({"type": "http.response.body", "body": response.content})


async def _gone(receive: Receive) -> None:
    """Wait until the server has noticed that the connection is closed; it would answer 500 by itself otherwise."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Control:
    """Everything under ``/_control``."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = await _body(receive)
        # In a thread: moving the clock waits for deliveries, and their receivers may call this very server.
        status, view = await asyncio.to_thread(
            control.handle, self.core, scope["method"], _path(scope), scope["query_string"].decode("latin-1"), raw
        )
        await _send_json(send, status, view, self.core)


async def delivery_loop(core: Core, woken: asyncio.Event) -> None:
    """Deliver webhooks, and do what is due, at its time. With a frozen clock only what is due now."""
    while True:
        woken.clear()
        try:
            await asyncio.to_thread(core.deliver_due)
            due = core.next_due()
            wait = None if due is None or core.clock.manual else max(0.01, due - core.clock.now())
        except Exception:  # it must go on: without it nothing that is due would happen any more
            log.exception("what is due could not be done")
            wait = RECOVER_SECONDS
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), wait)


class NotFound:
    """Neither of the two: the control interface without its slash, or a wrong base URL."""

    def __init__(self, steering: Control) -> None:
        self._control = steering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/_control":
            await self._control({**scope, "root_path": "/_control"}, receive, send)
            return
        view = {"error": {"code": "not_found", "message": "the API is under /v1", "request_id": "none"}}
        await _send_json(send, 404, view, self._control.core)


async def _start(send: Send, response: Response, core: Core) -> None:
    """Status and headers; ``Date`` is the emulator's own clock at the moment of sending, whatever this machine's clock says."""
    sent = response.headers_to_send(core.clock.now())
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})


async def _send_json(send: Send, status: int, view: Any, core: Core) -> None:
    response = Response(status, view)
    response.encode()
    await _start(send, response, core)
    await send({"type": "http.response.body", "body": response.content})


def application(core: Core) -> Starlette:
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

    steering = Control(core)
    app = Starlette(routes=[Mount("/v1", app=Api(core)), Mount("/_control", app=steering)], lifespan=lifespan)
    app.router.default = NotFound(steering)
    # The API answers no redirects, not even kind ones.
    app.router.redirect_slashes = False
    return app

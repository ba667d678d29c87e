"""The HTTP server of a receiver: one path, small bodies, bounded connections. It knows nothing of events."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import unquote

import h11

from pulumi_hosting.webhooks.background import LimitedWarnings

MAX_BODY_BYTES = 64 * 1024
# A larger body is read and discarded up to here, so that its sender gets the answer 413 instead of a broken
# connection.
MAX_DISCARDED_BYTES = 1024 * 1024
READ_BYTES = 64 * 1024
SHUTDOWN_SECONDS = 5.0


@dataclass(frozen=True)
class Limits:
    """How many connections may be open, and how long each step of one may take, in seconds."""

    connections: int = 100  # well below the 256 descriptors that some systems allow a process
    head_seconds: float = 10.0  # from the connection to the head of its first request, TLS handshake included
    answer_seconds: float = 8.0  # from the head of a request to its answer; the service waits 10
    idle_seconds: float = 75.0  # from an answer to the head of the connection's next request


@dataclass(frozen=True)
class PostedRequest:
    """A request whose body has arrived. ``remote``: the sender's address."""

    body: bytes
    headers: list[tuple[str, str]]
    remote: str


Handler = Callable[[PostedRequest], Awaitable[int]]
"""Takes a request, returns the status to answer with."""


class WebhookServer:
    """Hands POST requests for one path to ``handle``, and answers with the status it returns.

    Answers directly: 404 for another path, 405 for another method, 413 for a body above 64 KB, 503 for a
    body or a handler that takes longer than ``limits.answer_seconds``, 400 for what is not HTTP.

    A stranger who opens connections and sends nothing keeps no delivery out: a connection above
    ``limits.connections`` closes the one that has been silent longest. A connection whose request has arrived
    completely stays open until it is answered.
    """

    def __init__(
        self,
        handle: Handler,
        *,
        path: str,
        tls: ssl.SSLContext | None,
        warnings: LimitedWarnings,
        limits: Limits | None = None,
    ) -> None:
        self._handle, self._path, self._tls, self._warnings = handle, path, tls, warnings
        self._limits = limits or Limits()
        self._open: dict[_Connection, None] = {}  # the one that has been silent longest is first
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> list[str]:
        """Begin to listen, and return the URLs. Raises ``OSError`` when the address cannot be used."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Protocol(self._accept, paused=self._tls is not None), host, port
        )
        scheme = "http" if self._tls is None else "https"
        addresses = [bound.getsockname()[:2] for bound in self._server.sockets]
        return [
            f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{self._path}"
            for host, port in addresses
        ]

    async def close(self) -> None:
        """Stop listening, and close the connections. Requests that have arrived have 5 seconds to be
        answered."""
        if self._server is not None:
            self._server.close()
        for connection in [*self._open]:
            if not connection.is_protected:
                connection.drop()
        if tasks := [connection.task for connection in self._open]:
            await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)
        for connection in [*self._open]:
            connection.drop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called by the event loop for each new connection."""
        if len(self._open) >= self._limits.connections:
            self._warnings.warn(
                f"{self._limits.connections} connections are open: closed the one that was silent longest"
            )
            silent = next((one for one in self._open if not one.is_protected), None)
            if silent is None:
                writer.transport.abort()
                return
            silent.drop()
            del self._open[silent]
        connection = _Connection(reader, writer)
        connection.task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._open[connection] = None

    async def _serve(self, connection: "_Connection") -> None:
        """One connection, from the TLS handshake to the last answer."""
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                if self._tls is not None:
                    await connection.writer.start_tls(
                        self._tls, ssl_handshake_timeout=self._limits.head_seconds
                    )
                head = await connection.head()
            while head is not None:
                await self._answer(connection, head)
                if connection.http.our_state is not h11.DONE or connection.http.their_state is not h11.DONE:
                    break
                connection.http.start_next_cycle()
                if connection in self._open:
                    del self._open[connection]
                    self._open[connection] = None
                async with asyncio.timeout(self._limits.idle_seconds):
                    head = await connection.head()
            async with asyncio.timeout(self._limits.idle_seconds):
                connection.writer.close()
                await connection.writer.wait_closed()
        except (OSError, asyncio.CancelledError, h11.LocalProtocolError):
            pass  # too slow, broken off, no TLS, or dropped: no client waits for an answer
        except h11.RemoteProtocolError as error:
            with suppress(OSError, h11.LocalProtocolError):
                await connection.answer(error.error_status_hint)
            connection.writer.close()
        finally:
            self._open.pop(connection, None)
            connection.writer.transport.abort()

    async def _answer(self, connection: "_Connection", head: h11.Request) -> None:
        status = 503 if head.method == b"POST" else 405
        if _path(head.target.decode("ascii")) != self._path:
            status = 404
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                body = await connection.body()
                if body is None and status == 503:
                    status = 413
                elif body is not None and status == 503:
                    connection.is_protected = True
                    headers = [
                        (name.decode("ascii"), value.decode("latin-1")) for name, value in head.headers
                    ]
                    status = await self._handle(PostedRequest(body, headers, connection.remote))
        except TimeoutError:
            pass  # the body or the handler takes too long: the status stays as it is
        await connection.answer(status)
        connection.is_protected = False


class _Connection:
    """One connection, its task, and the state of its HTTP conversation."""

    task: asyncio.Task[None]

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http = h11.Connection(h11.SERVER)
        self.is_protected = False
        self.remote = str((writer.get_extra_info("peername") or ["unknown"])[0])

    def drop(self) -> None:
        self.task.cancel()
        self.writer.transport.abort()

    async def head(self) -> h11.Request | None:
        """The head of the next request; ``None`` at the end of the connection."""
        event = await self._next_event()
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> bytes | None:
        """The body of a request whose head was read; ``None`` when it is larger than 64 KB."""
        if self.http.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))
        body, size = bytearray(), 0
        while isinstance(event := await self._next_event(), h11.Data):
            size += len(event.data)
            if size <= MAX_BODY_BYTES:
                body += event.data
            elif size > MAX_DISCARDED_BYTES:
                break
        return bytes(body) if size <= MAX_BODY_BYTES else None

    async def answer(self, status: int) -> None:
        if self.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        text = b"" if status == HTTPStatus.OK else f"{status}\n".encode()
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", "text/plain"),
            ("Content-Length", str(len(text))),
            *([("Allow", "POST")] if status == HTTPStatus.METHOD_NOT_ALLOWED else []),
            *([("Connection", "close")] if self.http.their_state is not h11.DONE else []),
        ]
        self._send(
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
        )
        self._send(h11.Data(data=text))
        self._send(h11.EndOfMessage())
        await self.writer.drain()

    async def _next_event(self) -> object:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(READ_BYTES))
        return event

    def _send(self, event: h11.Event) -> None:
        self.writer.write(self.http.send(event) or b"")


def _path(target: str) -> str:
    """The path of a request's target: ``/path?query``, or a whole URL."""
    if not target.startswith("/"):
        target = "/" + target.partition("://")[2].partition("/")[2]
    return unquote(target.partition("?")[0])


class _Protocol(asyncio.StreamReaderProtocol):
    """A stream whose transport is paused at first, for TLS: the first bytes must reach the handshake, not the
    reader."""

    def __init__(
        self, accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], *, paused: bool
    ) -> None:
        super().__init__(asyncio.StreamReader(), accept)
        self._starts_paused = paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._starts_paused and isinstance(transport, asyncio.ReadTransport):
            transport.pause_reading()
        super().connection_made(transport)

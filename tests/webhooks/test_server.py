"""The HTTP server of a receiver: its answers, and strangers who open connections and send nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from pulumi_hosting.webhooks.background import LimitedWarnings
from pulumi_hosting.webhooks.http_server import Limits, PostedRequest, WebhookServer
from pulumi_hosting.webhooks.receiver_options import ReceiverOptions
from tests.webhooks.support import LIMIT_SECONDS, self_signed

HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
INCOMPLETE_HEAD = b"POST / HTTP/1.1\r\nX"
INCOMPLETE_TLS = b"\x16\x03\x01\x02\x00\x01"  # a record that announces 512 bytes
EXPECTING_HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"


class Serving:
    """A server that runs. Its handler records requests, and answers with ``status`` once ``may_answer`` is
    set.

    ``advance`` moves the clock of the event loop, so that its limits are reached without a wait.
    """

    def __init__(self, limits: Limits, certificate: Path | None) -> None:
        options = ReceiverOptions(port=0, certfile=certificate)
        self.requests: list[PostedRequest] = []
        self.status = 200
        self.url = httpx.URL()
        self.arrived, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()
        loop = asyncio.get_running_loop()
        self._real_time, self._offset = loop.time, 0.0
        loop.time = lambda: self._real_time() + self._offset  # type: ignore[method-assign]  # the clock of this test's own loop
        self.server = WebhookServer(
            self.handle, path="/hosting", tls=options.tls(), warnings=LimitedWarnings(), limits=limits
        )

    async def handle(self, request: PostedRequest) -> int:
        self.requests.append(request)
        self.arrived.set()
        await self.may_answer.wait()
        return self.status

    def advance(self, seconds: float) -> None:
        self._offset += seconds

    async def connect(
        self, count: int, sent: bytes
    ) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connections that have sent this, and nothing more."""
        opened = [await asyncio.open_connection(self.url.host, self.url.port) for _ in range(count)]
        for _, writer in opened:
            writer.write(sent)
        return opened


@asynccontextmanager
async def serving(
    limits: Limits | None = None, certificate: Path | None = None
) -> AsyncIterator[tuple[Serving, httpx.AsyncClient]]:
    running = Serving(limits or Limits(), certificate)
    (url,) = await running.server.start("127.0.0.1", 0)
    running.url = httpx.URL(url)
    try:
        base_url = url.removesuffix("/hosting")
        async with httpx.AsyncClient(
            base_url=base_url,
            verify=False,  # noqa: S501  # its own certificate
            timeout=LIMIT_SECONDS,
        ) as http:
            yield running, http
    finally:
        await running.server.close()


@pytest.fixture(params=["http", "https"])
def certificate(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    if request.param == "http":
        return None
    path = tmp_path / "certificate-and-key.pem"
    path.write_bytes(self_signed())
    return path


async def until_closed(opened: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    """Until the server has closed all of these connections."""
    async with asyncio.timeout(LIMIT_SECONDS):
        await asyncio.gather(*(reader.read() for reader, _ in opened), return_exceptions=True)
    for _, writer in opened:
        writer.close()


async def first_line(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(LIMIT_SECONDS):
        return await reader.readline()


async def continues(reader: asyncio.StreamReader) -> None:
    """Until the server has read the head, and waits for the body."""
    assert await first_line(reader) == b"HTTP/1.1 100 \r\n"
    assert await first_line(reader) == b"\r\n"


def test_answers(certificate: Path | None) -> None:
    async def play() -> None:
        async with serving(certificate=certificate) as (running, http):
            answer = await http.post("/hosting?x=1", content=b"body", headers={"X-One": "1"})
            assert (answer.status_code, answer.text) == (200, "")
            assert running.requests[0].body == b"body"
            assert ("x-one", "1") in running.requests[0].headers
            assert running.requests[0].remote == "127.0.0.1"
            running.status = 503
            answer = await http.post("/%68osting", content=b"body")
            assert (answer.status_code, answer.text) == (503, "503\n")
            assert {"date", "content-type", "content-length"} <= set(answer.headers)
            assert (await http.post("/other", content=b"body")).status_code == 404
            answer = await http.get("/hosting")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
            assert len(running.requests) == 2

    asyncio.run(play())


def test_a_large_body_is_refused() -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(70):
            yield b" " * 1024

    async def play() -> None:
        async with serving() as (running, http):
            assert (await http.post("/hosting", content=b" " * (64 * 1024 + 1))).status_code == 413
            assert (await http.post("/hosting", content=in_pieces())).status_code == 413
            assert running.requests == []
            assert (await http.post("/hosting", content=b" " * 64 * 1024)).status_code == 200
            # It is not read to its end.
            ((reader, writer),) = await running.connect(1, HEAD % (b"/hosting", 10**12))
            for _ in range(20):
                writer.write(b" " * 64 * 1024)
            assert (await first_line(reader)).startswith(b"HTTP/1.1 413 ")
            await until_closed([(reader, writer)])

    asyncio.run(play())


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"POST /hosting HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /hosting HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
    ],
)
def test_what_is_not_http_is_answered_with_400(sent: bytes) -> None:
    async def play() -> None:
        async with serving() as (running, _):
            ((reader, writer),) = await running.connect(1, sent + b"\r\n\r\n")
            assert (await first_line(reader)).startswith(b"HTTP/1.1 400 ")
            await until_closed([(reader, writer)])

    asyncio.run(play())


def test_a_sender_that_asks_before_it_sends_the_body() -> None:
    async def play() -> None:
        async with serving() as (running, _):
            ((reader, writer),) = await running.connect(1, EXPECTING_HEAD % b"http://x/hosting")
            await continues(reader)
            writer.write(b"{}")
            assert await first_line(reader) == b"HTTP/1.1 200 OK\r\n"
            assert running.requests[0].body == b"{}"
            writer.close()

    asyncio.run(play())


def test_one_connection_carries_several_requests() -> None:
    """A proxy sends one after the other over one connection. The limit for the first head does not end the
    later ones."""

    async def play() -> None:
        async with serving() as (running, _):
            ((reader, writer),) = await running.connect(1, b"")
            for number in range(2):
                writer.write(HEAD % (b"/hosting", 2) + b"{}")
                async with asyncio.timeout(LIMIT_SECONDS):
                    assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
                assert len(running.requests) == number + 1
                running.advance(Limits.head_seconds + 1)
            running.advance(Limits.idle_seconds - Limits.head_seconds)
            await until_closed([(reader, writer)])

    asyncio.run(play())


# --- connections that send nothing, or not enough


def test_half_open_connections_block_no_delivery(
    certificate: Path | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async with serving(Limits(connections=10), certificate) as (running, http):
            silent = await running.connect(25, INCOMPLETE_TLS if certificate else INCOMPLETE_HEAD)
            assert (await http.post("/hosting", content=b"{}")).status_code == 200
            await until_closed(silent[:16])  # room for the later ones and for the delivery
            for _, writer in silent[16:]:
                writer.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(play())
    # One line for all of them.
    assert caplog.messages == ["10 connections are open: closed the one that was silent longest"]


def test_a_request_that_arrived_completely_is_answered_before_its_connection_closes() -> None:
    async def play() -> None:
        async with serving(Limits(connections=2)) as (running, http):
            running.may_answer.clear()
            answers = [asyncio.create_task(http.post("/hosting", content=b"{}")) for _ in range(2)]
            while len(running.requests) < 2:
                running.arrived.clear()
                await running.arrived.wait()
            await until_closed(await running.connect(5, INCOMPLETE_HEAD))
            running.may_answer.set()
            assert [(await answer).status_code for answer in answers] == [200, 200]

    asyncio.run(play())


@pytest.mark.parametrize("sent", [b"", b"incomplete"])
def test_a_head_that_does_not_come(
    certificate: Path | None, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async with serving(Limits(connections=3), certificate) as (running, _):
            first = await running.connect(1, b"")
            opened = await running.connect(3, sent and (INCOMPLETE_TLS if certificate else INCOMPLETE_HEAD))
            await until_closed(first)  # so the later three have been accepted
            running.advance(Limits.head_seconds + 1)
            await until_closed(opened)

    asyncio.run(play())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(("path", "status"), [(b"/hosting", b"503"), (b"/elsewhere", b"404")])
def test_a_body_that_does_not_come(path: bytes, status: bytes) -> None:
    async def play() -> None:
        async with serving() as (running, _):
            ((reader, writer),) = await running.connect(1, EXPECTING_HEAD % path)
            await continues(reader)
            running.advance(Limits.answer_seconds + 1)
            assert (await first_line(reader)).startswith(b"HTTP/1.1 " + status)
            await until_closed([(reader, writer)])
            assert running.requests == []

    asyncio.run(play())


def test_a_handler_that_takes_too_long() -> None:
    async def play() -> None:
        async with serving() as (running, _):
            running.may_answer.clear()
            ((reader, writer),) = await running.connect(1, HEAD % (b"/hosting", 2) + b"{}")
            await running.arrived.wait()
            running.advance(Limits.answer_seconds + 1)
            assert await first_line(reader) == b"HTTP/1.1 503 Service Unavailable\r\n"
            writer.close()

    asyncio.run(play())


def test_a_sender_that_breaks_off(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async with serving() as (running, http):
            for _, writer in await running.connect(3, HEAD % (b"/hosting", 100) + b"x"):
                await writer.drain()
                writer.transport.abort()
            assert (await http.post("/hosting", content=b"{}")).status_code == 200

    asyncio.run(play())
    assert "Traceback" not in caplog.text


def test_a_request_in_progress_is_answered_when_the_server_closes() -> None:
    async def play() -> None:
        async with serving() as (running, _):
            running.may_answer.clear()
            ((reader, writer),) = await running.connect(1, HEAD % (b"/hosting", 2) + b"{}")
            await running.arrived.wait()
            (idle,) = await running.connect(1, b"")
            closing = asyncio.create_task(running.server.close())
            await until_closed([idle])
            running.may_answer.set()
            assert await first_line(reader) == b"HTTP/1.1 200 OK\r\n"
            writer.close()
            await closing

    asyncio.run(play())

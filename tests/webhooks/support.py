"""What the tests of the receiver share: deliveries, a handler, and a receiver that runs in this process."""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

import httpx
import pytest

from pulumi_hosting.webhooks import sign
from pulumi_hosting.webhooks.receiver import ReceivedEvent, Receiver, ReceiverOptions

SECRET = "whsec_Zebra4711Zebra4711Zebra4711Zebra4711"
OTHER_SECRET = "whsec_Kettle42Kettle42Kettle42Kettle42"
LIMIT_SECONDS = 20 if "MUTANT_UNDER_TEST" in os.environ else 600
"""Of what must happen; only a test that fails waits so long. With mutmut many do (``make mutation``)."""


def body(id: str, type: str = "server.created", **more: Any) -> bytes:
    event = {
        "id": id,
        "type": type,
        "created_at": "2026-01-02T03:04:05Z",
        "livemode": True,
        "account_id": 7,
        "api_version": "1",
    }
    data = {"object": {"id": 11}, "previous": None}
    return json.dumps({**event, "data": data, "resource": "/api/v1/servers/11", **more}).encode()


def signed(raw: bytes, secret: str = SECRET, *, age: float = 0) -> dict[str, str]:
    return sign(raw, secret, int(time.time() - age))


@dataclass
class Events:
    """A handler with room for one event, as the queue of ansible-rulebook has it. ``offered``: ids, as they
    were handed over."""

    queue: asyncio.Queue[ReceivedEvent] = field(default_factory=lambda: asyncio.Queue(1))
    offered: list[str] = field(default_factory=list)

    async def handle(self, received: ReceivedEvent) -> None:
        self.offered.append(received.event.id)
        await self.queue.put(received)

    async def take(self, count: int = 1) -> list[ReceivedEvent]:
        async with asyncio.timeout(LIMIT_SECONDS):
            return [await self.queue.get() for _ in range(count)]

    async def ids(self, count: int = 1) -> list[str]:
        return [received.event.id for received in await self.take(count)]

    async def take_through(self, id: str) -> list[ReceivedEvent]:
        """Events up to this one."""
        events = await self.take()
        while events[-1].event.id != id:
            events += await self.take()
        return events


@dataclass
class Running:
    """A receiver that runs, its handler, and a client of its server."""

    receiver: Receiver
    events: Events
    http: httpx.AsyncClient

    @property
    def origin(self) -> str:
        return str(self.http.base_url).rstrip("/")

    async def deliver(
        self, raw: bytes, headers: Mapping[str, str] | None = None, path: str = "/hosting"
    ) -> int:
        response = await self.http.post(
            path, content=raw, headers=signed(raw) if headers is None else headers
        )
        return response.status_code


@dataclass
class Receivers:
    """Makes receivers that keep their events in ``state_file``; ``log`` is what they log."""

    state_file: str
    log: pytest.LogCaptureFixture

    @asynccontextmanager
    async def run(
        self,
        events: Events | None = None,
        *,
        acknowledge: bool = True,
        parts: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> AsyncIterator[Running]:
        """``parts``: arguments of ``Receiver`` beside its options."""
        options = {"port": 0, "path": "/hosting", "state_file": self.state_file, **options}
        if "secret_file" not in options:
            options.setdefault("secret", SECRET)
        events, before = events or Events(), len(self.log.records)
        receiver = Receiver(ReceiverOptions.from_values(options), **(parts or {}))
        run = receiver.run if acknowledge else partial(receiver.run, acknowledge=False)
        task = asyncio.create_task(run(events.handle))
        try:
            url = await until(lambda: task.done() or self.listening_on(before))
            if task.done():
                task.result()
            async with httpx.AsyncClient(base_url=url, verify=False, timeout=LIMIT_SECONDS) as http:  # noqa: S501  # its own certificate
                yield Running(receiver, events, http)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def lines(self) -> list[str]:
        return [
            record.getMessage() for record in self.log.records if record.name == "pulumi_hosting.webhooks"
        ]

    def listening_on(self, start: int = 0) -> str | None:
        """The origin of the receiver that began to listen last."""
        lines = [record.getMessage() for record in self.log.records[start:]]
        found = [match[1] for line in lines if (match := re.search(r"listening on (https?://[^/]+)", line))]
        return found[-1] if found else None

    def assert_no_secret_is_logged(self) -> None:
        assert not [line for line in self.lines() if "\n" in line]
        assert SECRET not in self.log.text
        assert OTHER_SECRET not in self.log.text


async def until(condition: Callable[[], Any]) -> Any:
    """What ``condition`` returns once it is true. Sockets and disks set no event that a test could wait
    for."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not (found := condition()):  # noqa: ASYNC110  # what is waited for sets no event
            await asyncio.sleep(0.005)
    return found


async def no_pause(_seconds: float) -> None:
    """Instead of ``asyncio.sleep`` between two attempts: lets other tasks run."""
    await asyncio.sleep(0.005)


def self_signed() -> bytes:
    """A certificate and its key, in PEM form."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return builder.sign(key, hashes.SHA256()).public_bytes(pem) + key.private_bytes(
        pem, form, serialization.NoEncryption()
    )


class Downstream:
    """A server that takes what is posted to it, in a thread. ``ids``: the events, in their order."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        taken = self.ids

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                taken.append(json.loads(raw)["id"])
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def __enter__(self) -> Self:
        self._thread = Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

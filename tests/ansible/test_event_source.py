"""The event source: mostly called as ansible-rulebook calls it, over real HTTP; at the end under the program itself."""

import asyncio
import gzip
import json
import logging
import os
import re
import runpy
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FunctionType
from typing import Any

import httpx
import pytest

from ansible_collections.hosting.cloud.tests.unit.plugins.event_source.test_webhook import *  # noqa: F403  # they count here as well
from pulumi_hosting.api.client import Client
from pulumi_hosting.api.errors import ConfigurationError
from pulumi_hosting.api.models import Delivery
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.webhooks import sign
from tests.ansible.conftest import BIN, COLLECTION, ROOT, kill_all, wait_for

FILE = COLLECTION / "extensions" / "eda" / "plugins" / "event_source" / "webhook.py"
SECRET = "whsec_Zebra4711Zebra4711Zebra4711Zebra4711"
OTHER = "whsec_Kettle42Kettle42Kettle42Kettle42"
ORIGIN = "https://hooks.example.org"
HOURLY = 3  # the tariff of the emulator that is paid by the hour

pytestmark = pytest.mark.usefixtures("no_environment")


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOSTING_WEBHOOK_SECRET", "HOSTING_API_KEY", "HOSTING_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "events.sqlite"


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged, by the source and by what it uses."""
    caplog.set_level(logging.DEBUG)
    return caplog


def body(id: str, type: str = "server.created", **more: Any) -> bytes:
    event = {"id": id, "type": type, "created_at": "2026-01-02T03:04:05Z", "livemode": True, "account_id": 7, "api_version": "1"}
    return json.dumps({**event, "data": {"object": {"id": 11}, "previous": None}, "resource": "/api/v1/servers/11", **more}).encode()


def signed(raw: bytes, secret: str = SECRET, *, age: float = 0) -> dict[str, str]:
    return sign(raw, secret, int(time.time() - age))


class Rules:
    """The rulebook's side: a queue with room for one event, as ansible-rulebook's."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        self.offered: list[str] = []

    async def put(self, event: dict[str, Any], /) -> None:
        self.offered.append(event["payload"]["id"])
        await self.queue.put(event)

    async def take(self, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(20):
            return [await self.queue.get() for _ in range(count)]

    async def ids(self, count: int = 1) -> list[str]:
        return [event["payload"]["id"] for event in await self.take(count)]

    @property
    def is_empty(self) -> bool:
        return self.queue.empty()


class Running:
    """A source that runs."""

    def __init__(self, rules: Rules, http: httpx.AsyncClient, module: dict[str, Any]) -> None:
        self.rules, self.http, self.module = rules, http, module

    @property
    def origin(self) -> str:
        return str(self.http.base_url).rstrip("/")

    async def deliver(self, raw: bytes, headers: Mapping[str, str] | None = None, path: str = "/hosting") -> int:
        return (await self.http.post(path, content=raw, headers=signed(raw) if headers is None else headers)).status_code


def load() -> FunctionType:
    """As ansible-rulebook loads it: by its path."""
    main: FunctionType = runpy.run_path(str(FILE))["main"]
    return main


@asynccontextmanager
async def source(state: Path, said: pytest.LogCaptureFixture, rules: Rules | None = None, **options: Any) -> AsyncIterator[Running]:
    rules = rules or Rules()
    args = {"port": 0, "path": "/hosting", "state_file": str(state), **options}
    if "secret_file" not in options:
        args.setdefault("secret", SECRET)
    before = len(said.records)
    main = load()
    task = asyncio.create_task(main(rules, args))
    try:
        url = await until(lambda: task.done() or address(said, before))
        if task.done():
            task.result()
        async with httpx.AsyncClient(base_url=url, verify=False, timeout=20) as http:  # noqa: S501  # its certificate is made for the test
            yield Running(rules, http, main.__globals__)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def address(said: pytest.LogCaptureFixture, start: int) -> str | None:
    lines = [record.getMessage() for record in said.records[start:]]
    found = [match[1] for line in lines if (match := re.search(r"listening on (https?://[^/]+)", line))]
    return found[-1] if found else None


async def until(what: Callable[[], Any]) -> Any:
    """Real sockets and real disks take real time; look until it is so."""
    async with asyncio.timeout(20):
        while not (found := what()):  # noqa: ASYNC110  # what is waited for happens elsewhere, and sets no event
            await asyncio.sleep(0.005)
    return found


def lines(said: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in said.records if record.name == "hosting.cloud.webhook"]


def assert_nothing_secret(said: pytest.LogCaptureFixture) -> None:
    assert not [line for line in lines(said) if SECRET in line or OTHER in line or "\n" in line]
    assert SECRET not in said.text
    assert OTHER not in said.text


# --- whom to trust ----------------------------------------------------------------------------------------------------------------


def test_only_what_can_be_trusted_is_kept(state: Path, said: pytest.LogCaptureFixture) -> None:
    raw, other = body("evt_1"), body("evt_2")
    good = signed(raw)

    def without(name: str) -> dict[str, str]:
        return {key: value for key, value in good.items() if key != name}

    untrusted: dict[str, tuple[bytes, Mapping[str, str]]] = {
        "unsigned": (raw, {}),
        "signed with another secret": (raw, signed(raw, "whsec_nobody")),
        "replayed": (raw, signed(raw, age=301)),
        "from the future": (raw, signed(raw, age=-302)),
        "another body": (other, good),
        "changed by a space": (raw + b" ", good),
        "another id": (raw, {**good, "X-Webhook-Id": "evt_9"}),
        "another type": (raw, {**good, "X-Webhook-Event": "ping"}),
        "no time": (raw, without("X-Webhook-Timestamp")),
        "no signature": (raw, without("X-Webhook-Signature")),
        "another scheme": (raw, {**good, "X-Webhook-Signature": good["X-Webhook-Signature"].replace("v1=", "v2=")}),
        "compressed": (gzip.compress(raw), {**good, "Content-Encoding": "gzip"}),
        "empty": (b"", good),
    }

    async def play() -> None:
        async with source(state, said, secret=[OTHER, SECRET]) as running:
            answers = {name: await running.http.post("/hosting", content=sent, headers=head) for name, (sent, head) in untrusted.items()}
            assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(untrusted, 401)
            assert {answer.text for answer in answers.values()} == {"401\n"}  # one answer for all: it tells nothing
            assert await running.deliver(raw, path="/other") == 404
            assert (await running.http.get("/hosting")).status_code == 405
            large = raw + b" " * (64 * 1024 + 1 - len(raw))
            assert await running.deliver(large, signed(large)) == 413

            async def in_pieces() -> AsyncIterator[bytes]:
                for _ in range(70):
                    yield b" " * 1024

            assert (await running.http.post("/hosting", content=in_pieces(), headers=good)).status_code == 413
            assert running.rules.is_empty
            largest = large[:-1]
            assert await running.deliver(largest, signed(largest)) == 200
            assert await running.deliver(other, signed(other, OTHER, age=290)) == 200
            assert await running.rules.ids(2) == ["evt_1", "evt_2"]

    asyncio.run(play())
    # Strangers cannot fill the log: one line for all of them.
    assert [line for line in lines(said) if "refused" in line] == [
        "refused a delivery from 127.0.0.1: X-Webhook-Timestamp is missing or not a number of seconds"
    ]
    assert_nothing_secret(said)


# --- strangers who open connections and send nothing --------------------------------------------------------------------------------


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options for each."""
    if request.param == "http":
        return {}
    certificate = tmp_path / "both.pem"
    certificate.write_bytes(self_signed())
    return {"certfile": str(certificate)}


@asynccontextmanager
async def half_open(running: Running, count: int, sent: bytes) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Connections that begin a request, or a TLS handshake, and never end it."""
    url = running.http.base_url
    opened = [await asyncio.open_connection(url.host, url.port) for _ in range(count)]
    for _, writer in opened:
        writer.write(sent)
    yield [reader for reader, _ in opened]
    for _, writer in opened:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for _, writer in opened), return_exceptions=True)


HEAD_BEGINNING = b"POST / HTTP/1.1\r\nX"
TLS_BEGINNING = b"\x16\x03\x01\x02\x00\x01"  # a record that announces 512 bytes


async def closed(readers: list[asyncio.StreamReader]) -> int:
    """How many of the connections the source closes; waits for all of them."""
    async with asyncio.timeout(20):
        ends = await asyncio.gather(*(reader.read() for reader in readers), return_exceptions=True)
    return len(ends)


def test_many_half_open_connections_keep_no_delivery_out(state: Path, said: pytest.LogCaptureFixture, scheme: dict[str, Any]) -> None:
    async def play() -> None:
        async with source(state, said, **scheme) as running, half_open(running, 300, TLS_BEGINNING if scheme else HEAD_BEGINNING) as silent:
            assert await running.deliver(body("evt_1")) == 200
            assert await running.rules.ids() == ["evt_1"]
            # one more each: the longest silent went for it
            assert await closed(silent[:201]) == 201

    asyncio.run(play())
    assert sum("connections are open" in line for line in lines(said)) == 1  # strangers cannot fill the log
    assert_nothing_secret(said)


def test_a_head_that_never_ends_is_not_waited_for(state: Path, said: pytest.LogCaptureFixture, scheme: dict[str, Any]) -> None:
    async def play() -> None:
        async with source(state, said, **scheme) as running:
            running.module["HEAD_SECONDS"] = 0.2
            for sent in (b"", TLS_BEGINNING if scheme else HEAD_BEGINNING):
                async with half_open(running, 3, sent) as silent:
                    assert await closed(silent) == 3
            running.module["HEAD_SECONDS"] = 10.0
            assert await running.deliver(body("evt_1")) == 200

    asyncio.run(play())
    assert not [record for record in said.records if record.levelname == "ERROR"]


def test_a_body_that_never_ends_is_not_waited_for(state: Path, said: pytest.LogCaptureFixture) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx"

    async def play() -> None:
        async with source(state, said) as running:
            running.module["ANSWER_SECONDS"] = running.module["IDLE_SECONDS"] = 0.1
            async with half_open(running, 1, head % b"/hosting") as (reader,):
                async with asyncio.timeout(20):
                    assert (await reader.readline()).startswith(b"HTTP/1.1 503 ")
                assert await closed([reader]) == 1
            running.module["HEAD_SECONDS"] = 0.2
            async with half_open(running, 1, head % b"/elsewhere") as silent:
                assert await closed(silent) == 1

    asyncio.run(play())


def test_a_connection_serves_more_than_one_request(state: Path, said: pytest.LogCaptureFixture) -> None:
    """A proxy sends one after the other over one connection: the time for the first head says nothing of those that follow."""

    async def play() -> None:
        async with source(state, said) as running:
            running.module["HEAD_SECONDS"] = 0.2
            url, raw = running.http.base_url, body("evt_1")
            reader, writer = await asyncio.open_connection(url.host, url.port)
            head = "".join(f"{name}: {value}\r\n" for name, value in signed(raw).items())
            for _ in range(2):
                writer.write(f"POST /hosting HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n{head}\r\n".encode() + raw)
                async with asyncio.timeout(20):
                    assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
                # as long as a head may take: another connection is closed by then
                async with half_open(running, 1, HEAD_BEGINNING) as silent:
                    assert await closed(silent) == 1
            writer.close()
            await writer.wait_closed()

    asyncio.run(play())


def test_secrets_rotate_without_a_restart(state: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "secrets"
    file.write_text(f"{SECRET}\n")

    async def play() -> None:
        async with source(state, said, secret_file=str(file)) as running:
            assert await running.deliver(body("evt_1")) == 200
            file.write_text(f"{OTHER}\n\n")
            assert await running.deliver(body("evt_2")) == 401
            assert await running.deliver(body("evt_2"), signed(body("evt_2"), OTHER)) == 200
            file.unlink()
            assert await running.deliver(body("evt_3"), signed(body("evt_3"), OTHER)) == 503  # ours to mend: it is delivered again
            assert await running.rules.ids(2) == ["evt_1", "evt_2"]

    asyncio.run(play())
    assert_nothing_secret(said)


def test_the_secret_of_the_environment(state: Path, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_WEBHOOK_SECRET", f"{OTHER}, {SECRET}")

    async def play() -> None:
        async with source(state, said, secret=None) as running:
            assert await running.deliver(body("evt_1")) == 200

    asyncio.run(play())


def test_it_answers_https_itself(state: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    certificate = tmp_path / "both.pem"
    certificate.write_bytes(self_signed())

    async def play() -> None:
        async with source(state, said, certfile=str(certificate)) as running:
            assert running.http.base_url.scheme == "https"
            assert await running.deliver(body("evt_1")) == 200

    asyncio.run(play())


def self_signed() -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return made.sign(key, hashes.SHA256()).public_bytes(pem) + key.private_bytes(pem, form, serialization.NoEncryption())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"secret": None}, "no webhook secret: give secret or secret_file, or set HOSTING_WEBHOOK_SECRET"),
        ({"secret": [SECRET, " "]}, "no webhook secret"),
        ({"secret": None, "secret_file": "/nowhere/secret"}, "secret_file cannot be read: /nowhere/secret"),
        ({"secret": 4711}, "secret: Input should be a valid list"),
        ({"sekret": SECRET}, "sekret: Extra inputs are not permitted"),
        ({"port": None}, "port: Input should be a valid integer"),
        ({"tolerance": 301}, "tolerance: Input should be less than or equal to 300"),
        ({"path": "hosting"}, "path: String should match pattern"),
        ({"state_file": "/dev/null/x/events"}, "state_file cannot be written"),
        ({"certfile": "/nowhere/cert"}, "certfile and keyfile are no certificate"),
        ({"subscription": 1, "api_key": "vk_test_abcdefghijkl", "base_url": "https://api.example.com/v1"}, "needs a live API key"),
        ({"subscription": 1}, "no API key: set HOSTING_API_KEY"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], says: str, state: Path, said: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async with source(state, said, **options):
            pytest.fail("it started")

    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(play())
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert_nothing_secret(said)


def test_a_file_of_somebody_else(state: Path, said: pytest.LogCaptureFixture) -> None:
    state.parent.mkdir()
    state.write_text("not a database, but long enough to be read as one " * 100)
    with pytest.raises(ConfigurationError, match="state_file is not one of this source"):
        asyncio.run(load()(Rules(), {"port": 0, "secret": SECRET, "state_file": str(state)}))


# --- once, and not less -----------------------------------------------------------------------------------------------------------


def test_each_event_once_over_restarts(state: Path, said: pytest.LogCaptureFixture) -> None:
    raw = body("evt_1", "server.suspended")

    async def first() -> None:
        async with source(state, said) as running:
            assert [await running.deliver(raw) for _ in range(3)] == [200] * 3
            (event,) = await running.rules.take()
            assert event["payload"] == json.loads(raw)
            meta = event["meta"]
            assert (meta["uuid"], meta["endpoint"], meta["via"]) == ("evt_1", "/hosting", "delivery")
            assert (meta["headers"]["X-Webhook-Id"], meta["headers"]["X-Webhook-Event"]) == ("evt_1", "server.suspended")
            assert "X-Webhook-Signature" not in meta["headers"]
            assert datetime.fromisoformat(meta["received_at"]).tzinfo is not None
            assert "source" not in meta  # ansible-rulebook's own, and how it finds where feedback goes
            assert await running.deliver(body("evt_2")) == 200
            assert await running.rules.ids() == ["evt_2"]

    async def second() -> None:
        async with source(state, said) as running:
            assert await running.deliver(raw) == 200
            assert await running.deliver(body("evt_3")) == 200
            assert await running.rules.ids() == ["evt_3"]
            assert running.rules.is_empty

    asyncio.run(first())
    assert {path.stat().st_mode & 0o777 for path in state.parent.iterdir()} == {0o600}
    assert state.parent.stat().st_mode & 0o777 == 0o700
    asyncio.run(second())
    # Of what was handed over nothing stays but the id.
    with sqlite3.connect(state) as kept:
        rows = kept.execute("SELECT id, body, headers FROM events ORDER BY number").fetchall()
    kept.close()
    assert rows == [("evt_1", None, None), ("evt_2", None, None), ("evt_3", None, None)]


def test_rules_that_take_nothing_hold_no_answer_and_lose_nothing(state: Path, said: pytest.LogCaptureFixture) -> None:
    """The queue holds one event: that one is the rules' own, the others wait on disk for the next start."""

    async def blocked() -> None:
        async with source(state, said) as running:
            assert [await running.deliver(body(f"evt_{number}")) for number in range(1, 5)] == [200] * 4
            # The second is offered as soon as the first, which the queue had room for, has been marked.
            await until(lambda: running.rules.offered == ["evt_1", "evt_2"])

    async def later() -> None:
        async with source(state, said) as running:
            assert await running.deliver(body("evt_3")) == 200
            assert await running.rules.ids(3) == ["evt_2", "evt_3", "evt_4"]

    async def at_last() -> None:
        async with source(state, said) as running:
            assert await running.deliver(body("evt_5")) == 200
            assert await running.rules.ids() == ["evt_5"]

    asyncio.run(blocked())
    asyncio.run(later())
    asyncio.run(at_last())


def test_feedback_marks_what_the_rules_confirm(state: Path, said: pytest.LogCaptureFixture) -> None:
    """As with ``feedback: true``: ansible-rulebook hands in a second queue, and puts each event there once its engine has it."""

    async def unconfirmed() -> None:
        feedback: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        async with source(state, said, feedback=True, eda_feedback_queue=feedback) as running:
            for number in (1, 2, 3):
                assert await running.deliver(body(f"evt_{number}")) == 200
            one, two, _ = await running.rules.take(3)
            await feedback.put(two)
            await feedback.put(one)
            await until(feedback.empty)
            assert await running.deliver(body("evt_4")) == 200  # written after the marks: they are on disk

    async def again() -> None:
        feedback: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        async with source(state, said, feedback=True, eda_feedback_queue=feedback) as running:
            assert await running.rules.ids(2) == ["evt_3", "evt_4"]

    asyncio.run(unconfirmed())
    asyncio.run(again())


def test_an_event_filter_that_fails_ends_nothing(state: Path, said: pytest.LogCaptureFixture) -> None:
    class Filtered(Rules):
        async def put(self, event: dict[str, Any], /) -> None:
            if event["payload"]["id"] == "evt_1":
                raise KeyError(SECRET)
            await super().put(event)

    async def first() -> None:
        async with source(state, said, Filtered()) as running:
            assert [await running.deliver(body(id)) for id in ("evt_1", "evt_2")] == [200, 200]
            assert await running.rules.ids() == ["evt_2"]

    async def second() -> None:
        async with source(state, said) as running:
            assert await running.rules.ids() == ["evt_1"]

    asyncio.run(first())
    assert "event evt_1 was not taken (KeyError); it is handed over again at the next start" in lines(said)
    assert_nothing_secret(said)
    asyncio.run(second())


def test_no_more_is_kept_than_there_is_room_for(state: Path, said: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async with source(state, said) as running:
            running.module["MAX_WAITING"] = 2
            assert [await running.deliver(body(id)) for id in ("evt_1", "evt_2")] == [200, 200]
            await until(lambda: running.rules.offered == ["evt_1", "evt_2"])
            assert [await running.deliver(body(id)) for id in ("evt_3", "evt_4")] == [200, 503]
            assert await running.rules.ids(3) == ["evt_1", "evt_2", "evt_3"]
            assert await running.deliver(body("evt_4")) == 200

    asyncio.run(play())


def test_a_disk_that_fails_loses_nothing_and_ends_nothing(state: Path, said: pytest.LogCaptureFixture) -> None:
    """What cannot be kept is not acknowledged; a mark that cannot be written is written later."""

    def failing_once(method: Callable[..., Any]) -> Callable[..., Any]:
        failures = iter([sqlite3.OperationalError("disk is full")])

        def fails(*arguments: Any) -> Any:
            for failure in failures:
                raise failure
            return method(*arguments)

        return fails

    async def play() -> None:
        async with source(state, said) as running:
            store = running.module["Store"]
            store.add, store.done = failing_once(store.add), failing_once(store.done)
            assert [await running.deliver(body("evt_1")) for _ in range(2)] == [503, 200]
            assert await running.deliver(body("evt_2")) == 200
            assert await running.rules.ids(2) == ["evt_1", "evt_2"]

    asyncio.run(play())
    assert "could not keep a delivery, the service will try again: disk is full" in lines(said)
    assert "cannot write the state file: disk is full; trying again in 1 s" in lines(said)
    with closing(sqlite3.connect(state)) as kept:
        assert kept.execute("SELECT count(*) FROM events WHERE done_at IS NULL").fetchone() == (0,)


def test_a_sender_that_stalls_or_breaks_off_holds_nothing_up(state: Path, said: pytest.LogCaptureFixture) -> None:
    head = b"POST /hosting HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"

    async def play() -> None:
        async with source(state, said) as running:
            running.module["ANSWER_SECONDS"] = 0.1
            address = running.http.base_url
            reader, stalled = await asyncio.open_connection(address.host, address.port)
            stalled.write(head)
            assert await reader.readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
            stalled.close()
            _, gone = await asyncio.open_connection(address.host, address.port)
            gone.write(head)
            await gone.drain()
            gone.transport.abort()
            assert await running.deliver(body("evt_1")) == 200

    asyncio.run(play())
    assert "Traceback" not in said.text


def test_a_taken_port_and_a_taken_state_file_are_waited_for(state: Path, said: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            first = asyncio.create_task(load()(Rules(), {"port": port, "secret": SECRET, "state_file": str(state)}))
            await until(lambda: [line for line in lines(said) if "cannot listen" in line])
            second = asyncio.create_task(load()(Rules(), {"port": 0, "secret": SECRET, "state_file": str(state)}))
            await until(lambda: [line for line in lines(said) if "cannot open the state file: another process uses" in line])
        await until(lambda: address(said, 0))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        start = len(said.records)
        await until(lambda: address(said, start))
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    asyncio.run(play())
    assert [line for line in lines(said) if "trying again in 1 s" in line]


# --- what was missed --------------------------------------------------------------------------------------------------------------


class Account:
    """An account with a subscription, at an emulator whose deliveries go where they are told to."""

    def __init__(self, emulator: Any) -> None:
        self.emulator = emulator
        self.control = Control(emulator.control_url)
        self.client = Client(emulator.live_key, emulator.base_url)
        made = self.client.webhooks.create(url=f"{ORIGIN}/hosting", events=["*"])
        self.id, self.secret = made.id, made.secret.reveal()
        self.servers = 0

    def route(self, url: str | None) -> None:
        self.control("PUT", "/webhook-routes", {} if url is None else {ORIGIN: url})

    def order(self, tariff_id: int = 1, **period: Any) -> str:
        """Order a server; the id of the event that says so."""
        self.servers += 1
        key = f"order-of-server-{self.servers:04d}"
        self.client.servers.create(tariff_id=tariff_id, os="debian-12", name=f"web-{self.servers}", idempotency_key=key, **period)
        self.control("POST", "/clock", {"advance": 0})
        return self.newest("server.created").event_id or ""

    def newest(self, event: str) -> Delivery:
        return next(row for row in self.client.webhooks.deliveries.list(self.id) if row.event_type == event)

    def delivered(self, event: str) -> Delivery:
        """The newest delivery of this event, which has been accepted."""
        self.control("POST", "/clock", {"advance": 0})
        found = self.newest(event)
        assert found.status == "delivered", found
        return found

    def redeliver(self, delivery: Delivery) -> None:
        self.client.webhooks.deliveries.redeliver(delivery.id)
        assert self.delivered(delivery.event_type).event_id == delivery.event_id

    def options(self) -> dict[str, Any]:
        return {
            "secret": self.secret,
            "subscription": self.id,
            "api_key": self.emulator.live_key,
            "base_url": self.emulator.base_url,
        }


@pytest.fixture
def account(emulator: Any) -> Account:
    return Account(emulator)


async def take_through(rules: Rules, id: str) -> list[dict[str, Any]]:
    """Events up to this one: an order brings others too."""
    events = await rules.take()
    while events[-1]["meta"]["uuid"] != id:
        events += await rules.take()
    return events


def test_events_missed_while_down_are_handed_over_once(state: Path, account: Account, dialect: str, said: pytest.LogCaptureFixture) -> None:
    """They come from the log of the subscription; what is delivered all the same, later, comes no second time."""
    missed = account.order()

    async def first() -> None:
        async with source(state, said, **account.options()) as running:
            event = (await take_through(running.rules, missed))[-1]
            assert (event["meta"]["via"], event["payload"]["type"]) == ("reconciliation", "server.created")
            account.route(running.origin)
            # The service tries again within the minute: accepted, known, not handed over again.
            await asyncio.to_thread(account.control, "POST", "/clock", {"advance": 61})
            states = await asyncio.to_thread(lambda: {row.status for row in account.client.webhooks.deliveries.list(account.id)})
            assert states == {"delivered"}
            fresh = await asyncio.to_thread(account.order)
            events = await take_through(running.rules, fresh)
            assert {event["meta"]["via"] for event in events} == {"delivery"}
            # Either way the event is the same.
            delivered = events[-1]["payload"]
            assert {**event["payload"], "id": "", "created_at": "", "data": {}, "resource": ""} == {
                **delivered,
                "id": "",
                "created_at": "",
                "data": {},
                "resource": "",
            }
            assert set(event["payload"]["data"]["object"]) == set(delivered["data"]["object"])

    async def second() -> None:
        account.route(None)
        lost = await asyncio.to_thread(account.order)
        async with source(state, said, **account.options()) as running:
            events = await take_through(running.rules, lost)
            assert [event["meta"]["uuid"] for event in events if event["payload"]["type"] == "server.created"] == [lost]

    asyncio.run(first())
    asyncio.run(second())
    assert [line for line in lines(said) if "events were missed and are handed over now" in line]
    assert account.emulator.live_key not in said.text
    assert account.secret not in said.text


def test_the_dead_count_and_what_others_dealt_with_does_not(state: Path, account: Account, said: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async with source(state.with_name("elsewhere"), said, secret=account.secret) as elsewhere:
            account.route(elsewhere.origin)
            handled = await asyncio.to_thread(account.order)
            await take_through(elsewhere.rules, handled)
        account.route(None)
        lost = await asyncio.to_thread(account.order)
        account.control("POST", "/clock", {"advance": 86400})  # every attempt has failed
        async with source(state, said, **account.options()) as running:
            events = await take_through(running.rules, lost)
            assert handled not in [event["meta"]["uuid"] for event in events]
        # Older than is asked for.
        fresh = body("evt_fresh")
        async with source(state.with_name("young"), said, **account.options(), lookback=0) as running:
            await until(lambda: [record for record in said.records if "/deliveries?" in record.getMessage()])
            assert await running.deliver(fresh, signed(fresh, account.secret)) == 200
            assert await running.rules.ids() == ["evt_fresh"]

    asyncio.run(play())
    assert len([line for line in lines(said) if "events were missed" in line]) == 1


@pytest.mark.emulator(dialect="live")  # where the list of deliveries holds no events, so that each is fetched
def test_a_service_that_fails_is_asked_again(state: Path, account: Account, said: pytest.LogCaptureFixture) -> None:
    missed = account.order()
    account.control("POST", "/faults", {"method": "GET", "path": "^/webhooks", "action": {"status": 500, "code": "server_error"}})

    # One event that cannot be had keeps no other waiting.
    lost = {"method": "GET", "path": "^/webhooks/deliveries/", "action": {"status": 404, "code": "not_found"}}
    account.control("POST", "/faults", lost)

    async def play() -> None:
        async with source(state, said, **account.options()) as running:
            await take_through(running.rules, missed)

    asyncio.run(play())
    assert [line for line in lines(said) if "cannot ask for missed events" in line and "trying again in 1 s" in line]
    assert len([line for line in lines(said) if "going on without until the next start" in line]) == 1


def test_what_cannot_be_asked_for_ends_nothing(state: Path, account: Account, said: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async with source(state, said, **{**account.options(), "subscription": 4711}) as running:
            await until(lambda: [line for line in lines(said) if "cannot ask for missed events, going on without" in line])
            assert await running.deliver(body("evt_1"), signed(body("evt_1"), account.secret)) == 200
        account.client.webhooks.update(account.id, active=False)
        async with source(state, said, **account.options()):
            await until(lambda: [line for line in lines(said) if f"subscription {account.id} is disabled" in line])

    asyncio.run(play())


# --- under the program ------------------------------------------------------------------------------------------------------------

NEVER_TAKES = """
import asyncio, runpy, sys

class Rules:
    async def put(self, event):
        await asyncio.Event().wait()

asyncio.run(runpy.run_path(sys.argv[1])["main"](Rules(), {"port": int(sys.argv[2]), "path": "/hosting", "state_file": sys.argv[3]}))
"""


class Program:
    """ansible-rulebook with the example rulebook, in a folder of its own."""

    def __init__(self, account: Account, home: Path) -> None:
        self.account, self.home, self.state = account, home, home / "events.sqlite"
        self.output = home / "output.txt"
        self.folder = home / "rulebooks"
        shutil.copytree(COLLECTION / "examples" / "rulebooks", self.folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.secret = home / "webhook-secret"
        self.secret.write_text(account.secret)
        variables = {"port": self.port, "state_file": str(self.state), "secret_file": str(self.secret)}
        (home / "variables.yml").write_text(json.dumps(variables))
        account.route(f"http://127.0.0.1:{self.port}")
        self.environ = {
            "HOME": str(home),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(home),  # each run_playbook has a folder there, which a kill leaves behind
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
            "HOSTING_API_KEY": account.emulator.live_key,
            "HOSTING_BASE_URL": account.emulator.base_url,
        }
        if "JAVA_HOME" in os.environ:
            self.environ["JAVA_HOME"] = os.environ["JAVA_HOME"]

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [
            "ansible-rulebook",
            "--rulebook",
            "account.yml",
            "--inventory",
            "inventory.yml",
            "--vars",
            str(self.home / "variables.yml"),
        ]
        with self.output.open("a") as output:
            process = subprocess.Popen(
                [str(BIN / command[0]), *command[1:], *arguments],
                env=self.environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        wait_for(self.listens)
        return process

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def deliver(self, raw: bytes, headers: Mapping[str, str]) -> int:
        return httpx.post(f"http://127.0.0.1:{self.port}/hosting", content=raw, headers=dict(headers)).status_code

    def said(self, text: str) -> int:
        return self.output.read_text().count(text)


def test_rules_fire_under_ansible_rulebook(account: Account, tmp_path: Path) -> None:
    """The emulator delivers to the example rulebook: each event starts its playbook once, over duplicates and two kills."""
    program = Program(account, tmp_path)

    # Kept and acknowledged, but no rule ever had it: the process is gone.
    arguments = [sys.executable, "-c", NEVER_TAKES, str(FILE), str(program.port), str(program.state)]
    doomed = subprocess.Popen(arguments, env={**program.environ, "HOSTING_WEBHOOK_SECRET": account.secret}, cwd=tmp_path)
    wait_for(program.listens)
    account.order()
    (server,) = account.client.servers.list()
    account.control("PATCH", f"/servers/{server.id}", {"status": "suspended"})
    suspended = account.delivered("server.suspended")
    doomed.kill()
    doomed.wait()

    running = program.start()
    try:
        wait_for(lambda: program.said(f"{server.name} ({server.id}) is suspended. Look at unpaid invoices") == 1)
        account.order(HOURLY, hours=24)
        account.control("PATCH", "/account", {"balance": "0.01"})
        account.delivered("balance.low")
        wait_for(lambda: program.said("Top up: ") == 1)
        # Nothing of this starts a playbook.
        raw = body("evt_forged", "balance.low")
        assert program.deliver(raw, signed(raw, OTHER)) == 401
        assert program.deliver(raw, signed(raw, account.secret, age=301)) == 401
        account.redeliver(suspended)
    finally:
        kill_all(running)

    # This time an event is marked when the rule engine confirms it.
    rulebook = program.folder / "account.yml"
    rulebook.write_text(rulebook.read_text().replace("path: /hosting\n", "path: /hosting\n        feedback: true\n"))
    running = program.start("-vv", "--persistence-id", "account")
    try:
        account.redeliver(suspended)
        account.control("PATCH", f"/servers/{server.id}", {"status": "active"})
        account.control("PATCH", f"/servers/{server.id}", {"status": "suspended"})
        wait_for(lambda: program.said("is suspended. Look at unpaid invoices") > 1)
        # The rules take one event after the other: what came before this one has been taken, too.
        assert program.said("TASK [Say what is to be done]") == 2
        assert program.said("TASK [Say what would renew by itself]") == 1
        running.terminate()
        running.wait(timeout=60)
    finally:
        if running.poll() is None:
            kill_all(running)

    with closing(sqlite3.connect(program.state)) as kept:
        assert kept.execute("SELECT count(*) FROM events WHERE done_at IS NULL").fetchone() == (0,)
    output = program.output.read_text()
    assert account.secret not in output
    assert account.emulator.live_key not in output
    assert "Traceback" not in output
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [path for path, content in files.items() if account.secret.encode() in content] == [program.secret]
    # The API key is the playbooks' own, so it is in the environment that ansible-runner writes down for each.
    runners = {path for path in files if path.name == "command"}
    assert [path for path, content in files.items() if account.emulator.live_key.encode() in content and path not in runners] == []

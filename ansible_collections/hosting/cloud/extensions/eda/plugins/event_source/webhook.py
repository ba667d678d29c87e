# Copyright: (c) 2026, the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

# ansible-rulebook loads this file by its path: all of it stands in one file, and what it imports is installed or built in.

DOCUMENTATION = r"""
---
module: webhook
short_description: Receive events of a hosting company that speaks the Hosting Client API v1
description:
  - Listens for webhook deliveries, checks signature and time over the raw body, and hands each event to the rules.
  - Every event is written to O(state_file) before it is acknowledged, and marked there once the rules have it.
    What a crash or a restart left unmarked is handed over at the next start, what is marked never again, however often it is delivered.
  - Answers 200 for a new event and for one that is known already, 401 for everything that cannot be trusted, 404 for another path,
    405 for another method, 413 for a body above 64 KB, 503 when the event cannot be kept right now (the service then tries again).
  - At most 100 connections are open at a time. One more closes the one that has been silent longest.
    A connection has 10 seconds to send the head of its request, TLS handshake included, and 8 seconds to send the body.
    It is closed after 75 seconds without another request.
  - The service delivers to public https addresses only. Let a proxy do TLS in front of it, or give O(certfile).
  - An event is C(payload), the envelope as it was delivered (V(id), V(type), V(created_at), V(livemode), V(account_id),
    V(api_version), V(data.object), V(data.previous), V(resource)), and C(meta) with V(uuid) (the id of the event), V(endpoint),
    V(headers), V(received_at) and V(via) (V(delivery) or V(reconciliation)).
  - No order is promised, by the service or here. Compare C(payload.created_at) where it matters.
version_added: 0.1.0
author:
  - The pulumi-hosting authors (@pulumi-hosting)
requirements:
  - python >= 3.11
  - pulumi-hosting >= 0.1.0
  - aiohttp (ansible-rulebook brings it)
options:
  host:
    description: The address to listen on.
    type: str
    default: 127.0.0.1
  port:
    description: The port to listen on. V(0) takes a free one and logs it.
    type: int
    required: true
  path:
    description: The path of the subscription's URL.
    type: str
    default: /
  secret:
    description:
      - The subscription's C(whsec_…), or several while one replaces another. A variable of the rulebook, not the text itself.
      - Without O(secret) and O(secret_file) the environment variable E(HOSTING_WEBHOOK_SECRET) is read, several separated by commas.
        The environment reaches every playbook that the rules start, and ansible-runner writes it into its artifacts:
        O(secret_file) keeps the secret out of both.
    type: list
    elements: str
  secret_file:
    description: A file with one secret on each line. It is read at each delivery, so a secret is rotated without a restart.
    type: path
  tolerance:
    description: How many seconds the time of a delivery may be off, either way. At most V(300), the API's own window.
    type: int
    default: 300
  state_file:
    description:
      - Where events are kept (SQLite, readable by its owner only). One source at a time uses it.
        Keep it on a disk that outlives the rulebook.
      - Handed over events leave only their id there, for 31 days after they were last seen.
      - Without it C($XDG_STATE_HOME/hosting/webhook-<port>.sqlite), with C(~/.local/state) where that variable is not set.
    type: path
  certfile:
    description: A certificate chain in PEM form, to answer https itself.
    type: path
  keyfile:
    description: The private key of O(certfile), unless that file holds it.
    type: path
  subscription:
    description:
      - The id of the subscription. With it the source asks at its start which deliveries never arrived, and hands over their events too.
      - Deliveries that no receiver accepted count always, accepted ones only if they are younger than O(state_file).
      - Costs one request, one for every 100 deliveries, and one for each missed event.
    type: int
  lookback:
    description: How old a missed event may be, in seconds. The service forgets undelivered events after 30 days.
    type: int
    default: 2592000
  api_key:
    description: The API key for O(subscription), a live one with the scope C(webhooks:manage). Without it E(HOSTING_API_KEY).
    type: str
  base_url:
    description: The address of the API for O(subscription), ending in C(/v1). Without it E(HOSTING_BASE_URL).
    type: str
  ca_file:
    description: Certificates to trust for O(base_url) instead of the usual ones, in PEM form.
    type: path
  feedback:
    description:
      - Mark an event only when the rule engine confirms it, instead of when it is in the engine's queue.
        What is never confirmed is handed over again at the next start.
      - ansible-rulebook allows it with C(--persistence-id) only.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: The secret comes from the environment (HOSTING_WEBHOOK_SECRET)
  hosting.cloud.webhook:
    port: 5000
    path: /hosting

- name: Two secrets while one replaces another, and events that were missed while the rulebook was down
  hosting.cloud.webhook:
    host: 0.0.0.0
    port: 5000
    certfile: /etc/ssl/hooks/fullchain.pem
    keyfile: /etc/ssl/hooks/privkey.pem
    secret_file: /run/secrets/hosting-webhook
    state_file: /var/lib/rulebook/hosting.sqlite
    subscription: 17
"""

import asyncio
import json
import logging
import os
import sqlite3
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, Self, TypeVar

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pulumi_hosting.api.client import Client
from pulumi_hosting.api.errors import ApiError, ConfigurationError, HostingError, InvalidResponse, WebhookRejected
from pulumi_hosting.api.models import Delivery
from pulumi_hosting.api.redact import Secret
from pulumi_hosting.webhooks import EVENT_HEADER, ID_HEADER, TIMESTAMP_HEADER, verify

log = logging.getLogger("hosting.cloud.webhook")

SECRET_VARIABLE = "HOSTING_WEBHOOK_SECRET"  # noqa: S105  # the name of a variable
MAX_BODY_BYTES = 64 * 1024
ANSWER_SECONDS = 8.0  # from the head of a request to its answer; the service waits 10
HEAD_SECONDS = 10.0  # from the connection to the head of its first request
IDLE_SECONDS = 75.0  # from an answer to the next request of the same connection
MAX_CONNECTIONS = 100  # well below the 256 descriptors that some systems allow a process
SHOWN_HEADERS = (ID_HEADER, EVENT_HEADER, TIMESTAMP_HEADER, "User-Agent", "Content-Type")
# Dead deliveries are kept, and can be sent again by hand, for 30 days; the clock starts anew whenever an event is seen.
REMEMBER_SECONDS = 31 * 86400
TIDY_SECONDS = 6 * 3600.0
MAX_WAITING = 10_000
LONGEST_PAUSE = 60.0
LOG_SECONDS = 60.0

T = TypeVar("T")


class EventQueue(Protocol):
    """What ansible-rulebook hands in: bounded, so ``put`` may take as long as the rules do."""

    async def put(self, event: dict[str, Any], /) -> None:
        """Returns when there was room for the event."""


async def main(queue: EventQueue, args: dict[str, Any]) -> None:
    """Receive until cancelled. Raises ``ConfigurationError`` for options that cannot be used; what goes wrong later is tried again."""
    options = Options.of(args)
    source = Source(queue, options, Secrets.of(options), args.get("eda_feedback_queue"))
    # One thread for SQLite: its writes wait for the disk, and the rules must not wait with them.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="hosting.cloud.webhook") as thread:
        store = await patiently("cannot open the state file", lambda: on(thread, Store, options.state_path))
        try:
            await source.run(store, thread)
        finally:
            thread.submit(store.close)


# --- options ------------------------------------------------------------------------------------------------------------------------


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | Secret) else value


def _secret(value: Any) -> Any:
    return Secret(value.strip()) if isinstance(value, str) else value


Hidden = Annotated[Secret, BeforeValidator(_secret)]


class Options(BaseModel):
    """The options of the source, checked. Each means what its documentation says."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True)

    port: Annotated[int, Field(ge=0, le=65535)]
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._~/-]*$")] = "/"
    secret: Annotated[list[Hidden] | None, BeforeValidator(_listed)] = None
    secret_file: Path | None = None
    tolerance: Annotated[int, Field(ge=1, le=300)] = 300
    state_file: Path | None = None
    certfile: Path | None = None
    keyfile: Path | None = None
    subscription: Annotated[int, Field(ge=1)] | None = None
    lookback: Annotated[int, Field(ge=0)] = 30 * 86400
    api_key: Annotated[Hidden | None, Field()] = None
    base_url: str | None = None
    ca_file: Path | None = None
    feedback: bool = False

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Self:
        """Raises ``ConfigurationError``: one line with all that is wrong, and no value."""
        try:
            return cls.model_validate({name: value for name, value in args.items() if name != "eda_feedback_queue"})
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False, include_context=False)]
        # Outside of the handler: the error would carry the other as its context, and that one the values.
        raise ConfigurationError(f"the options of hosting.cloud.webhook cannot be used: {'; '.join(wrong)}")

    @property
    def state_path(self) -> Path:
        if self.state_file is not None:
            return self.state_file.expanduser()
        home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return Path(home).expanduser() / "hosting" / f"webhook-{self.port}.sqlite"

    def tls(self) -> ssl.SSLContext | None:
        """Raises ``ConfigurationError`` for a certificate or key that cannot be used."""
        if self.certfile is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certfile, self.keyfile)
        except OSError:
            raise ConfigurationError("certfile and keyfile are no certificate with its key in PEM form, or cannot be read") from None
        return context

    def client(self) -> Client | None:
        """The client that asks for missed events. Raises ``ConfigurationError`` for a key that cannot."""
        if self.subscription is None:
            return None
        client = Client(self.api_key, self.base_url, timeout=10.0, deadline=20.0, ca_file=self.ca_file, read_only=True)
        if client.is_test_key:
            raise ConfigurationError(
                "subscription needs a live API key: test keys may not read webhooks; give one or leave subscription out"
            )
        return client


@dataclass(frozen=True)
class Secrets:
    """The secrets a delivery may be signed with."""

    given: tuple[Secret, ...]
    file: Path | None

    @classmethod
    def of(cls, options: Options) -> Self:
        """Raises ``ConfigurationError`` when there is none."""
        given = tuple(options.secret or ())
        file = options.secret_file.expanduser() if options.secret_file else None
        if not given and file is None:
            named = os.environ.get(SECRET_VARIABLE, "").replace(",", " ").split()
            given = tuple(map(Secret, named))
        found = cls(given, file)
        try:
            usable = found.current()
        except (OSError, ValueError):
            raise ConfigurationError(f"secret_file cannot be read: {file}") from None
        if not usable or not all(secret.reveal() for secret in usable):
            raise ConfigurationError(
                f"no webhook secret: give secret or secret_file, or set {SECRET_VARIABLE} to the subscription's whsec_…"
            )
        return found

    def current(self) -> list[Secret]:
        """Raises ``OSError`` or ``ValueError`` when the file cannot be read."""
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file else []
        return [*self.given, *(Secret(line.strip()) for line in lines if line.strip())]


# --- what is kept -------------------------------------------------------------------------------------------------------------------


class Full(HostingError):
    """More events wait for the rules than are kept."""


class Busy(OSError):
    """Another process has the state file."""


class Kept(NamedTuple):
    """An event that waits for the rules. ``number`` grows with each event received; ``received_at`` is unix seconds."""

    number: int
    id: str
    body: bytes
    headers: str
    via: str
    received_at: float


class Store:
    """Events on disk, by id. Every change has reached the disk when its method returns. One process at a time, one thread.

    Raises ``ConfigurationError`` when the file cannot be used at all, ``Busy`` while another process has it.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._now = now
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made before SQLite opens it: its journal takes over the mode. A file that was readable for others is closed to them.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            path.chmod(0o600)
        except OSError as error:
            raise ConfigurationError(f"state_file cannot be written: {path}: {error.strerror}") from None
        self._db = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # released by the system when the process ends, however it ends
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(
                """
                BEGIN IMMEDIATE;
                CREATE TABLE IF NOT EXISTS about (born REAL NOT NULL);
                CREATE TABLE IF NOT EXISTS events (
                    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, body BLOB, headers TEXT, via TEXT NOT NULL,
                    received_at REAL NOT NULL, seen_at REAL NOT NULL, done_at REAL
                );
                CREATE INDEX IF NOT EXISTS waiting ON events (number) WHERE done_at IS NULL;
                COMMIT;
                """
            )
            self._db.execute("INSERT INTO about SELECT ? WHERE NOT EXISTS (SELECT 1 FROM about)", (now(),))
        except sqlite3.Error as error:
            self._db.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Busy(f"another process uses {path}") from None
            raise ConfigurationError(f"state_file is not one of this source, or is damaged: {path}: {error}; give another path") from None

    def close(self) -> None:
        self._db.close()

    @property
    def born(self) -> float:
        """When the file was made, unix seconds."""
        (when,) = self._db.execute("SELECT born FROM about").fetchone()
        return float(when)

    def add(self, id: str, body: bytes, headers: Mapping[str, str], via: str) -> bool:
        """Whether the event is new, and so has been kept. Raises ``Full``, ``sqlite3.Error``."""
        now = self._now()
        if self.knows(id):
            self._db.execute("UPDATE events SET seen_at = ? WHERE id = ?", (now, id))
            return False
        (waiting,) = self._db.execute("SELECT count(*) FROM events WHERE done_at IS NULL").fetchone()
        if waiting >= MAX_WAITING:
            raise Full(f"{waiting} events wait for the rules")
        self._db.execute(
            "INSERT INTO events (id, body, headers, via, received_at, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
            (id, body, json.dumps(dict(headers)), via, now, now),
        )
        return True

    def knows(self, id: str) -> bool:
        return self._db.execute("SELECT 1 FROM events WHERE id = ?", (id,)).fetchone() is not None

    def after(self, number: int) -> Kept | None:
        """The first event after ``number`` that waits for the rules."""
        row = self._db.execute(
            "SELECT number, id, body, headers, via, received_at FROM events WHERE done_at IS NULL AND number > ? ORDER BY number LIMIT 1",
            (number,),
        ).fetchone()
        return None if row is None else Kept(*row)

    def done(self, id: str) -> None:
        """The rules have it: only the id stays."""
        self._db.execute("UPDATE events SET done_at = ?, body = NULL, headers = NULL WHERE id = ? AND done_at IS NULL", (self._now(), id))

    def tidy(self) -> None:
        """Forget what was handed over and not seen since."""
        self._db.execute("DELETE FROM events WHERE done_at IS NOT NULL AND seen_at < ?", (self._now() - REMEMBER_SECONDS,))


async def on(thread: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
    # Shielded: the mark of an event that the rules have must be written, even when the rulebook ends at that moment.
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(thread, function, *arguments))


async def patiently(what: str, action: Callable[[], Awaitable[T]]) -> T:
    """``action``, again and again until it succeeds: an exception would end the whole rulebook. One line for each failure."""
    pause = 1.0
    while True:
        try:
            return await action()
        except ConfigurationError:
            raise
        except (HostingError, OSError, sqlite3.Error) as error:
            log.error("%s: %s; trying again in %g s", what, " ".join(str(error).split())[:300], pause)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


# --- the source ---------------------------------------------------------------------------------------------------------------------


class Source:
    """Receives, keeps, hands over, marks."""

    _store: Store
    _thread: ThreadPoolExecutor

    def __init__(self, queue: EventQueue, options: Options, secrets: Secrets, feedback: "asyncio.Queue[dict[str, Any]] | None") -> None:
        self._queue, self._options, self._secrets, self._feedback = queue, options, secrets, feedback
        self._tls, self._client = options.tls(), options.client()
        self._arrived = asyncio.Event()
        self._complaints = Complaints()
        self._connections = Connections(self._tls, self._complaints)

    async def run(self, store: Store, thread: ThreadPoolExecutor) -> None:
        """Until cancelled. ``thread`` is the one that opened ``store``."""
        self._store, self._thread = store, thread
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            tasks.create_task(self._hand_over())
            tasks.create_task(self._tidy())
            if self._feedback is not None:
                tasks.create_task(self._confirm(self._feedback))
            if self._client is not None:
                tasks.create_task(self._reconcile(self._client))

    # --- receiving

    async def _listen(self) -> None:
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_post(self._options.path, self._receive)
        # Nothing is decompressed: the signature is over the bytes as they came.
        runner = web.AppRunner(application, access_log=None, auto_decompress=False, shutdown_timeout=5.0)
        await runner.setup()
        server = None
        try:
            server = await patiently("cannot listen", lambda: self._bind(runner))
            scheme = "http" if self._tls is None else "https"
            for bound in server.sockets:
                host, port = bound.getsockname()[:2]
                log.info("listening on %s://%s:%d%s", scheme, f"[{host}]" if ":" in host else host, port, self._options.path)
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            if server is not None:
                server.close()
            await runner.cleanup()
            self._connections.close()

    async def _bind(self, runner: web.AppRunner) -> asyncio.Server:
        answering = runner.server
        assert answering is not None  # noqa: S101  # made by setup()
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: self._connections.accept(answering()), self._options.host, self._options.port)

    async def _receive(self, request: web.Request) -> web.Response:
        """Kept first, then answered: however long the rules take, the service has its answer in time."""
        try:
            with self._connections.answering(request) as connection:
                async with asyncio.timeout(ANSWER_SECONDS):
                    body = await request.read()
                    connection.protect()
                    return await self._accept(request, body)
        except TimeoutError:
            return _answer(503)
        except (ConnectionError, web.RequestPayloadError):
            return _answer(400)  # it broke off: nobody reads this

    async def _accept(self, request: web.Request, body: bytes) -> web.Response:
        try:
            event = verify(body, request.headers, self._secrets.current(), tolerance=self._options.tolerance)
            headers = {name: request.headers[name] for name in SHOWN_HEADERS if name in request.headers}
            is_new = await self._kept(self._store.add, event.id, body, headers, "delivery")
        except WebhookRejected as refusal:
            # The sender learns nothing; who runs the rulebook learns why.
            self._complaints.say(f"refused a delivery from {request.remote}: {refusal}")
            return _answer(401)
        except (Full, ConfigurationError, OSError, ValueError, sqlite3.Error) as failure:
            self._complaints.say(f"could not keep a delivery, the service will try again: {failure}")
            return _answer(503)
        if is_new:
            self._arrived.set()
        return _answer(200)

    # --- handing over

    async def _hand_over(self) -> None:
        number = 0
        while True:
            self._arrived.clear()
            kept = await patiently("cannot read the state file", lambda: self._kept(self._store.after, number))  # noqa: B023  # awaited at once
            if kept is None:
                await self._arrived.wait()
                continue
            number = kept.number
            try:
                await self._queue.put(self._event(kept))
            except Exception as failure:  # noqa: BLE001  # event filters run in there: one that fails must not end the rulebook
                log.error("event %s was not taken (%s); it is handed over again at the next start", kept.id, type(failure).__name__)
                continue
            if self._feedback is None:
                await self._mark(kept.id)

    async def _confirm(self, feedback: "asyncio.Queue[dict[str, Any]]") -> None:
        while True:
            event = await feedback.get()
            await self._mark(str(event.get("meta", {}).get("uuid")))

    async def _kept(self, method: Callable[..., T], *arguments: Any) -> T:
        return await on(self._thread, method, *arguments)

    async def _mark(self, id: str) -> None:
        await patiently("cannot write the state file", lambda: self._kept(self._store.done, id))

    def _event(self, kept: Kept) -> dict[str, Any]:
        return {
            "payload": json.loads(kept.body),
            "meta": {
                "uuid": kept.id,
                "endpoint": self._options.path,
                "headers": json.loads(kept.headers),
                "received_at": datetime.fromtimestamp(kept.received_at, UTC).isoformat().replace("+00:00", "Z"),
                "via": kept.via,
            },
        }

    async def _tidy(self) -> None:
        while True:
            await patiently("cannot write the state file", lambda: self._kept(self._store.tidy))
            await asyncio.sleep(TIDY_SECONDS)

    # --- what was missed

    async def _reconcile(self, client: Client) -> None:
        with closing(client):
            found = await patiently("cannot ask for missed events", lambda: self._missed(client))
            for delivery in found:
                await patiently(f"cannot fetch missed event {delivery.event_id}", lambda: self._fetch(client, delivery))  # noqa: B023  # awaited at once
        if found:
            log.warning("%d events were missed and are handed over now", len(found))

    async def _missed(self, client: Client) -> list[Delivery]:
        """Deliveries whose event is not known here, oldest first."""
        subscription = self._options.subscription or 0
        try:
            shown = await asyncio.to_thread(client.webhooks.get, subscription)
            listed = await asyncio.to_thread(lambda: list(client.webhooks.deliveries.list(subscription)))
        except ApiError as refusal:
            if not _is_final(refusal):
                raise
            log.error("cannot ask for missed events, going on without: %s", refusal)
            return []
        if not shown.active:
            log.warning("subscription %d is disabled, nothing is delivered: set active again (%s)", subscription, shown.disabled_reason)
        horizon, born = time.time() - self._options.lookback, await self._kept(lambda: self._store.born)
        missed: dict[str, Delivery] = {}
        for delivery in listed:
            created = delivery.created_at.timestamp() if delivery.created_at else time.time()
            # What was accepted before this file existed, another receiver has dealt with.
            if created < horizon or (delivery.status == "delivered" and created < born):
                continue
            if delivery.event_id and delivery.event_type != "ping" and not await self._kept(self._store.knows, delivery.event_id):
                missed[delivery.event_id] = delivery
        return sorted(missed.values(), key=lambda delivery: (delivery.created_at or datetime.now(UTC), delivery.id))

    async def _fetch(self, client: Client, delivery: Delivery) -> None:
        try:
            event = delivery.payload or (await asyncio.to_thread(client.webhooks.deliveries.get, delivery.id)).payload
        except (ApiError, InvalidResponse) as failure:
            if not _is_final(failure):
                raise
            log.error("cannot fetch missed event %s, going on without until the next start: %s", delivery.event_id, failure)
            return
        if event is None:
            log.error("delivery %d has no payload; its event is left out", delivery.id)
            return
        body = event.model_dump_json(exclude_unset=True).encode()
        await self._kept(self._store.add, event.id, body, {ID_HEADER: event.id, EVENT_HEADER: event.type}, "reconciliation")
        self._arrived.set()


class Connections:
    """The open connections, bounded in number and in time, so that strangers who open many and send nothing keep no delivery out.

    A connection that is one too many closes the one that has been silent longest. What was read whole and is being answered stays.
    """

    def __init__(self, tls: ssl.SSLContext | None, complaints: "Complaints") -> None:
        self._tls, self._complaints = tls, complaints
        self._open: dict[asyncio.BaseProtocol, Connection] = {}  # the one that has been silent longest is first

    def __len__(self) -> int:
        return len(self._open)

    def accept(self, answering: asyncio.Protocol) -> "Connection":
        """What the event loop calls for each connection. ``answering``: aiohttp's side of it."""
        return Connection(answering, self._tls, self)

    def add(self, connection: "Connection") -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            silent = next((one for one in self._open.values() if not one.is_protected), connection)
            silent.drop()
            self._complaints.say(f"{MAX_CONNECTIONS} connections are open: the one that was silent longest is closed")
        if not connection.is_dropped:
            self._open[connection.answering] = connection

    def remove(self, connection: "Connection") -> None:
        self._open.pop(connection.answering, None)

    @contextmanager
    def answering(self, request: web.Request) -> "Iterator[Connection]":
        """The connection of a request whose head has arrived."""
        connection = self._open[request.protocol]
        connection.expect(None)
        try:
            yield connection
        finally:
            if self._open.pop(request.protocol, None):  # unless it is gone meanwhile
                self._open[request.protocol] = connection
                connection.expect(IDLE_SECONDS)

    def close(self) -> None:
        for connection in [*self._open.values()]:
            connection.drop()


class Connection(asyncio.Protocol):
    """One connection: handed on to aiohttp once TLS, if any, stands. aiohttp itself waits for a request as long as the peer likes."""

    def __init__(self, answering: asyncio.Protocol, tls: ssl.SSLContext | None, connections: Connections) -> None:
        self.answering = answering
        self.is_protected = self.is_dropped = False
        self._tls, self._connections = tls, connections
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_handed_on = False

    def expect(self, seconds: float | None) -> None:
        """Close the connection after ``seconds``, unless this is called again by then. None: not at all."""
        self.is_protected = False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.drop)

    def protect(self) -> None:
        """Until the answer it is not closed for another connection."""
        self.is_protected = True

    def drop(self) -> None:
        self.is_dropped = True
        self._end()
        if self._handshake is not None:
            self._handshake.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connections.remove(self)

    # --- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # it is a stream
        self._transport = transport
        self.expect(HEAD_SECONDS)
        self._connections.add(self)
        if self.is_dropped:
            return
        if self._tls is None:
            self._hand_on(transport)
        else:
            transport.pause_reading()  # the first bytes are for TLS
            self._handshake = asyncio.get_running_loop().create_task(self._begin_tls(transport, self._tls))

    async def _begin_tls(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=HEAD_SECONDS, ssl_shutdown_timeout=HEAD_SECONDS
            )
        except OSError:  # no TLS, or too slow
            secured = None
        if secured is None or self.is_dropped:
            self.drop()
        else:
            self._transport = secured
            self._hand_on(secured)

    def _hand_on(self, transport: asyncio.Transport) -> None:
        self._is_handed_on = True
        self.answering.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.answering.data_received(data)

    def eof_received(self) -> bool | None:
        return self.answering.eof_received()

    def pause_writing(self) -> None:
        self.answering.pause_writing()

    def resume_writing(self) -> None:
        self.answering.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._is_handed_on:
            self._is_handed_on = False
            self.answering.connection_lost(exc)


def _is_final(failure: HostingError) -> bool:
    """Whether asking again would bring the same: it must not keep what follows waiting."""
    return not isinstance(failure, ApiError) or (400 <= failure.status < 500 and failure.status != 429)


class Complaints:
    """Warnings that strangers can cause: one line a minute, so that they cannot fill the log."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next, self._unsaid = clock, 0.0, 0

    def say(self, line: str) -> None:
        if self._clock() < self._next:
            self._unsaid += 1
            return
        log.warning("%s%s", line, f" (and {self._unsaid} more since the last line)" if self._unsaid else "")
        self._next, self._unsaid = self._clock() + LOG_SECONDS, 0


def _answer(status: int) -> web.Response:
    return web.Response(status=status, text="" if status == 200 else f"{status}\n")

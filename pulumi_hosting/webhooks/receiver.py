"""A complete receiver of webhooks: HTTP server, signature check, store, and a fetch of the events that never
arrived.

    import asyncio
    from pulumi_hosting.webhooks.receiver import ReceivedEvent, Receiver, ReceiverOptions

    async def handle(received: ReceivedEvent) -> None:
        print(received.event.type, received.event.object.get("id"))

    options = ReceiverOptions.from_values({"port": 5000, "path": "/hosting", "secret_file": "webhook-secret"})
    asyncio.run(Receiver(options).run(handle))

What it promises:

- An event is on disk before its delivery is answered with 200, and stays there until it is acknowledged. What
  a crash or a restart left unacknowledged is handed over at the next start.
- An event that was acknowledged is never handed over again within 31 days, however often the service delivers
  it.
- Only deliveries with a valid signature and time are kept. The sender of any other learns nothing but the
  status 401.
- A handler that is slow, or fails, delays no answer and loses no event. A full disk or a failing API ends
  nothing: it is retried.
- No secret and no body is logged.

No order is promised, by the service or here. Compare ``event.created_at`` where it matters.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pulumi_hosting.api.models import Delivery, Event
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ApiError, HostingError, InvalidResponse, WebhookRejected
from pulumi_hosting.webhooks.background import LimitedWarnings, log, one_line, retry_until_success
from pulumi_hosting.webhooks.delivery_store import EventStore, StoredEvent
from pulumi_hosting.webhooks.http_server import Limits, PostedRequest, WebhookServer
from pulumi_hosting.webhooks.receiver_options import ReceiverOptions, WebhookSecrets
from pulumi_hosting.webhooks.shared_event_store import SharedEventStore
from pulumi_hosting.webhooks.signature import EVENT_HEADER, ID_HEADER, TIMESTAMP_HEADER, parse, verify

__all__ = ["Limits", "ReceivedEvent", "Receiver", "ReceiverOptions"]

SHOWN_HEADERS = (ID_HEADER, EVENT_HEADER, TIMESTAMP_HEADER, "User-Agent", "Content-Type")
FORGET_INTERVAL_SECONDS = 6 * 3600.0

T = TypeVar("T")


@dataclass(frozen=True)
class ReceivedEvent:
    """An event as it is handed over.

    - ``event``: the event. ``payload``: the same as it was delivered, every field included.
    - ``headers``: id, type, time, user agent and content type of the delivery. ``received_at``: when it
      arrived, in UTC.
    - ``via``: ``delivery``, or ``reconciliation`` for one that never arrived and was fetched.
    """

    event: Event
    payload: dict[str, Any]
    headers: dict[str, str]
    received_at: datetime
    via: str


class Receiver:
    """Receives events and hands each to a handler. Raises ``ConfigurationError`` for options that cannot be
    used.

    - ``client``: what fetches missed events, instead of a client made of the options. It is closed when that
      is done.
    - ``limits``: of the HTTP server. ``open_store``: opens the state file, or another store of events.
      ``sleep``: waits between two attempts of what failed.
    """

    def __init__(
        self,
        options: ReceiverOptions,
        *,
        client: Client | None = None,
        limits: Limits | None = None,
        open_store: Callable[[Path], EventStore | SharedEventStore] = EventStore,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options, self._open_store, self._sleep = options, open_store, sleep
        self._secrets = WebhookSecrets(options)
        self._client = client or options.client()
        self._warnings = LimitedWarnings()
        self._server = WebhookServer(
            self._receive, path=options.path, tls=options.tls(), warnings=self._warnings, limits=limits
        )
        self._arrived = asyncio.Event()
        self._store: EventStore | SharedEventStore
        # SQLite waits for the disk, in a thread of its own so that nothing else waits with it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pulumi-hosting-webhooks")

    async def run(
        self,
        handle: Callable[[ReceivedEvent], Awaitable[None]],
        *,
        acknowledge: bool = True,
        wait_for_port: bool = True,
    ) -> None:
        """Receive until cancelled. To be called once.

        Each event is handed to ``handle``, one after the other, and acknowledged when it returns. With
        ``acknowledge=False`` that is left to :meth:`acknowledge`. An event whose ``handle`` raises is logged
        and handed over again at the next start.

        Retries whatever may pass (the port or the state file is in use, a full disk, a failing API), with a
        line in the log. Raises ``ConfigurationError`` when the state file cannot be used at all, and, with
        ``wait_for_port=False``, ``OSError`` when the address cannot be used now.
        """
        with self._thread:
            self._store = await self._retry(
                "cannot open the store of events",
                lambda: self._in_thread(self._open_store, self._options.state_path),
            )
            try:
                if not wait_for_port:
                    await self._start()
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._listen(is_started=not wait_for_port))
                    tasks.create_task(self._hand_over(handle, acknowledge))
                    tasks.create_task(self._forget_old())
                    if self._client is not None:
                        tasks.create_task(self._reconcile(self._client))
            finally:
                self._thread.submit(self._store.close)

    async def acknowledge(self, event_id: str) -> None:
        """Mark an event as handled: it is never handed over again."""
        await self._retry(
            "cannot write to the store of events", lambda: self._in_thread(self._store.acknowledge, event_id)
        )

    async def _retry(self, what_fails: str, action: Callable[[], Awaitable[T]]) -> T:
        return await retry_until_success(what_fails, action, self._sleep)

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        # Shielded: an event that was handled is marked even when the receiver is cancelled at that moment.
        return await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        )

    async def _start(self) -> None:
        for url in await self._server.start(self._options.host, self._options.port):
            log.info("listening on %s", url)

    async def _listen(self, is_started: bool) -> None:
        try:
            if not is_started:
                await self._retry("cannot listen", self._start)
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            await self._server.close()

    async def _receive(self, request: PostedRequest) -> int:
        """Keep an event and return the status. However long the handler takes, the service has its answer in
        time."""
        try:
            secrets, tolerance = self._secrets.current(), self._options.tolerance
            event = verify(request.body, request.headers, secrets, tolerance=tolerance)
            sent = {name.lower(): value for name, value in request.headers}
            headers = {name: sent[name.lower()] for name in SHOWN_HEADERS if name.lower() in sent}
            is_new = await self._in_thread(self._store.add, event.id, request.body, headers, "delivery")
        except WebhookRejected as refusal:
            self._warnings.warn(f"refused a delivery from {request.remote}: {refusal}")
            return 401
        except (HostingError, OSError, ValueError, sqlite3.Error) as failure:
            self._warnings.warn(f"could not keep a delivery, the service will try again: {one_line(failure)}")
            return 503
        if is_new:
            self._arrived.set()
        return 200

    async def _hand_over(self, handle: Callable[[ReceivedEvent], Awaitable[None]], acknowledge: bool) -> None:
        number = 0
        while True:
            self._arrived.clear()
            next_pending = partial(self._in_thread, self._store.next_pending, number)
            stored: StoredEvent | None = await self._retry("cannot read the store of events", next_pending)
            if stored is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.wait(), self._store.poll_seconds)
                continue
            number = stored.number
            try:
                await handle(_received(stored))
            except Exception as failure:  # noqa: BLE001  # a handler may raise anything
                log.error(
                    "event %s was not handled (%s); it is handed over again at the next start",
                    stored.id,
                    type(failure).__name__,
                )
                continue
            if acknowledge:
                await self.acknowledge(stored.id)

    async def _forget_old(self) -> None:
        while True:
            await self._retry(
                "cannot write to the store of events", lambda: self._in_thread(self._store.forget_old)
            )
            await asyncio.sleep(FORGET_INTERVAL_SECONDS)

    async def _reconcile(self, client: Client) -> None:
        """Fetch the events that never arrived. They are handed over as those that did."""

        async def find() -> list[Delivery]:
            return await missed_deliveries(
                client,
                self._options.subscription or 0,
                lookback=self._options.lookback,
                store_created_at=await self._in_thread(lambda: self._store.created_at),
                knows=partial(self._in_thread, self._store.knows),
            )

        with closing(client):
            missed = await self._retry("cannot ask for missed events", find)
            for delivery in missed:

                async def fetch(delivery: Delivery = delivery) -> None:
                    if (event := await event_of(client, delivery)) is not None:
                        headers = {ID_HEADER: event.id, EVENT_HEADER: event.type}
                        body = event.model_dump_json(exclude_unset=True).encode()
                        await self._in_thread(self._store.add, event.id, body, headers, "reconciliation")
                        self._arrived.set()

                await self._retry(f"cannot fetch missed event {delivery.event_id}", fetch)
        if missed:
            log.warning("%d events were missed and are handed over now", len(missed))


def _received(stored: StoredEvent) -> ReceivedEvent:
    return ReceivedEvent(
        event=parse(stored.body),
        payload=json.loads(stored.body),
        headers=json.loads(stored.headers),
        received_at=datetime.fromtimestamp(stored.received_at, UTC),
        via=stored.via,
    )


# --- events that never arrived: found in the service's log of deliveries, and fetched from it


async def missed_deliveries(
    client: Client,
    subscription: int,
    *,
    lookback: float,
    store_created_at: float,
    knows: Callable[[str], Awaitable[bool]],
    now: Callable[[], float] = time.time,
) -> list[Delivery]:
    """Deliveries of events that the receiver does not know, oldest first. Costs one request, and one for
    every 100 deliveries.

    - ``lookback``: how old a delivery may be, in seconds.
    - ``store_created_at``: unix seconds; what was accepted before, another receiver has handled.
    - ``knows``: whether the receiver has received an event of this id.

    Logs an error and returns nothing when the service refuses for good. Raises ``HostingError`` for what may
    pass.
    """
    try:
        shown = await asyncio.to_thread(client.webhooks.get, subscription)
        deliveries = await asyncio.to_thread(lambda: list(client.webhooks.deliveries.list(subscription)))
    except ApiError as refusal:
        if not _is_permanent(refusal):
            raise
        log.error("cannot ask for missed events, continuing without them: %s", refusal)
        return []
    if not shown.active:
        log.warning(
            "subscription %d is disabled, nothing is delivered: set active again (%s)",
            subscription,
            shown.disabled_reason,
        )
    oldest, missed = now() - lookback, dict[str, Delivery]()
    for delivery in deliveries:
        created_at = delivery.created_at.timestamp() if delivery.created_at else now()
        if created_at < oldest or (delivery.status == "delivered" and created_at < store_created_at):
            continue
        if delivery.event_id and delivery.event_type != "ping" and not await knows(delivery.event_id):
            missed[delivery.event_id] = delivery
    latest = datetime.fromtimestamp(now(), UTC)
    return sorted(missed.values(), key=lambda delivery: (delivery.created_at or latest, delivery.id))


async def event_of(client: Client, delivery: Delivery) -> Event | None:
    """The event of a delivery: from the delivery, else with one request.

    Logs an error and returns ``None`` when it cannot be had. Raises ``HostingError`` for what may pass.
    """
    try:
        event = (
            delivery.payload or (await asyncio.to_thread(client.webhooks.deliveries.get, delivery.id)).payload
        )
    except (ApiError, InvalidResponse) as failure:
        if not _is_permanent(failure):
            raise
        log.error(
            "cannot fetch missed event %s, continuing without it until the next start: %s",
            delivery.event_id,
            failure,
        )
        return None
    if event is None:
        log.error("delivery %d has no payload: its event is left out", delivery.id)
    return event


def _is_permanent(failure: HostingError) -> bool:
    """Whether the same request would fail again, so that a retry only keeps other events waiting."""
    return not isinstance(failure, ApiError) or (400 <= failure.status < 500 and failure.status != 429)

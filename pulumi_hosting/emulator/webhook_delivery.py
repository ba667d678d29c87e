"""Webhook deliveries: signing, routing, sending, and the retry plan. Only :func:`send` uses the network."""

import hmac
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote, urlsplit

import idna

from pulumi_hosting.api.models.webhooks import EVENT_HEADER, ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from pulumi_hosting.api.values import check_https_url, is_loopback, is_public
from pulumi_hosting.emulator.formats import format_timestamp
from pulumi_hosting.emulator.messages import Answer
from pulumi_hosting.emulator.rows import DeliveryRow, SubscriptionRow
from pulumi_hosting.emulator.store import Store

RETRY_AFTER = (60, 300, 900, 3600, 6 * 3600)
DISABLE_AFTER_FAILURES = 20
TIMEOUT_SECONDS = 10
RESPONSE_BYTES = 1000
KEEP_DELIVERED_SECONDS = 14 * 86400
KEEP_DEAD_SECONDS = 30 * 86400
# Characters not encoded in the path of a request line; `%` because the path may be encoded already.
_SENT_AS_IS = "/%:@!$&'()*+,;=~"
_HOST = re.compile(r"(?=.{1,253}\.?$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?)+")
USER_AGENT = "Hosting-Webhooks/1.0"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. ``target`` is the loopback URL it is sent to; ``None``: the origin has no route."""

    target: str | None
    headers: dict[str, str]
    payload: bytes


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    status: int | None
    error: str | None
    response: str | None
    latency_ms: int = 0

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Outbound:
    """The result of a handler that needs the network: what to send, and how to answer with its outcome."""

    attempt: Attempt
    then: Callable[[AttemptOutcome], Answer]


def url_problem(url: str) -> str | None:
    """Why a subscription's URL is not a public https address, or ``None``."""
    try:
        host = check_https_url(url).lower()
    except ValueError:
        return "invalid"
    if not is_public(host):
        return "not_public"
    try:
        encoded = host if ":" in host else idna.encode(host, uts46=True).decode().lower()
    except idna.IDNAError:
        return "invalid"
    return None if ":" in host or _HOST.fullmatch(encoded) else "invalid"


def route(store: Store, url: str) -> str | None:
    """Where deliveries to ``url`` are sent: the routed origin, with path and query percent-encoded."""
    try:
        parts, target = urlsplit(url), store.service.routes.get(origin(url))
    except ValueError:
        return None
    if target is None:
        return None
    path, query = quote(parts.path or "/", _SENT_AS_IS), quote(parts.query, _SENT_AS_IS + "?")
    return target.rstrip("/") + path + (f"?{query}" if query else "")


def origin(url: str) -> str:
    """Scheme, host and port of a URL, without the default port."""
    parts = urlsplit(url)
    port = parts.port
    default = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None and port != default else "")


def check_routes(routes: Mapping[str, object]) -> dict[str, str]:
    """Routes by normalized origin; ``ValueError`` if an origin is not https or a target not on loopback."""
    checked = {}
    for source, target in routes.items():
        if not _host_of(source, "https"):
            raise ValueError(f"{source!r} is not an https origin")
        if not isinstance(target, str) or not is_loopback(_host_of(target, "http") or ""):
            raise ValueError(f"{target!r} is not an http:// address on loopback")
        checked[origin(source)] = target.rstrip("/")
    return checked


def _host_of(url: str, scheme: str) -> str | None:
    """The host of a URL of this scheme; None if it is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that cannot be
        return parts.hostname if parts.scheme == scheme else None
    except ValueError:
        return None


def signature(secret: str, timestamp: int, payload: bytes) -> str:
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + payload, sha256).hexdigest()


def new_delivery(
    store: Store, subscription: SubscriptionRow, event: tuple[str, str], type: str, *, queued: bool = True
) -> DeliveryRow:
    """Add a delivery of an event, whose id and payload are ``event``, to the log. ``queued``: send it now."""
    event_id, payload = event
    return store.add(
        DeliveryRow(
            account_id=subscription.account_id,
            subscription_id=subscription.id,
            event_id=event_id,
            event_type=type,
            payload=payload,
            next_attempt_at=store.now if queued else None,
        )
    )


def remove_subscription(store: Store, subscription: SubscriptionRow) -> None:
    """Remove a subscription and its deliveries."""
    for delivery in list(store.of(DeliveryRow, subscription.id).values()):
        store.remove(delivery)
    store.remove(subscription)


def attempt(store: Store, delivery: DeliveryRow) -> Attempt:
    """An attempt, signed now with the present secret."""
    subscription = store.subscriptions[delivery.subscription_id]
    raw, timestamp = delivery.payload.encode(), int(store.now)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        ID_HEADER: delivery.event_id,
        EVENT_HEADER: delivery.event_type,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: signature(subscription.secret, timestamp, raw),
    }
    delivery.headers = headers
    return Attempt(route(store, subscription.url), headers, raw)


def send(attempt: Attempt) -> AttemptOutcome:
    """Send an attempt. Redirects are not followed; the time-out is 10 seconds."""
    import http.client  # at the first delivery: it would take a twentieth of the start

    if attempt.target is None:
        return AttemptOutcome(None, "the address is not reachable", None)
    parts = urlsplit(attempt.target)
    started = time.monotonic()
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=TIMEOUT_SECONDS)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body=attempt.payload, headers=attempt.headers)
        response = connection.getresponse()
        text = response.read(RESPONSE_BYTES).decode("utf-8", "replace")
        status: int | None = response.status
        error = None if 200 <= response.status < 300 else f"the receiver answered {response.status}"
    except TimeoutError:
        status, text, error = None, None, f"no answer within {TIMEOUT_SECONDS} seconds"
    except (OSError, http.client.HTTPException) as failure:
        status, text, error = None, None, f"the connection failed: {type(failure).__name__}"
    finally:
        connection.close()
    return AttemptOutcome(status, error, text, int((time.monotonic() - started) * 1000))


def waiting(store: Store) -> Iterator[DeliveryRow]:
    """The deliveries with an attempt to come; those of disabled subscriptions wait until they are enabled."""
    for delivery in store.deliveries.values():
        subscription = store.subscriptions.get(delivery.subscription_id)
        if delivery.next_attempt_at is not None and subscription is not None and subscription.active:
            yield delivery


def next_delivery(store: Store) -> DeliveryRow | None:
    """The delivery whose attempt comes next."""
    return min(waiting(store), key=lambda delivery: (delivery.next_attempt_at, delivery.id), default=None)


def record(store: Store, delivery: DeliveryRow, outcome: AttemptOutcome) -> None:
    """Record an attempt: delivered, to be retried, or dead; 20 failures in a row disable the subscription."""
    subscription = store.subscriptions.get(delivery.subscription_id)
    if subscription is None or store.deliveries.get(delivery.id) is not delivery:
        # The delivery was deleted, or the store reset, during the attempt.
        return
    note(store, delivery, subscription, outcome)
    if outcome.ok:
        subscription.failures_in_row = 0
        settle(store, delivery, delivered=True)
        return
    subscription.failures_in_row += 1
    delivery.failures += 1
    if delivery.failures > len(RETRY_AFTER):
        settle(store, delivery, delivered=False)
    else:
        delivery.next_attempt_at = store.now + RETRY_AFTER[delivery.failures - 1]
    if subscription.failures_in_row >= DISABLE_AFTER_FAILURES and subscription.active:
        subscription.active = False
        subscription.disabled_at = store.now
        subscription.disabled_reason = f"{DISABLE_AFTER_FAILURES} deliveries failed in a row"
        subject = f"Webhook subscription {subscription.id} is disabled: {subscription.disabled_reason}"
        store.email(subscription.account_id, subject)


def note(store: Store, delivery: DeliveryRow, subscription: SubscriptionRow, outcome: AttemptOutcome) -> None:
    delivery.attempts += 1
    delivery.last_status, delivery.last_error = outcome.status, outcome.error
    delivery.last_response = outcome.response
    subscription.last_delivery_at, subscription.last_status = store.now, outcome.status


def settle(store: Store, delivery: DeliveryRow, *, delivered: bool) -> None:
    """Make no further attempt. The log keeps delivered ones for 14 days and dead ones for 30."""
    delivery.next_attempt_at = None
    delivery.delivered_at, delivery.dead_at = (store.now, None) if delivered else (None, store.now)
    store.schedule(
        store.now + (KEEP_DELIVERED_SECONDS if delivered else KEEP_DEAD_SECONDS),
        "forget_delivery",
        delivery.id,
        format_timestamp(store.now) or "",
    )
